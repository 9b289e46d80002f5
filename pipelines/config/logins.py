"""The SASL logins of Kafka clients: which properties each takes, and its text for Java's client.

A login is given by librdkafka's properties, one value each, or by `sasl.jaas.config`. Java's client
takes the text alone, and kafka-python the values alone: here one becomes the other.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from quotaflow.pipelines.errors import ConfigError

PLAIN, OAUTH, KERBEROS, IAM = "PLAIN", "OAUTHBEARER", "GSSAPI", "AWS_MSK_IAM"
JAAS = "sasl.jaas.config"
TOKEN_URL = "sasl.oauthbearer.token.endpoint.url"  # noqa: S105  a name
ALLOWED_URLS = "org.apache.kafka.sasl.oauthbearer.allowed.urls"
"""The property of a JVM that lists the addresses which Kafka's client 4.0 and later may ask."""
SERVICE_NAME = "sasl.kerberos.service.name"
_MECHANISM = "sasl.mechanism"
_KAFKA, _AWS = "org.apache.kafka.", "software.amazon."
_SECURITY = f"{_KAFKA}common.security"
_OTHER_NAMES = ("kafkashaded.", "shadedmskiam.")
"""What stands on Databricks before the names of Kafka's classes and of those of AWS."""

_LOGIN_HANDLER = "sasl.login.callback.handler.class"
_CLIENT_HANDLER = "sasl.client.callback.handler.class"
_CODE = (_LOGIN_HANDLER, _CLIENT_HANDLER, "sasl.login.class", "ssl.engine.factory.class")
_CODE_TOO = ("security.providers", "metric.reporters", "sasl.oauthbearer.jwt.retriever.class")
_MOST_URL = 2_000


@dataclass(frozen=True, slots=True)
class Mechanism:
    """One SASL mechanism: its login module of Java and what that takes."""

    module: str
    options: Mapping[str, str]
    """Property of conf -> option of the module."""

    required: tuple[str, ...] = ()
    """Properties without which there is no login."""

    fixed: Mapping[str, str] = field(default_factory=dict)
    """Options that are always set."""

    further: str = r"(?!)"
    """A pattern of other options that a text may have."""

    defaults: Mapping[str, str] = field(default_factory=dict)
    """Properties of Java's client that this login needs."""


_BY_PASSWORD = {"sasl.username": "username", "sasl.password": "password"}
_PASSWORD_KEYS = tuple(_BY_PASSWORD)
_SCRAM = Mechanism(
    f"{_SECURITY}.scram.ScramLoginModule", _BY_PASSWORD, _PASSWORD_KEYS, further="tokenauth"
)
_CLIENT_ID, _CLIENT_SECRET = "sasl.oauthbearer.client.id", "sasl.oauthbearer.client.secret"
_EXTENSIONS, _EXTENSION = "sasl.oauthbearer.extensions", "extension_"
_CA_FILE = "https.ca.location"
_OAUTH_KEYS = {
    _CLIENT_ID: "clientId",
    "sasl.oauthbearer.client.credentials.client.id": "clientId",
    _CLIENT_SECRET: "clientSecret",
    "sasl.oauthbearer.client.credentials.client.secret": "clientSecret",
    "sasl.oauthbearer.scope": "scope",
    _CA_FILE: "ssl.truststore.location",
}
"""Of client id and secret also the names of Java's client 4.1 and later."""

MECHANISMS: Mapping[str, Mechanism] = {
    PLAIN: Mechanism(f"{_SECURITY}.plain.PlainLoginModule", _BY_PASSWORD, _PASSWORD_KEYS),
    "SCRAM-SHA-256": _SCRAM,
    "SCRAM-SHA-512": _SCRAM,
    OAUTH: Mechanism(
        f"{_SECURITY}.oauthbearer.OAuthBearerLoginModule",
        _OAUTH_KEYS,
        (_CLIENT_ID, _CLIENT_SECRET),
        further=rf"{_EXTENSION}[A-Za-z]+|ssl\.truststore\.type",
        defaults={
            _LOGIN_HANDLER: f"{_SECURITY}.oauthbearer.secured.OAuthBearerLoginCallbackHandler"
        },
    ),
    KERBEROS: Mechanism(
        "com.sun.security.auth.module.Krb5LoginModule",
        {"sasl.kerberos.keytab": "keyTab", "sasl.kerberos.principal": "principal"},
        ("sasl.kerberos.keytab", "sasl.kerberos.principal"),
        fixed={"useKeyTab": "true", "storeKey": "true"},
        further="useKeyTab|storeKey|useTicketCache|renewTGT|doNotPrompt|refreshKrb5Config",
        defaults={SERVICE_NAME: "kafka"},
    ),
    IAM: Mechanism(
        f"{_AWS}msk.auth.iam.IAMLoginModule",
        {},
        defaults={_CLIENT_HANDLER: f"{_AWS}msk.auth.iam.IAMClientCallbackHandler"},
    ),
}
"""Logins that both Java's client and kafka-python support."""

