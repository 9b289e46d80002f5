"""Desired configs -> the changes an operator may make, with reason, evidence and command line.

Pure: what is desired, the time and the bounds are arguments; the same ones give the same plan.
Nothing is applied here.
"""

import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from quotaflow.schemas.configs import CONFIGS

# kafka-configs reads an empty name, and some tools this one, as the default of all users.
_NAMES_OF_DEFAULTS = ("", "<default>")


@dataclass(frozen=True, slots=True)
class Desired:
    """One row of the view desired_configs."""

    cluster_id: str
    entity_type: str
    entity_name: str
    config_key: str
    config_value: str
    reason: str
    evidence_table: str
    evidence_key: str
    since: datetime
    priority: int


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a plan may not touch: principals by the name Kafka prints, and what has not settled."""

    excluded_principals: frozenset[str] = frozenset()
    settle: timedelta = timedelta(0)
    cluster_id: str | None = None


@dataclass(frozen=True, slots=True)
class Connection:
    """How kafka-configs reaches the cluster; a login stands in a file, never on a command line."""

    bootstrap_servers: str
    needs_login: bool = False


@dataclass(frozen=True, slots=True)
class Change:
    """A config to write, why, and the command that would; `note` says what may refuse it."""

    desired: Desired
    value: str
    command: str
    note: str


@dataclass(frozen=True, slots=True)
class Held:
    """A desired config that is not planned, and why."""

    desired: Desired
    why: str


@dataclass(frozen=True, slots=True)
class Plan:
    """Changes by priority, then by entity; and what was held back."""

    changes: tuple[Change, ...]
    held: tuple[Held, ...]


def plan(desired: Iterable[Desired], now: datetime, bounds: Bounds, connection: Connection) -> Plan:
    """Sort desired configs into changes and what is held back."""
    changes, held = list[Change](), list[Held]()
    for row in sorted(desired, key=_order):
        why = _why_held(row, now, bounds)
        if why is None:
            changes.append(_change(row, connection))
        else:
            held.append(Held(row, why))
    return Plan(tuple(changes), tuple(held))


def command(row: Desired, value: str, connection: Connection) -> str:
    """The kafka-configs command line of a change, safe to paste whatever the entity is called."""
    words = ["kafka-configs.sh", "--bootstrap-server", quoted(connection.bootstrap_servers)]
    if connection.needs_login:
        words += ["--command-config", "client.properties"]
    words += ["--alter", "--entity-type", f"{row.entity_type}s"]
    name = quoted(row.entity_name)
    # A name like an option must not be read as one.
    words += (
        [f"--entity-name={name}"] if row.entity_name.startswith("-") else ["--entity-name", name]
    )
    return " ".join([*words, "--add-config", f"{row.config_key}={value}"])


def quoted(text: str) -> str:
    """One shell word that shows every character; what does not print is escaped as in bash."""
    if text.isprintable():
        return shlex.quote(text)
    return "$'" + "".join(_ansi_c(character) for character in text) + "'"


def _ansi_c(character: str) -> str:
    if character in "\\'":
        return "\\" + character
    if character.isprintable():
        return character
    return "".join(f"\\x{byte:02x}" for byte in character.encode("utf-8", "surrogatepass"))


def _change(row: Desired, connection: Connection) -> Change:
    config = CONFIGS[row.config_key]
    value = config.canonical(row.config_value)
    note = ""
    if config.refusal:
        note = (
            f"stock Kafka refuses {config.key} (broker: {config.refusal}; its kafka-configs.sh "
            "does not take it either): this line works only with brokers and tools of KIP-936"
        )
    return Change(row, value, command(row, value, connection), note)


def _why_held(row: Desired, now: datetime, bounds: Bounds) -> str | None:
    if row.entity_name in _NAMES_OF_DEFAULTS:
        return f"the name {row.entity_name!r} would be read as the default of all users"
    if f"User:{row.entity_name}" in bounds.excluded_principals:
        return "excluded: plan.excluded_principals, or this pipeline's own login"
    if bounds.cluster_id is not None and row.cluster_id != bounds.cluster_id:
        return f"seen in cluster {row.cluster_id}, and conf means {bounds.cluster_id}"
    if row.since > now - bounds.settle:
        settle_s = bounds.settle // timedelta(seconds=1)
        return f"seen since {row.since:%H:%M:%S} UTC only: rows settle for {settle_s} s"
    return _value_problem(row)


def _value_problem(row: Desired) -> str | None:
    config = CONFIGS.get(row.config_key)
    if config is None or config.entity_type != row.entity_type:
        return f"{row.config_key} of a {row.entity_type} is no config that may be written"
    try:
        config.canonical(row.config_value)
    except ValueError as error:
        return str(error)
    return None


def _order(row: Desired) -> tuple[int | str, ...]:
    return (row.priority, row.cluster_id, row.entity_type, row.entity_name, row.config_key)
