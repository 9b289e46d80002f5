"""Desired configs -> the changes an operator may make, with reason, evidence and command line.

Pure: what is desired, the time, the bounds and what we did before are arguments; the same ones give
the same plan. Nothing is applied here.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import groupby

from quotaflow.pipelines.feedback import guards
from quotaflow.pipelines.feedback.change import (
    RENEW,
    SUBTRACT,
    BlockedChange,
    Change,
    Operation,
    Plan,
    apply_operation,
    is_same_value,
    operation,
)
from quotaflow.pipelines.feedback.desired_configs import DesiredConfig, Group
from quotaflow.pipelines.feedback.guards import CurrentConfig, PlanPolicy
from quotaflow.pipelines.feedback.kafka_configs import Connection, command
from quotaflow.pipelines.feedback.ledger import Ledger
from quotaflow.schemas.configs import CLIENT_METRICS, CONFIGS, TOPIC

NOTHING = Ledger()


def plan(
    desired: Iterable[DesiredConfig],
    now: datetime,
    bounds: PlanPolicy,
    connection: Connection,
    ledger: Ledger = NOTHING,
) -> Plan:
    """Sort desired configs into changes and what is held back; what is so already is neither.

    Where two sources want one config, the more urgent one has it: the lower priority, then the
    table and key of the evidence that come first.
    """
    rows, held = _sorted_out(_concerning(desired, ledger), now, bounds)
    groups = [tuple(of) for _, of in groupby(rows, key=_group)]
    planned: list[Change] = []
    too_many = _too_many(groups, bounds)
    for group in groups:
        standing = {row.config_key: _current_config(row, bounds, ledger) for row in group}
        why = _group_blocked_reason(group, now, bounds, standing)
        if why is None and _group(group[0]) in too_many:
            why = f"plan.max_subscriptions is {bounds.max_subscriptions}, and older ones come first"
        if why is not None:
            held += [BlockedChange(row, why) for row in group]
            continue
        changes, near = _changes(group, now, bounds, connection, standing)
        held += near
        planned += changes
    kept, over = guards.within_blast_radius(planned, bounds)
    return Plan(tuple(kept), (*held, *over))


def _concerning(desired: Iterable[DesiredConfig], ledger: Ledger) -> Iterator[DesiredConfig]:
    """Rows without those that would renew what is not ours; those with a blocked reason stay."""
    for row in desired:
        if not row.renew_only or _is_owned_for(row, ledger):
            yield row
        elif row.blocked_reason is not None:
            yield replace(row, renew_only=False)


def _is_owned_for(row: DesiredConfig, ledger: Ledger) -> bool:
    owned = ledger.owned.get((row.entity, row.config_key))
    return owned is not None and owned.record.evidence_table == row.evidence_table


def _sorted_out(
    desired: Iterable[DesiredConfig], now: datetime, bounds: PlanPolicy
) -> tuple[list[DesiredConfig], list[BlockedChange]]:
    """The rows that may be planned as far as they themselves tell, one per config."""
    in_order = sorted(desired, key=_order)
    first: dict[tuple[object, str], DesiredConfig] = {}
    rows, held = [], []
    for row in in_order:
        why = (None if row.renew_only else row.blocked_reason) or guards.stale_evidence(
            row, now, bounds
        )
        if why is not None:
            held.append(BlockedChange(row, why))
            continue
        taken = first.setdefault((row.entity, row.config_key), row)
        if taken is row:
            rows.append(row)
        else:
            why = f"{taken.evidence_table} ({taken.evidence_key}) {_wish(taken)}"
            held.append(BlockedChange(row, f"{why}, and is more urgent"))
    return rows, held


def _wish(row: DesiredConfig) -> str:
    return f"wants {row.config_value} of it" if row.blocked_reason is None else "wants it to go on"


def _too_many(groups: Sequence[Group], bounds: PlanPolicy) -> set[tuple[int | str, ...]]:
    asked = sorted(filter(_is_subscription, groups), key=lambda group: group[0].since)
    return {_group(group[0]) for group in asked[bounds.max_subscriptions :]}


def _is_subscription(group: Group) -> bool:
    return any(r.entity_type == CLIENT_METRICS and r.config_value is not None for r in group)


def _current_config(row: DesiredConfig, bounds: PlanPolicy, ledger: Ledger) -> CurrentConfig:
    seen_at = bounds.inputs_at.get(guards.SNAPSHOT)
    return CurrentConfig(
        ledger.current_value(row.entity, row.config_key, row.prior_value, seen_at), ledger
    )


def _group_blocked_reason(
    group: Group, now: datetime, bounds: PlanPolicy, standing: Mapping[str, CurrentConfig]
) -> str | None:
    whys = (guards.blocked_reason(row, now, bounds, standing[row.config_key]) for row in group)
    return next((why for why in whys if why), None) or bounds.harm(group)


def _changes(
    group: Group,
    now: datetime,
    bounds: PlanPolicy,
    connection: Connection,
    standing: Mapping[str, CurrentConfig],
) -> tuple[list[Change], list[BlockedChange]]:
    """What one entity's rows change or renew, and those that wait."""
    changes: list[Change] = []
    held: list[BlockedChange] = []
    for row in group:
        of = standing[row.config_key]
        seen = replace(row, prior_value=of.value)
        why = guards.wait_reason(row, now, bounds, of)
        if why is None:
            change = _change(seen, now, bounds, of.ledger)
        else:
            # Its lease must not end while something like it is wanted.
            lease_s = _lease_s(row, row.config_value, bounds)
            change = _renewal(seen, of.value, now, lease_s, of.ledger)
            held.append(BlockedChange(row, why))
        changes += [change] if change else []
    first = group[0]
    written = {c.desired.config_key: c.value for c in changes if c.operation.name != RENEW}
    line = command(first.entity, written, connection) if written else ""
    return [replace(c, command=line if c.operation.name != RENEW else "") for c in changes], held


