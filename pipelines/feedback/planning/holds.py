"""Why a config is left to the person or program that set it, until a person releases it.

A config is ours to change if its last alteration was ours, or if a person released it since. All
other set configs are kept as they are. Pure: ledger, alterations and values are arguments.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from quotaflow.pipelines.feedback.configs.change import DELETE, is_same_value, shown
from quotaflow.pipelines.feedback.configs.kafka_configs import quoted
from quotaflow.pipelines.feedback.ledger.ledger import Key, Ledger, Record
from quotaflow.pipelines.feedback.ledger.outcome import MAY_LAND_FOR
from quotaflow.schemas.configs import (
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
)

DECIDED_BY_PROPOSALS = frozenset(
    config.key for config in (LEADER_RATE, FOLLOWER_RATE, LEADER_REPLICAS, FOLLOWER_REPLICAS)
)
"""Throttles of replication: the answer replication_proposals decides by their setter, entry by
entry, and conf names the setters whose entries may be removed (replication.cleanup_principals)."""

_TIME = "%Y-%m-%d %H:%M:%S UTC"
_NEVER = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Alteration:
    """The last alteration of a config that a broker accepted, by the request log.

    `writer` is the principal, client id and time, for people. `is_own`: by a login of ours; the
    ledger is compared too, because a command may have another login than the last snapshot.
    """

    altered_at: datetime
    writer: str
    operation: str
    config_value: str | None
    is_own: bool = False


@dataclass(frozen=True, slots=True)
class SeenConfig:
    """A config as the last snapshot or a broker shows it, null where it is not set, and when."""

    value: str | None
    seen_at: datetime | None


def hold_reason(key: Key, seen: SeenConfig, last: Alteration | None, ledger: Ledger) -> str | None:
    """Why no plan may change this config; None if one may.

    `last` is the last alteration in the request log, None where the log shows none.
    """
    if key[1] in DECIDED_BY_PROPOSALS:
        return None
    why = (
        _altered_reason(key, last, ledger)
        or _yielded_reason(key, ledger)
        or _seen_reason(key, seen, last, ledger)
    )
    return why and f"{why}; {release_command(key)} lets plans change it"


def holds(
    seen: Mapping[Key, SeenConfig], alterations: Mapping[Key, Alteration], ledger: Ledger
) -> dict[Key, str]:
    """The configs that no plan may change, each with the reason."""
    whys = {key: hold_reason(key, each, alterations.get(key), ledger) for key, each in seen.items()}
    return {key: why for key, why in whys.items() if why is not None}


def release_command(key: Key) -> str:
    """The command by which a person allows plans to change a config."""
    entity, config_key = key
    name = "" if entity.is_default else f"/{entity.entity_name}"
    words = ["quotaflow release", quoted(f"{entity.entity_type}{name}"), quoted(config_key)]
    if entity.client_id is not None:
        words += ["--client-id", quoted(entity.client_id)]
    return " ".join(words)


def _altered_reason(key: Key, last: Alteration | None, ledger: Ledger) -> str | None:
    if last is None or last.altered_at <= _decided_at(key, ledger) or _is_ours(key, last, ledger):
        return None
    done = "removed it" if last.operation == DELETE else "set it"
    return f"{last.writer} {done}, so it is theirs"


def _decided_at(key: Key, ledger: Ledger) -> datetime:
    """When we last wrote a config, or a person released it."""
    records = (ledger.last_writes.get(key), ledger.released.get(key))
    times = [record.event_time for record in records if record is not None]
    return max(times, default=_NEVER)


def _is_ours(key: Key, last: Alteration, ledger: Ledger) -> bool:
    """Whether an alteration is a write of ours: by our login, or as the ledger has it."""
    if last.is_own:
        return True
    writes = [*ledger.open_records, *filter(None, [ledger.last_writes.get(key)])]
    return any(record.key == key and _is_same_write(last, record) for record in writes)


def _is_same_write(last: Alteration, record: Record) -> bool:
    is_near = abs(last.altered_at - record.event_time) <= MAY_LAND_FOR
    value = None if last.operation == DELETE else last.config_value
    is_same = last.operation == record.operation and (
        is_same_value(record.config_key, value, record.operand)
    )
    return is_near and is_same


def _yielded_reason(key: Key, ledger: Ledger) -> str | None:
    yielded, released = ledger.yielded.get(key), ledger.released.get(key)
    if yielded is None or (released is not None and released.event_time > yielded.event_time):
        return None
    return f"left to others at {yielded.event_time:{_TIME}} ({yielded.detail})"


def _seen_reason(key: Key, seen: SeenConfig, last: Alteration | None, ledger: Ledger) -> str | None:
    """Why a value that no log explains is another login's."""
    owned, released = ledger.owned.get(key), ledger.released.get(key)
    if owned is not None:
        is_newer = seen.seen_at is not None and seen.seen_at > owned.since
        if owned.entries or not is_newer or is_same_value(key[1], seen.value, owned.value):
            return None
        return f"it is {shown(seen.value)}, and we wrote {owned.value}: it was changed since"
    if seen.value is None or _explains(last, key, seen):
        return None
    written = ledger.last_writes.get(key)
    ours = [record.config_value for record in (released, written) if record is not None]
    if any(is_same_value(key[1], seen.value, value) for value in ours):
        return None
    when = "since" if written or released or last else "before the request log began"
    return f"it was set {when}, and no request log shows by whom"


def _explains(last: Alteration | None, key: Key, seen: SeenConfig) -> bool:
    """Whether the log has the value, or the snapshot is older than the log."""
    if last is None:
        return False
    is_older = seen.seen_at is None or seen.seen_at <= last.altered_at
    return is_older or is_same_value(key[1], seen.value, last.config_value)
