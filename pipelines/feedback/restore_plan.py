"""Giving back: what we wrote, once its lease is over or an operator asks, to what stood before us.

Never over somebody else's later change: then the config is theirs, and we say whose it is. Pure:
what the cluster has and the time are arguments.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import groupby

from quotaflow.pipelines.feedback import guards
from quotaflow.pipelines.feedback.change import (
    APPEND,
    DELETE,
    RESTORE,
    SET,
    SUBTRACT,
    BlockedChange,
    Change,
    Operation,
    apply_operation,
    is_same_value,
    list_entries,
)
from quotaflow.pipelines.feedback.desired_configs import ConfigEntity, DesiredConfig
from quotaflow.pipelines.feedback.guards import PlanPolicy
from quotaflow.pipelines.feedback.kafka_configs import Connection, command
from quotaflow.pipelines.feedback.ledger import Ledger, OwnedConfig
from quotaflow.pipelines.feedback.preflight import Preflight
from quotaflow.schemas.configs import CLIENT_METRICS

Key = tuple[ConfigEntity, str]
Actual = Mapping[ConfigEntity, Mapping[str, str]]
_PRIORITY = 0
_LATEST = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class LaterWriter:
    """Who altered a config after us, told for an operator, and by which operation.

    Of several who named entries of a list it is the last, and all these entries are its operand.
    `operand` is null too where the request log keeps it from being shown.
    """

    writer: str
    operation: str
    operand: str | None

    def claimed_entries(self, entries: frozenset[str]) -> frozenset[str]:
        """Those of a list's entries that it wants there."""
        if self.operation not in {SET, APPEND}:
            return frozenset()
        return entries if self.operand is None else entries & set(list_entries(self.operand))


@dataclass(frozen=True, slots=True)
class YieldedConfig:
    """A config that is not as we left it: what it is now, and who made it so where that is told."""

    key: Key
    owned: OwnedConfig
    reason: str


@dataclass(frozen=True, slots=True)
class Refused:
    """A config that a guard keeps from being given back, and why."""

    key: Key
    why: str


@dataclass(frozen=True, slots=True)
class RestorePlan:
    """What is to be given back, what is no longer ours to give, what a guard refuses, and what
    waits: for an answer, until it would harm nobody, or for the next run.
    """

    changes: tuple[Change, ...]
    yielded: tuple[YieldedConfig, ...]
    unanswered: tuple[Key, ...] = ()
    blocked: tuple[BlockedChange, ...] = ()
    refused: tuple[Refused, ...] = ()
    postponed: tuple[BlockedChange, ...] = ()


def expired(ledger: Ledger, now: datetime, *, include_all: bool = False) -> dict[Key, OwnedConfig]:
    """What we hold whose lease is over, or all of it, in the order of entities and keys.

    The lease of a client-metrics resource is over once that of its last key is.
    """
    keys = sorted(ledger.owned, key=lambda key: (*key[0].order, key[1]))
    # A resource that has lost its match alone asks every client there is.
    standing = {
        key[0]
        for key in keys
        if key[0].entity_type == CLIENT_METRICS and not _is_over(ledger.owned[key], now)
    }
    return {
        key: ledger.owned[key]
        for key in keys
        if include_all or (_is_over(ledger.owned[key], now) and key[0] not in standing)
    }


def plan_restore(
    owned: Mapping[Key, OwnedConfig],
    actual: Actual,
    setters: Mapping[Key, LaterWriter],
    connection: Connection,
) -> RestorePlan:
    """The changes that give back what is ours still; `setters` tells who changed what after us.

    A client-metrics resource is given back whole or not at all. Entities that are not in `actual`
    did not answer, and wait for the next time.
    """
    unanswered = tuple(key for key in owned if key[0] not in actual)
    there = {key: held for key, held in owned.items() if key[0] in actual}
    whys = {
        key: _yield_reason(key, held, actual[key[0]].get(key[1]), setters.get(key))
        for key, held in there.items()
    }
    of_others = {
        key[0]: why for key, why in whys.items() if why and key[0].entity_type == CLIENT_METRICS
    }
    changes: list[Change] = []
    yielded: list[YieldedConfig] = []
    for key, held in there.items():
        why = whys[key] or of_others.get(key[0])
        if why is not None:
            yielded.append(YieldedConfig(key, held, why))
        else:
            now = actual[key[0]].get(key[1])
            changes.append(_change(key, _ours(held, setters.get(key)), now))
    return RestorePlan(tuple(_with_commands(changes, connection)), tuple(yielded), unanswered)


def known(owned: Mapping[Key, OwnedConfig]) -> tuple[dict[Key, OwnedConfig], tuple[Refused, ...]]:
    """What can be asked for in a cluster, and what a record names that nobody may write."""
    whys = {key: guards.config_problem(*key) for key in owned}
    refused = tuple(Refused(key, why) for key, why in whys.items() if why is not None)
    return {key: held for key, held in owned.items() if whys[key] is None}, refused


