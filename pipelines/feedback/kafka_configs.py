"""Changes as kafka-configs command lines, safe to paste whatever the entity is called."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from quotaflow.schemas.configs import CONFIGS, ENTITY_TYPES


@dataclass(frozen=True, slots=True)
class Connection:
    """How kafka-configs reaches the cluster; a login stands in a file, never on a command line."""

    bootstrap_servers: str
    needs_login: bool = False


def command(
    entity_type: str, entity_name: str, values: Mapping[str, str | None], connection: Connection
) -> str:
    """The command line that sets these configs of one entity; those without a value are removed."""
    words = ["kafka-configs.sh", "--bootstrap-server", quoted(connection.bootstrap_servers)]
    if connection.needs_login:
        words += ["--command-config", "client.properties"]
    words += ["--alter", "--entity-type", ENTITY_TYPES[entity_type]]
    name = quoted(entity_name)
    # A name like an option must not be read as one.
    words += [f"--entity-name={name}"] if entity_name.startswith("-") else ["--entity-name", name]
    added = [_pair(key, value) for key, value in values.items() if value is not None]
    removed = [key for key, value in values.items() if value is None]
    if added:
        words += ["--add-config", quoted(",".join(added))]
    if removed:
        words += ["--delete-config", quoted(",".join(removed))]
    return " ".join(words)


def quoted(text: str) -> str:
    """One shell word that shows every character; what does not print is escaped as in bash."""
    if text.isprintable():
        return shlex.quote(text)
    return "$'" + "".join(_ansi_c(character) for character in text) + "'"


def _pair(key: str, value: str) -> str:
    # The tool splits at commas and equal signs, but for those in brackets, which it takes away.
    return f"{key}=[{value}]" if CONFIGS[key].is_list else f"{key}={value}"


def _ansi_c(character: str) -> str:
    if character in "\\'":
        return "\\" + character
    if character.isprintable():
        return character
    return "".join(f"\\x{byte:02x}" for byte in character.encode("utf-8", "surrogatepass"))
