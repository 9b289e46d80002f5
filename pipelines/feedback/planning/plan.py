"""Desired configs -> the changes of a plan, with reason, evidence and command line.

Pure: desired configs, time, policy and ledger are arguments, and the same ones give the same plan.
Nothing is applied here.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import groupby
from math import isfinite

from quotaflow.pipelines.feedback.configs.change import (
    RENEW,
    SUBTRACT,
    BlockedChange,
    Change,
    Operation,
    Plan,
    apply_operation,
    is_same_value,
    operation,
    purpose_of,
)
from quotaflow.pipelines.feedback.configs.desired_configs import DesiredConfig, Group
from quotaflow.pipelines.feedback.configs.kafka_configs import Connection, command
from quotaflow.pipelines.feedback.ledger.ledger import Ledger
from quotaflow.pipelines.feedback.planning import (
    blast_radius,
    guards,
    halt,
    quota_plan,
    strimzi,
    trusted_bounds,
)
from quotaflow.pipelines.feedback.planning.guards import CurrentConfig, PlanPolicy
from quotaflow.schemas.configs import CLIENT_METRICS, CONFIGS, TOPIC
from quotaflow.udfs.rules.limit import REVERT, TIGHTEN

NOTHING = Ledger()


def plan(
    desired: Iterable[DesiredConfig],
    now: datetime,
    bounds: PlanPolicy,
    connection: Connection,
    ledger: Ledger = NOTHING,
) -> Plan:
    """Sort desired configs into changes and blocked ones; a value in place is neither.

    If two sources desire values of one config, the more urgent one wins: the lower priority, then
    the table and key of the evidence that sort first.
    """
    desired = [*desired, *quota_plan.for_others(bounds, ledger)]
    rows, blocked = _sorted_out(_concerning(desired, ledger), now, bounds)
    groups = [tuple(entity_rows) for _, entity_rows in groupby(rows, key=_group)]
    planned: list[Change] = []
    too_many = _too_many(groups, bounds)
    for desired_rows in groups:
        group, left_out = bounds.preflight(desired_rows).without_harmed(desired_rows)
        blocked += [BlockedChange(group[0], left_out)] if left_out else []
        current = {row.config_key: _current_config(row, bounds, ledger) for row in group}
        why = _group_blocked_reason(group, now, bounds, current)
        if why is None and _group(group[0]) in too_many:
            why = f"plan.max_subscriptions is {bounds.max_subscriptions}, and older ones come first"
        if why is not None:
            blocked += [BlockedChange(row, why) for row in group]
            continue
        changes, near = _changes(group, now, bounds, connection, current)
        blocked += near
        planned += changes
    left: list[Change] = []
    if bounds.user_operator is not None:
        left = [change for change in planned if strimzi.is_concerned(change)]
        planned = [change for change in planned if not strimzi.is_concerned(change)]
        blocked += strimzi.blocked(left, bounds.user_operator)
    if bounds.halt is not None:
        unhalted = Plan(tuple(planned), tuple(blocked))
        return halt.halted_plan(unhalted, bounds.halt, bounds, connection, ledger)
    kept, over = blast_radius.within(planned, bounds.blast_radius, ledger, now)
    fragments = tuple(strimzi.fragments(left, bounds.strimzi_api))
    return Plan(tuple(kept), (*blocked, *over), fragments=fragments)


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
    """One row per config that may be planned by itself, and the blocked rows."""
    in_order = sorted(desired, key=_order)
    first: dict[tuple[object, str], DesiredConfig] = {}
    rows, blocked = [], []
    for row in in_order:
        why = (
            (None if row.renew_only else row.blocked_reason)
            or _not_finite(row)
            or guards.stale_evidence(row, now, bounds)
        )
        if why is not None:
            blocked.append(BlockedChange(row, why))
            continue
        taken = first.setdefault((row.entity, row.config_key), row)
        if taken is row:
            rows.append(row)
        else:
            why = f"{taken.evidence_table} ({taken.evidence_key}) {_wish(taken)}"
            blocked.append(BlockedChange(row, f"{why}, and is more urgent"))
    return rows, blocked


def _not_finite(row: DesiredConfig) -> str | None:
    """Why no rule can compute with the numbers of a row; None if all can."""
    numbers = (row.observed, row.least_value, row.usage_p99, row.history_s, row.quota_in_force)
    return (
        None
        if all(map(isfinite, filter(None, numbers)))
        else "a number in its row is infinite or not a number"
    )


def _wish(row: DesiredConfig) -> str:
    return f"wants {row.config_value} of it" if row.blocked_reason is None else "wants it to go on"


def _too_many(groups: Sequence[Group], bounds: PlanPolicy) -> set[tuple[int | str, ...]]:
    subscriptions = sorted(filter(_is_subscription, groups), key=lambda group: group[0].since)
    return {_group(group[0]) for group in subscriptions[bounds.max_subscriptions :]}


def _is_subscription(group: Group) -> bool:
    return any(r.entity_type == CLIENT_METRICS and r.config_value is not None for r in group)


def _current_config(row: DesiredConfig, bounds: PlanPolicy, ledger: Ledger) -> CurrentConfig:
    seen_at = bounds.inputs_at.get(guards.SNAPSHOT)
    return CurrentConfig(
        ledger.current_value(row.entity, row.config_key, row.prior_value, seen_at), ledger
    )


def _group_blocked_reason(
    group: Group, now: datetime, bounds: PlanPolicy, current: Mapping[str, CurrentConfig]
) -> str | None:
    whys = (guards.blocked_reason(row, now, bounds, current[row.config_key]) for row in group)
    return next((why for why in whys if why), None) or bounds.preflight(group).harm(group)


def _changes(
    group: Group,
    now: datetime,
    bounds: PlanPolicy,
    connection: Connection,
    current: Mapping[str, CurrentConfig],
) -> tuple[list[Change], list[BlockedChange]]:
    """The changes and renewals of one entity's rows, and the rows that wait."""
    changes: list[Change] = []
    blocked: list[BlockedChange] = []
    for row in group:
        config = current[row.config_key]
        decision = quota_plan.decide(
            replace(row, prior_value=config.value), now, bounds, config.ledger
        )
        seen, why_not = decision.row, decision.why_not
        if why_not is None and seen.config_value != row.config_value:
            why_not = guards.write_problem(seen, bounds)
        if why_not is not None and not decision.is_kept:
            blocked.append(BlockedChange(row, why_not))
            continue
        why = why_not or guards.wait_reason(seen, now, bounds, config)
        if why is None:
            change = _change(seen, now, bounds, config.ledger)
        else:
            # The lease must not end while a similar value is desired.
            # The rule of a limit may have set another value than its row names.
            kept = config.value if seen.direction == TIGHTEN else row.config_value
            lease_s = _lease_s(seen, kept, bounds)
            change = _renewal(seen, config.value, now, lease_s, config.ledger)
            blocked.append(BlockedChange(row, why))
        changes += [change] if change else []
    first = group[0]
    distrusted = _distrusted(changes, now, bounds, current)
    if distrusted is not None:
        return [], [BlockedChange(row, distrusted) for row in group]
    written = {c.desired.config_key: c.value for c in changes if c.operation.name != RENEW}
    line = command(first.entity, written, connection) if written else ""
    return [replace(c, command=line if c.operation.name != RENEW else "") for c in changes], blocked


def _distrusted(
    changes: Sequence[Change],
    now: datetime,
    bounds: PlanPolicy,
    current: Mapping[str, CurrentConfig],
) -> str | None:
    """Why these changes break a bound that no table can move. Apply asks the cluster, too."""
    if bounds.trusted is None or not changes:
        return None
    actual = {key: config.value for key, config in current.items() if config.value is not None}
    ledger = next(iter(current.values())).ledger
    return trusted_bounds.problem(changes, actual, bounds.trusted, ledger, now)


def _change(row: DesiredConfig, now: datetime, bounds: PlanPolicy, ledger: Ledger) -> Change | None:
    config = CONFIGS[row.config_key]
    is_decided = row.direction in {TIGHTEN, REVERT}
    bounded = row.config_value if is_decided else guards.step(row, row.prior_value, bounds)
    value = None if bounded is None else config.canonical(bounded)
    lease_s = _lease_s(row, value, bounds)
    if row.direction == REVERT and quota_plan.is_last_step(row, ledger.owned.get(row.key)):
        lease_s = None
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
        purpose=purpose_of(row),
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
    evidence = (row.evidence_table, row.evidence_key, row.config_value or "")
    return (*_group(row), row.config_key, *evidence)