_LOGIN_KEYS = {key for each in MECHANISMS.values() for key in each.options} | {_EXTENSIONS}
_VALUE = r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'|[^\s;="\']+'
_ENTRY = re.compile(
    rf"\s*([\w.$]+)\s+(?:required|requisite|sufficient|optional)((?:\s+[\w.-]+\s*=\s*(?:{_VALUE}))*)\s*;\s*",
    re.S | re.I,
)
_OPTION = re.compile(rf"\s([\w.-]+)\s*=\s*({_VALUE})", re.S)
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f", "a": "\a", "v": "\v"}


def problems(properties: Mapping[str, str], secrets: frozenset[str]) -> Iterator[str]:
    """The problems of a login's properties. `secrets` has the names whose values are not known."""
    mechanism = properties.get(_MECHANISM, PLAIN if "sasl.username" in properties else "")
    yield from _code_problems(properties, mechanism)
    if mechanism not in MECHANISMS or _MECHANISM in secrets:
        return
    protocol = properties.get("security.protocol", "PLAINTEXT").upper()
    if JAAS not in properties and protocol.startswith("SASL_"):
        yield from _missing(properties, mechanism)
    elif JAAS in properties and JAAS not in secrets:
        yield from _jaas_problems(properties[JAAS], mechanism)
    if mechanism == IAM and protocol != "SASL_SSL":
        yield f"{IAM} needs security.protocol SASL_SSL, and it is {protocol}"
    if mechanism == OAUTH:
        yield from _url_problems(properties, secrets)
        if properties.get("sasl.oauthbearer.method", "oidc").lower() != "oidc":
            yield "sasl.oauthbearer.method is not oidc: logins by client credentials alone work"


def _code_problems(properties: Mapping[str, str], mechanism: str) -> Iterator[str]:
    """Properties that name a class to run. Those of a known login are set here anyway."""
    allowed = MECHANISMS[mechanism].defaults if mechanism in MECHANISMS else {}
    for key in (*_CODE, *_CODE_TOO):
        given = properties.get(key)
        if given is None or _unshaded(given) in {allowed.get(key), _new_name(allowed.get(key))}:
            continue
        yield f"{key} names code to run: leave it out, what sasl.mechanism needs is set by itself"


def _new_name(handler: str | None) -> str | None:
    """The name of OAUTHBEARER's handler since Kafka 4.0."""
    return handler.replace(".secured.", ".") if handler else None


def _missing(properties: Mapping[str, str], mechanism: str) -> Iterator[str]:
    kind = MECHANISMS[mechanism]
    given = {option for key, option in kind.options.items() if key in properties}
    missing = [key for key in kind.required if kind.options[key] not in given]
    if missing:
        yield f"{mechanism} needs {' and '.join(missing)}, or {JAAS}"


def _jaas_problems(jaas: str, mechanism: str) -> Iterator[str]:
    try:
        _checked(jaas, mechanism)
    except ConfigError as error:
        yield str(error)


def _url_problems(properties: Mapping[str, str], secrets: frozenset[str]) -> Iterator[str]:
    url = properties.get(TOKEN_URL)
    if url is None:
        yield f"{OAUTH} needs {TOKEN_URL}: the address where your identity provider gives tokens"
    elif TOKEN_URL not in secrets and not _is_url(url):
        yield f"{TOKEN_URL} {url} is no address: write https://HOST/PATH"


def _is_url(text: str) -> bool:
    # A file would be a token that nobody renews, and Spark gets the address as an option of Java.
    if not re.fullmatch(r"https?://[^\s\"'\\,]+", text) or len(text) > _MOST_URL:
        return False
    try:
        return bool(urlsplit(text).hostname)
    except ValueError:
        return False


def for_java(properties: Mapping[str, str]) -> dict[str, str]:
    """Properties as Java's client takes them, from those of conf with secrets looked up.

    Raises ConfigError for a login that is incomplete, double or not of its mechanism. No message
    has a secret.
    """
    rest = {key: value for key, value in properties.items() if key not in _LOGIN_KEYS}
    rest.pop("sasl.oauthbearer.method", None)
    named = {key: value for key, value in properties.items() if key in _LOGIN_KEYS}
    if "sasl.username" in named or "sasl.password" in named:
        # Java's default is GSSAPI.
        rest.setdefault(_MECHANISM, PLAIN)
    mechanism = rest.get(_MECHANISM, "")
    if named and JAAS in rest:
        raise ConfigError(f"{next(iter(named))} and {JAAS} exclude each other: name one")
    kind = MECHANISMS.get(mechanism)
    if named:
        rest[JAAS] = _jaas(mechanism, named)
    elif kind and not kind.required and JAAS not in rest:
        rest[JAAS] = _text(kind.module, {})
    if JAAS in rest:
        rest[JAAS] = _checked(rest[JAAS], mechanism)
    if kind:
        rest = {**kind.defaults, **rest}
    return {key: _unshaded(value) if key in _CODE else value for key, value in rest.items()}