def permitted(found: RestorePlan, bounds: PlanPolicy, connection: Connection) -> RestorePlan:
    """Without what the guards of a plan do not let anybody write: it is refused, with why.

    Of a client-metrics resource either all is given back or nothing.
    """
    whys = {c.desired.key: guards.return_problem(c.written, bounds) for c in found.changes}
    whole = {
        key[0]: why for key, why in whys.items() if why and key[0].entity_type == CLIENT_METRICS
    }
    changes: list[Change] = []
    refused: list[Refused] = []
    for change in found.changes:
        key = change.desired.key
        why = whys[key] or whole.get(key[0])
        if why is None:
            changes.append(change)
        else:
            refused.append(Refused(key, _by_hand(change, why, connection)))
    return replace(
        found,
        changes=tuple(_with_commands(changes, connection)),
        refused=(*found.refused, *refused),
    )


def stepwise(found: RestorePlan, bounds: PlanPolicy) -> RestorePlan:
    """With as many entities of each type as one run may change, what we wrote first going first."""
    first: dict[ConfigEntity, datetime] = {}
    for change in found.changes:
        first[change.entity] = min(first.get(change.entity, _LATEST), change.desired.since)
    oldest = sorted(found.changes, key=lambda c: (first[c.entity], c.entity.order))
    changes, postponed = guards.within_blast_radius(oldest, bounds)
    return replace(found, changes=tuple(changes), postponed=tuple(postponed))


def without_harmful(unchecked: RestorePlan, check: Preflight) -> RestorePlan:
    """Without the resources whose end would harm a client that lives: they are held, with why.

    They go one after the other: each is judged on what stands once those before it are gone.
    """
    changes: list[Change] = []
    held: list[BlockedChange] = []
    for _, of in groupby(unchecked.changes, key=lambda change: change.entity):
        group = tuple(of)
        rows = tuple(change.desired for change in group)
        why = check.harm(rows)
        if why is None:
            changes += group
            check = check.with_rows(rows)
        else:
            held += [BlockedChange(row, f"{why}; by hand: {group[0].command}") for row in rows]
    return replace(unchecked, changes=tuple(changes), blocked=tuple(held))


def _by_hand(change: Change, why: str, connection: Connection) -> str:
    row = change.desired
    shown = ["not set" if value is None else value for value in (row.prior_value, change.value)]
    line = command(change.entity, {row.config_key: change.value}, connection)
    return f"{shown[0]} -> {shown[1]}: {why}; by hand, if that is what stood before: {line}"


def _is_over(owned: OwnedConfig, now: datetime) -> bool:
    return owned.expires_at is not None and owned.expires_at <= now


def _ours(owned: OwnedConfig, setter: LaterWriter | None) -> OwnedConfig:
    """The same without entries of a list that somebody else has named since."""
    if setter is None or not owned.entries:
        return owned
    theirs = setter.claimed_entries(owned.entries)
    return replace(
        owned, entry_times={e: at for e, at in owned.entry_times.items() if e not in theirs}
    )


def _yield_reason(
    key: Key, owned: OwnedConfig, now: str | None, setter: LaterWriter | None
) -> str | None:
    """Why it is not ours to give back; None where it is."""
    by = "" if setter is None else f", set by {setter.writer}"
    if owned.entries:
        there = set(list_entries(now)) & owned.entries
        if not there:
            return f"none of its entries that were ours is there any more{by}"
        is_any_ours = there & _ours(owned, setter).entries
        return None if is_any_ours else f"its entries that were ours are there{by} since"
    if not is_same_value(key[1], now, owned.value):
        shown = "not set" if now is None else f"{now}"
        return f"it is {shown} now, and we wrote {owned.value}{by}"
    # The same value, but meant by somebody else: it is theirs now.
    return None if setter is None else f"it is as we wrote it{by} since"


def _with_commands(changes: Iterable[Change], connection: Connection) -> Iterator[Change]:
    """A resource must not be without its match between two lines."""
    for entity, of in groupby(changes, key=lambda change: change.entity):
        group = list(of)
        line = command(entity, {c.desired.config_key: c.value for c in group}, connection)
        yield from (replace(change, command=line) for change in group)


def _change(key: Key, owned: OwnedConfig, now: str | None) -> Change:
    todo = _operation(owned, now)
    value = apply_operation(now, todo)
    record = owned.record
    row = DesiredConfig(
        cluster_id=key[0].cluster_id,
        entity_type=key[0].entity_type,
        entity_name=key[0].entity_name,
        entity_client_id=key[0].client_id,
        config_key=key[1],
        config_value=value,
        prior_value=now,
        reason=f"given back what plan {record.plan_id} wrote: {record.reason}",
        evidence_table=record.evidence_table,
        evidence_key=record.evidence_key,
        since=owned.since,
        priority=_PRIORITY,
    )
    return Change(row, value, todo, command="", note="", purpose=RESTORE)


def _operation(owned: OwnedConfig, now: str | None) -> Operation:
    if owned.entries:
        there = [part for part in list_entries(now) if part in owned.entries]
        if len(there) == len(list_entries(now)):
            return Operation(DELETE, None)
        return Operation(SUBTRACT, ",".join(there))
    if owned.prior_value is None:
        return Operation(DELETE, None)
    return Operation(SET, owned.prior_value)
