"""Changes as kafka-configs command lines, safe to paste for any name of the entity."""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from quotaflow.pipelines.config import KafkaSection
from quotaflow.udfs.rules.quota import QuotaEntity

if TYPE_CHECKING:
    from quotaflow.pipelines.feedback.configs.desired_configs import ConfigEntity

ANY_BROKER = "BROKER:9092"
"""The address in commands where no conf has one."""


@dataclass(frozen=True, slots=True)
class Connection:
    """How Kafka's tools reach the cluster; a login is in a file, never on a command line."""

    bootstrap_servers: str
    needs_login: bool = False

    @classmethod
    def from_conf(cls, kafka: KafkaSection) -> "Connection":
        """The connection to the cluster of conf."""
        properties = kafka.properties
        protocol = properties.get("security.protocol", "PLAINTEXT")
        return cls(properties.get("bootstrap.servers", ANY_BROKER), protocol != "PLAINTEXT")


def address(host: str, port: int) -> str:
    """The address of a broker, as Kafka's tools take it."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def command(
    entity: "ConfigEntity", values: Mapping[str, str | None], connection: Connection
) -> str:
    """The command line that sets configs of one entity, and removes those without a value."""
    from quotaflow.schemas.configs import CLIENT_ID, ENTITY_TYPES  # noqa: PLC0415  quotas need none

    added = [_pair(key, value) for key, value in values.items() if value is not None]
    removed = [key for key, value in values.items() if value is None]
    named = [(ENTITY_TYPES[entity.entity_type], entity.entity_name)]
    if entity.client_id is not None:
        named.append((ENTITY_TYPES[CLIENT_ID], entity.client_id))
    return _alter(named, added, removed, connection)


def quota_command(entity: QuotaEntity, key: str, quota: float, connection: Connection) -> str:
    """The command line that sets a client quota of an entity, whose parts are names or defaults."""
    parts = [
        ("users", entity.user, entity.is_default_user),
        ("clients", entity.client_id, entity.is_default_client_id),
    ]
    entities = [(kind, name) for kind, name, is_default in parts if name is not None or is_default]
    return _alter(entities, [f"{key}={quota:.15g}"], [], connection)


def reassign_command(file: str, bytes_per_s: float, connection: Connection) -> str:
    """The kafka-reassign-partitions command line that starts a throttled move."""
    words = [*tool("kafka-reassign-partitions.sh", connection), "--execute"]
    words += ["--reassignment-json-file", quoted(file), "--throttle", f"{bytes_per_s:.0f}"]
    return " ".join(words)


def _alter(
    entities: Iterable[tuple[str, str | None]],
    added: Sequence[str],
    removed: Sequence[str],
    connection: Connection,
) -> str:
    words = [*tool("kafka-configs.sh", connection), "--alter"]
    for kind, name in entities:
        words += ["--entity-type", kind, *_named(name)]
    if added:
        words += ["--add-config", quoted(",".join(added))]
    if removed:
        words += ["--delete-config", quoted(",".join(removed))]
    return " ".join(words)


def tool(name: str, connection: Connection) -> list[str]:
    """The start of a command line: one of Kafka's tools, and how it reaches the cluster."""
    login = ["--command-config", "client.properties"] if connection.needs_login else []
    return [name, "--bootstrap-server", quoted(connection.bootstrap_servers), *login]


def _named(name: str | None) -> list[str]:
    if name is None:
        return ["--entity-default"]
    # A name like an option must not be read as one.
    return [f"--entity-name={quoted(name)}"] if name[:1] == "-" else ["--entity-name", quoted(name)]


def quoted(text: str) -> str:
    """One shell word that shows every character; what does not print is escaped as in bash."""
    if text.isprintable():
        return shlex.quote(text)
    return "$'" + "".join(_ansi_c(character) for character in text) + "'"


def _pair(key: str, value: str) -> str:
    from quotaflow.schemas.configs import CONFIGS  # noqa: PLC0415  as above

    # The tool splits at commas and equal signs, except inside brackets, which it removes.
    return f"{key}=[{value}]" if CONFIGS[key].is_list else f"{key}={value}"


def _ansi_c(character: str) -> str:
    if character in "\\'":
        return "\\" + character
    if character.isprintable():
        return character
    return "".join(f"\\x{byte:02x}" for byte in character.encode("utf-8", "surrogatepass"))