def _jaas(mechanism: str, named: Mapping[str, str]) -> str:
    kind = MECHANISMS.get(mechanism)
    options = dict(kind.fixed) if kind else {}
    for key, value in named.items():
        if key == _EXTENSIONS and mechanism == OAUTH:
            options |= _extensions(value)
            continue
        if kind is None or key not in kind.options:
            takers = [name for name, each in MECHANISMS.items() if key in each.options]
            raise ConfigError(
                f"sasl.mechanism {mechanism} takes no {key}: {', '.join(takers) or OAUTH} do"
            )
        if kind.options[key] in options:
            raise ConfigError(f"kafka.properties has two names of {kind.options[key]}: leave one")
        options[kind.options[key]] = value
    assert kind is not None
    for key in kind.required:
        if kind.options[key] not in options:
            raise ConfigError(f"kafka.properties has {next(iter(named))} and no {key}")
    if _CA_FILE in named:
        options["ssl.truststore.type"] = "PEM"
    return _text(kind.module, options)


def _extensions(text: str) -> dict[str, str]:
    pairs = [pair.partition("=") for pair in text.split(",") if pair.strip()]
    if not all(re.fullmatch("[A-Za-z]+", key.strip()) and value for key, _, value in pairs):
        raise ConfigError(f"{_EXTENSIONS} is not NAME=VALUE,NAME=VALUE with names of letters")
    return {_EXTENSION + key.strip(): value.strip() for key, _, value in pairs}


def _text(module: str, options: Mapping[str, str]) -> str:
    return f"{module} required{''.join(f' {k}={_quoted(v)}' for k, v in options.items())};"


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + escaped.replace("\n", "\\n").replace("\r", "\\r") + '"'


def _unquoted(text: str) -> str:
    if text[:1] not in {'"', "'"}:
        return text
    return re.sub(r"\\([0-7]{1,3}|.)", _character, text[1:-1], flags=re.S)


def _character(escape: re.Match[str]) -> str:
    """The character of an escape, as Java's StreamTokenizer reads it."""
    text = escape[1]
    return chr(int(text, 8)) if text[0] in "01234567" else _ESCAPED.get(text, text)


def _checked(jaas: str, mechanism: str) -> str:
    """The text by Kafka's own names; raises ConfigError for another login module or option."""
    entry = _ENTRY.fullmatch(jaas)
    module = _unshaded(entry[1] if entry else (jaas.split(maxsplit=1) or [""])[0])
    # A login module is code that runs in our JVM: other modules allow attacks (CVE-2023-25194).
    modules = {each.module for each in MECHANISMS.values()}
    if module not in modules:
        allowed = ", ".join(sorted(name.rsplit(".", 1)[1] for name in modules))
        raise ConfigError(f"{JAAS} names a login module that is not one of {allowed}")
    if entry is None:
        raise ConfigError(f'{JAAS} cannot be read: write MODULE required NAME="VALUE" ... ;')
    kind = MECHANISMS.get(mechanism)
    if kind and kind.module != module:
        raise ConfigError(
            f"{JAAS} names {module.rsplit('.', 1)[1]}, and sasl.mechanism {mechanism} needs "
            f"{kind.module.rsplit('.', 1)[1]}"
        )
    kind = kind or next(each for each in MECHANISMS.values() if each.module == module)
    options = module_options(jaas)
    for name in options:
        if name not in kind.options.values() and not re.fullmatch(kind.further, name):
            raise ConfigError(f"{JAAS} has {name}, which this login does not take: leave it out")
    return _text(module, options)


def module_options(jaas: str) -> dict[str, str]:
    """The options of a text's login module by name; empty for a text that is none."""
    entry = _ENTRY.fullmatch(jaas)
    return {name: _unquoted(value) for name, value in _OPTION.findall(entry[2])} if entry else {}


def extensions(options: Mapping[str, str]) -> dict[str, str]:
    """The SASL extensions among the options of OAUTHBEARER's module."""
    return {
        name.removeprefix(_EXTENSION): value
        for name, value in options.items()
        if name.startswith(_EXTENSION)
    }


def user(mechanism: str, jaas: str) -> str | None:
    """Whom brokers take a login for by their default rules; None if only they know."""
    options = module_options(jaas)
    if mechanism == KERBEROS:
        # The default rule of sasl.kerberos.principal.to.local.rules.
        return re.split("[/@]", options.get("principal", ""), maxsplit=1)[0] or None
    return options.get("username") or None


def _unshaded(name: str) -> str:
    for prefix in _OTHER_NAMES:
        name = name.removeprefix(prefix)
    return name


def shaded(properties: Mapping[str, str], prefix: str) -> dict[str, str]:
    """Properties for a JVM that has Kafka's classes under `prefix`, as that of Databricks."""
    if not prefix:
        return dict(properties)
    kafka, aws = _OTHER_NAMES
    names = {key for key in (JAAS, *_CODE) if key in properties}
    begins = {_KAFKA: kafka, _AWS: aws}
    prefixed = {
        key: begin + properties[key]
        for key in names
        for own, begin in begins.items()
        if properties[key].startswith(own)
    }
    return {**properties, **prefixed}
