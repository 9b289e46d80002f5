"""Secrets by reference: conf names a secret's place, and only the code that needs it reads it."""

import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from quotaflow.pipelines.config import logins, stores
from quotaflow.pipelines.config.base import Section, matches
from quotaflow.pipelines.errors import ConfigError

REFERENCES = _ENV, _IN_SCOPE = ("env:", "secret:")
_FILE = "file:"
KEY_REFERENCES = (*REFERENCES, _FILE)
"""References to a key that signs records: also a file that its owner alone can read."""
SHOWN_SECRET = re.compile(r"(?i)password|secret|access[.]?key|jaas|credential")
"""Names of Spark settings with secrets: a local session shows all its settings in `ps`."""
MIN_KEY_BYTES = 32
_LISTS = ("signing_keys", "receivers")
"""The lists of conf that have references: other lists have names, which may look like one."""
_SECRET_KEYS = re.compile(r"(password|secret|sasl\.jaas\.config|token|\.key$|user\.info)", re.I)


def is_secret(key: str) -> bool:
    """Whether a Kafka property of this name is a secret."""
    return bool(_SECRET_KEYS.search(key)) and not key.endswith((".endpoint.url", ".location"))


def literal_secret_problem(key: str, value: str) -> str | None:
    """The problem of a property with a literal secret, without its value; None if there is none."""
    if not is_secret(key) or value.startswith(REFERENCES):
        return None
    if key == "sasl.jaas.config" and not re.search("password|secret", value, re.I):
        return None
    return f"{key} holds a secret in plain text: write env:NAME or secret:scope/key instead"


def in_scope(values: Mapping[str, Any], scope: str) -> dict[str, Any]:
    """Conf's values, with the scope added to each reference secret:key that has none."""

    def scoped(value: Any) -> Any:
        if isinstance(value, Mapping):
            return in_scope(value, scope)
        if isinstance(value, str) and value.startswith(_IN_SCOPE) and "/" not in value:
            return f"{_IN_SCOPE}{scope}/{value.removeprefix(_IN_SCOPE)}"
        return value

    return {
        name: [scoped(each) if name in _LISTS else each for each in value]
        if isinstance(value, list)
        else scoped(value)
        for name, value in values.items()
    }


def resolve(properties: Mapping[str, str]) -> dict[str, str]:
    """Kafka client properties with every reference looked up, ready for Java's client.

    Logins by librdkafka's names, such as `sasl.username`, are turned into sasl.jaas.config.
    Raises ConfigError naming the reference that cannot be resolved, never a value.
    """
    resolved = {key: look_up(key, value) for key, value in properties.items()}
    return stores.by_kind(logins.for_java(resolved))


def principal(properties: Mapping[str, str]) -> str | None:
    """The principal of a login by a name; None if the name cannot be looked up here."""
    try:
        resolved = resolve(properties)
    except ConfigError:
        # Nothing logs in here, so a secret that cannot be looked up is no error.
        resolved = dict(properties)
    jaas = resolved.get("sasl.jaas.config", "")
    name = logins.user(resolved.get("sasl.mechanism", ""), jaas)
    name = name or resolved.get("sasl.username", "")
    return f"User:{name}" if name and not name.startswith(REFERENCES) else None


def look_up(key: str, value: str) -> str:
    """The value of a reference, or any other text unchanged; errors name `key`.

    Raises ConfigError naming a reference that cannot be resolved, never a value.
    """
    if value.startswith(_ENV):
        name = value.removeprefix(_ENV)
        if name not in os.environ:
            raise ConfigError(f"{key}: environment variable {name} is not set")
        return os.environ[name]
    if value.startswith(_IN_SCOPE):
        return _databricks_secret(key, value.removeprefix(_IN_SCOPE))
    return value


def key(name: str, reference: str) -> bytes:
    """The key of a reference; errors name `name` and the reference, never the key.

    Raises ConfigError for a key that cannot be read, is short, or that others can read.
    """
    if reference.startswith(_FILE):
        text = _private_text(name, Path(reference.removeprefix(_FILE)))
    else:
        text = look_up(name, reference)
    value = text.strip().encode()
    if len(value) < MIN_KEY_BYTES:
        raise ConfigError(
            f"{name}: {reference} has less than {MIN_KEY_BYTES} bytes: openssl rand -hex 32 prints "
            "a key"
        )
    return value


def _private_text(name: str, path: Path) -> str:
    try:
        with path.open(encoding="utf-8") as file:
            mode = os.fstat(file.fileno()).st_mode
            text = file.read()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is no text"
        raise ConfigError(f"{name}: {path} cannot be read: {why}") from None
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise ConfigError(f"{name}: {path} can be read by others: chmod 600 {path}")
    return text


def _databricks_secret(key: str, reference: str) -> str:
    scope, slash, name = reference.partition("/")
    if not slash:
        raise ConfigError(
            f"{key}: secret:{reference} names no scope: write secret:scope/{scope}, or "
            "name it in secrets.scope"
        )
    # Elsewhere the SDK, if it is installed, searches for a login of its own.
    if "DATABRICKS_RUNTIME_VERSION" not in os.environ:
        raise ConfigError(f"{key}: secret:{reference} can be read on Databricks only")
    from databricks.sdk.runtime import dbutils  # noqa: PLC0415  only there on Databricks

    return str(dbutils.secrets.get(scope, name))


class SecretsSection(Section):
    """Secrets on Databricks: `scope` is the default of references without one (secret:key)."""

    scope: (
        Annotated[str, matches(r"[\w.@-]{1,128}", "write up to 128 letters, digits, . _ @ and -")]
        | None
    ) = None
    """The scope of references without a scope (`secret:key`). null: each reference must name a
    scope.
    """