def _change(row: DesiredConfig, now: datetime, bounds: PlanPolicy, ledger: Ledger) -> Change | None:
    config = CONFIGS[row.config_key]
    bounded = guards.step(row, row.prior_value, bounds)
    value = None if bounded is None else config.canonical(bounded)
    lease_s = _lease_s(row, value, bounds)
    if is_same_value(row.config_key, value, row.prior_value):
        return _renewal(row, value, now, lease_s, ledger)
    if row.renew_only:
        return None
    todo = operation(row.config_key, row.prior_value, value)
    after = apply_operation(row.prior_value, todo)
    return Change(
        row,
        after,
        todo,
        command="",
        note=_note(row, value, after),
        lease_s=None if todo.name == SUBTRACT else lease_s,
    )


def _lease_s(row: DesiredConfig, value: str | None, bounds: PlanPolicy) -> int | None:
    is_removed = value is None and not row.renew_only
    return None if is_removed else row.lease_s or bounds.lease_s


def _renewal(
    row: DesiredConfig, value: str | None, now: datetime, lease_s: int | None, ledger: Ledger
) -> Change | None:
    owned = ledger.owned.get((row.entity, row.config_key))
    if owned is None or owned.expires_at is None or lease_s is None:
        return None
    is_ours = owned.entries or is_same_value(row.config_key, owned.value, value)
    if not is_ours or owned.expires_at - now > timedelta(seconds=lease_s) / 2:
        return None
    return Change(row, value, Operation(RENEW, None), command="", note="", lease_s=lease_s)


def _note(row: DesiredConfig, value: str | None, after: str | None) -> str:
    config = CONFIGS[row.config_key]
    notes = []
    if config.entity_type == TOPIC and after is not None:
        notes.append(f"valid while the list is {row.prior_value}: the tool sets lists whole")
    if not is_same_value(row.config_key, value, after):
        notes.append(f"what is to be added follows: {row.config_value} is wanted")
    elif not is_same_value(row.config_key, row.config_value, value):
        notes.append(f"a step on the way to {row.config_value}")
    if config.refusal:
        notes.append(
            f"stock Kafka refuses {config.key} (broker: {config.refusal}; its kafka-configs.sh "
            "does not take it either): this line works only with brokers and tools of KIP-936"
        )
    return "; ".join(notes)


def _group(row: DesiredConfig) -> tuple[int | str, ...]:
    return (row.priority, *row.entity.order)


def _order(row: DesiredConfig) -> tuple[int | str, ...]:
    told = (row.evidence_table, row.evidence_key, row.config_value or "")
    return (*_group(row), row.config_key, *told)
