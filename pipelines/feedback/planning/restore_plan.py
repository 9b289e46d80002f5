"""The plan of a restore: set a config back to its baseline once its lease ended, or on request.

A later change by another login is never overwritten: then the config is theirs, and we report the
writer. Pure: the values of the cluster and the time are arguments.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import groupby

from quotaflow.pipelines.feedback.configs.change import (
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
    shown,
)
from quotaflow.pipelines.feedback.configs.desired_configs import ConfigEntity, DesiredConfig, Group
from quotaflow.pipelines.feedback.configs.kafka_configs import Connection, command
from quotaflow.pipelines.feedback.ledger.ledger import Key, Ledger, OwnedConfig
from quotaflow.pipelines.feedback.planning import guards
from quotaflow.pipelines.feedback.planning.guards import PlanPolicy
from quotaflow.pipelines.feedback.planning.preflight import Preflight
from quotaflow.pipelines.feedback.planning.trusted_bounds import match_problem
from quotaflow.schemas.configs import CLIENT_METRICS, MATCH

Actual = Mapping[ConfigEntity, Mapping[str, str]]
_PRIORITY = 0
_NARROWED_LEASE_S = 600
"""So long a resource stays for clients that its removal would harm, before restore asks again."""
_LATEST = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class LaterWriter:
    """The writer that altered a config after us, in words, and its operation.

    If several added entries of a list, it is the last of them, and `operand` has all these entries.
    `operand` is null also if the request log does not have it.
    """

    writer: str
    operation: str
    operand: str | None

    def claimed_entries(self, entries: frozenset[str]) -> frozenset[str]:
        """The entries of a list that this writer set."""
        if self.operation not in {SET, APPEND}:
            return frozenset()
        return entries if self.operand is None else entries & set(list_entries(self.operand))


@dataclass(frozen=True, slots=True)
class YieldedConfig:
    """A config that is no longer ours, and why: its value now and, if known, its writer."""

    key: Key
    owned: OwnedConfig
    reason: str


@dataclass(frozen=True, slots=True)
class Refused:
    """A config that a guard does not let us restore, and why."""

    key: Key
    why: str


@dataclass(frozen=True, slots=True)
class RestorePlan:
    """The changes of a restore, and the configs that are not restored.

    `yielded` are no longer ours, `unanswered` did not answer, `blocked` would harm a live client,
    and `refused` do not pass a guard. `distrusted` names the rows and leases that are not believed.
    """

    changes: tuple[Change, ...]
    yielded: tuple[YieldedConfig, ...]
    unanswered: tuple[Key, ...] = ()
    blocked: tuple[BlockedChange, ...] = ()
    refused: tuple[Refused, ...] = ()
    distrusted: tuple[str, ...] = ()


def expired(ledger: Ledger, now: datetime, *, include_all: bool = False) -> dict[Key, OwnedConfig]:
    """The owned configs whose lease ended, or all, in the order of entities and keys.

    The lease of a client-metrics resource ends when that of its last key does.
    """
    keys = sorted(ledger.owned, key=lambda key: (*key[0].order, key[1]))
    # A resource without its match would subscribe every client.
    unexpired = {
        key[0]
        for key in keys
        if key[0].entity_type == CLIENT_METRICS and not _is_over(ledger.owned[key], now)
    }
    return {
        key: ledger.owned[key]
        for key in keys
        if include_all or (_is_over(ledger.owned[key], now) and key[0] not in unexpired)
    }


def plan_restore(
    owned: Mapping[Key, OwnedConfig],
    actual: Actual,
    setters: Mapping[Key, LaterWriter],
    connection: Connection,
) -> RestorePlan:
    """The changes that restore the configs that are still ours.

    `setters`: the later writer of each config. A client-metrics resource is restored whole or not
    at all. Entities that are not in `actual` did not answer, and wait for the next run.
    """
    unanswered = tuple(key for key in owned if key[0] not in actual)
    answered = {key: config for key, config in owned.items() if key[0] in actual}
    whys = {
        key: _yield_reason(key, config, actual[key[0]].get(key[1]), setters.get(key))
        for key, config in answered.items()
    }
    of_others = {
        key[0]: why for key, why in whys.items() if why and key[0].entity_type == CLIENT_METRICS
    }
    changes: list[Change] = []
    yielded: list[YieldedConfig] = []
    for key, config in answered.items():
        why = whys[key] or of_others.get(key[0])
        if why is not None:
            yielded.append(YieldedConfig(key, config, why))
        else:
            now = actual[key[0]].get(key[1])
            changes.append(_change(key, _ours(config, setters.get(key)), now))
    return RestorePlan(tuple(_with_commands(changes, connection)), tuple(yielded), unanswered)


def writable(
    owned: Mapping[Key, OwnedConfig],
) -> tuple[dict[Key, OwnedConfig], tuple[Refused, ...]]:
    """Owned configs that may be written, and those of records that nobody may write."""
    whys = {key: guards.config_problem(*key) for key in owned}
    refused = tuple(Refused(key, why) for key, why in whys.items() if why is not None)
    return {key: config for key, config in owned.items() if whys[key] is None}, refused


def permitted(
    unchecked: RestorePlan, actual: Actual, bounds: PlanPolicy, connection: Connection
) -> RestorePlan:
    """Refuse the changes that do not pass the guards of a plan, each with the reason.

    A client-metrics resource is restored whole or not at all.
    """
    whys = {c.desired.key: guards.return_problem(c.written, bounds) for c in unchecked.changes}
    whole = {
        key[0]: why for key, why in whys.items() if why and key[0].entity_type == CLIENT_METRICS
    }
    for entity, group in groupby(unchecked.changes, key=lambda change: change.entity):
        why = match_problem(list(group), actual.get(entity, {}))
        whole |= {} if why is None or entity in whole else {entity: why}
    changes: list[Change] = []
    refused: list[Refused] = []
    for change in unchecked.changes:
        key = change.desired.key
        why = whys[key] or whole.get(key[0])
        if why is None:
            changes.append(change)
        else:
            refused.append(Refused(key, _with_manual_command(change, why, connection)))
    return replace(
        unchecked,
        changes=tuple(_with_commands(changes, connection)),
        refused=(*unchecked.refused, *refused),
    )


def oldest_first(restore: RestorePlan) -> RestorePlan:
    """The entities that we wrote first go first, so that a run that is stopped left the newest."""
    first: dict[ConfigEntity, datetime] = {}
    for change in restore.changes:
        first[change.entity] = min(first.get(change.entity, _LATEST), change.desired.since)
    ordered = sorted(restore.changes, key=lambda c: (first[c.entity], c.entity.order))
    return replace(restore, changes=tuple(ordered))


def without_harmful(
    unchecked: RestorePlan, check: Preflight, connection: Connection
) -> RestorePlan:
    """Block the resources whose removal would harm a live client, each with the reason.

    Such a resource stays for these clients alone, if its match names others too. Each resource is
    checked as if those before it are removed already.
    """
    changes: list[Change] = []
    blocked: list[BlockedChange] = []
    for _, entity_changes in groupby(unchecked.changes, key=lambda change: change.entity):
        group = tuple(entity_changes)
        rows = tuple(change.desired for change in group)
        why = check.harm(rows)
        if why is None:
            changes += group
            check = check.with_rows(rows)
        else:
            blocked += [BlockedChange(row, f"{why}; by hand: {group[0].command}") for row in rows]
            narrowed = _narrowed(rows, check.match_of_harmed(rows), connection)
            if narrowed is not None:
                changes.append(narrowed)
                check = check.with_rows((narrowed.desired,))
    return replace(unchecked, changes=tuple(changes), blocked=tuple(blocked))


def _narrowed(rows: Group, match: str | None, connection: Connection) -> Change | None:
    """The change that keeps a resource for the clients of `match` alone, with a lease of its own.

    It is ours until it is removed: so it is a write as those of an apply.
    """
    row = next((row for row in rows if row.config_key == MATCH.key), None)
    if row is None or match is None:
        return None
    desired = replace(row, config_value=match)
    line = command(row.entity, {MATCH.key: match}, connection)
    return Change(desired, match, Operation(SET, match), line, "", _NARROWED_LEASE_S)


def _with_manual_command(change: Change, why: str, connection: Connection) -> str:
    row = change.desired
    line = command(change.entity, {row.config_key: change.value}, connection)
    values = f"{shown(row.prior_value)} -> {shown(change.value)}"
    return f"{values}: {why}; by hand, if that is what stood before: {line}"


def _is_over(owned: OwnedConfig, now: datetime) -> bool:
    return owned.expires_at is not None and owned.expires_at <= now


def _ours(owned: OwnedConfig, setter: LaterWriter | None) -> OwnedConfig:
    """The config without list entries that another login has set since."""
    if setter is None or not owned.entries:
        return owned
    theirs = setter.claimed_entries(owned.entries)
    return replace(
        owned, entry_times={e: at for e, at in owned.entry_times.items() if e not in theirs}
    )


def _yield_reason(
    key: Key, owned: OwnedConfig, now: str | None, setter: LaterWriter | None
) -> str | None:
    """Why a config is no longer ours; None if it is."""
    by = "" if setter is None else f", set by {setter.writer}"
    if owned.entries:
        there = set(list_entries(now)) & owned.entries
        if not there:
            return f"none of its entries that were ours is there any more{by}"
        is_any_ours = there & _ours(owned, setter).entries
        return None if is_any_ours else f"its entries that were ours are there{by} since"
    if not is_same_value(key[1], now, owned.value):
        return f"it is {shown(now)} now, and we wrote {owned.value}{by}"
    # The same value, but set by somebody else: it is theirs now.
    return None if setter is None else f"it is as we wrote it{by} since"


def _with_commands(changes: Iterable[Change], connection: Connection) -> Iterator[Change]:
    """One command line per entity: a resource must not be without its match between two lines."""
    for entity, entity_changes in groupby(changes, key=lambda change: change.entity):
        group = list(entity_changes)
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
        reason=f"restored what plan {record.plan_id} wrote: {record.reason}",
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
