"""A plan, blocked changes and outcomes as text, and as JSON objects."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from itertools import groupby
from typing import Any

from quotaflow.pipelines.feedback.configs.change import (
    APPEND,
    DELETE,
    RENEW,
    SUBTRACT,
    BlockedChange,
    Change,
    Plan,
)
from quotaflow.pipelines.feedback.configs.desired_configs import DesiredConfig
from quotaflow.pipelines.feedback.ledger.outcome import Outcome
from quotaflow.pipelines.feedback.planning.restore_plan import RestorePlan
from quotaflow.pipelines.terminal import grid, texts, values
from quotaflow.udfs.counted import counted

_ROW = (
    "cluster_id",
    "entity_type",
    "entity_name",
    "entity_client_id",
    "config_key",
    "prior_value",
    "reason",
    "evidence_table",
    "evidence_key",
    "priority",
)
_CHANGE = (
    "change_id",
    "purpose",
    "operation",
    "operand",
    "config_value",
    "lease_s",
    "risk",
    "since",
    "command",
    "note",
)
PLAN_COLUMNS = (*_ROW, *_CHANGE, "plan_id", "blocked_reason")
"""Columns of `plan_objects`."""
OUTCOME_COLUMNS = (*_ROW, *_CHANGE, "step", "detail")
"""Columns of `outcome_objects`."""
_COLUMNS = ["entity", "config", "current", "planned", "lease", "priority"]
_SIGNS = {APPEND: "+ ", SUBTRACT: "- "}


def plan_objects(plan: Plan) -> Iterator[dict[str, Any]]:
    """Each change as one JSON object: entity, config, evidence, value, command and note.

    Then each blocked change once with its `blocked_reason`, which is null for a planned one. The
    plan has no value, id or command of a blocked change: these are null.
    """
    of_plan = {"plan_id": plan.plan_id}
    for change in plan.changes:
        yield _object(change) | of_plan | {"blocked_reason": None}
    nothing = dict.fromkeys(_CHANGE)
    shown = set()
    for each in plan.blocked:
        key = (*each.desired.key, each.desired.evidence_key, each.reason)
        if key not in shown:
            shown.add(key)
            shared = _row(each.desired) | nothing | {"since": _time(each.desired.since)}
            yield shared | of_plan | {"blocked_reason": each.reason}


def outcome_objects(outcomes: Iterable[Outcome]) -> Iterator[dict[str, Any]]:
    """The same, with the outcome of each change and its reason."""
    return (_object(o.change) | {"step": o.step, "detail": o.detail} for o in outcomes)


def _row(desired: DesiredConfig) -> dict[str, Any]:
    return {name: getattr(desired, name) for name in _ROW}


def _object(change: Change) -> dict[str, Any]:
    return _row(change.desired) | {
        "change_id": change.change_id,
        "purpose": change.purpose,
        "operation": change.operation.name,
        "operand": change.operation.operand,
        "config_value": change.value,
        "lease_s": change.lease_s,
        "risk": change.risk,
        "since": _time(change.desired.since),
        "command": change.command,
        "note": change.note,
    }


def plan_lines(plan: Plan) -> Iterator[str]:
    """The plan as lines of text; control characters in clients' names are escaped."""
    if not plan.changes:
        yield "no changes wait"
        return
    yield from grid.lines([_cells(change) for change in plan.changes], _COLUMNS)
    yield ""
    for _, changes in groupby(plan.changes, key=lambda change: change.entity):
        yield from _entity_lines(list(changes))
        yield ""


def pending_line(plan: Plan) -> str:
    """How many changes wait, and in which plan."""
    changes = counted(len(plan.changes), "change waits", "changes wait")
    return f"{changes} in plan {plan.plan_id}."


def _cells(change: Change) -> dict[str, Any]:
    row = change.desired
    return {
        "entity": _entity(change),
        "config": row.config_key,
        "current": _value(row.prior_value),
        "planned": _SIGNS.get(change.operation.name, "") + _planned(change),
        "lease": _lease(change),
        "priority": row.priority,
    }


def _planned(change: Change) -> str:
    if change.operation.name == RENEW:
        return "the same, renewed"
    if change.operation.name == DELETE:
        return "not set"
    return _value(change.operation.operand)


def _entity_lines(changes: list[Change]) -> Iterator[str]:
    first = changes[0].desired
    for change in changes:
        yield f"{_entity(change)}: {change.desired.config_key} = {_whole(change)}"
    for reason in dict.fromkeys(change.desired.reason for change in changes):
        yield f"  why       {values.visible(reason)}"
    yield f"  since     {_time(first.since)}"
    for row in {change.desired.evidence_key: change.desired for change in changes}.values():
        yield f"  evidence  {row.evidence_table}: {values.visible(row.evidence_key)}"
    for risk in dict.fromkeys(change.risk for change in changes):
        yield f"  risk      {risk}"
    for change in changes:
        yield from _expiry(change)
    for line in dict.fromkeys(change.command for change in changes if change.command):
        yield f"  command   {line}"
    for note in sorted({change.note for change in changes if change.note}):
        yield f"  note      {values.visible(note)}"


def _expiry(change: Change) -> Iterator[str]:
    if change.lease_s is not None:
        row = change.desired
        back = f"then back to {_value(row.prior_value)}"
        end = "" if change.operation.name == RENEW else f", {back}"
        yield f"  expires   {row.config_key} after {_lease(change)} unless renewed{end}"


def _whole(change: Change) -> str:
    return "(removed)" if change.value is None else values.visible(change.value)


def blocked_lines(plan: Plan) -> Iterator[str]:
    """Inputs never made, why plans only restore, and what each reason blocks."""
    yield from plan.unmade
    if plan.halt is not None:
        yield values.visible(plan.halt.reason)
    yield from _blocked_lines(plan.changes, plan.blocked)


def _blocked_lines(changes: Iterable[Change], blocked: Iterable[BlockedChange]) -> Iterator[str]:
    """A line of each reason with all that it blocks, and the cluster where there are several."""
    of_reason: dict[tuple[str, str], dict[str, dict[str, None]]] = {}
    for each in blocked:
        entity = each.desired.entity
        entities = of_reason.setdefault((entity.cluster_id, each.reason), {})
        entities.setdefault(entity.text, {})[each.desired.config_key] = None
    clusters = {change.desired.entity.cluster_id for change in changes}
    is_one = len(clusters | {cluster_id for cluster_id, _ in of_reason}) == 1
    for (cluster_id, reason), entities in of_reason.items():
        where = "" if is_one else f" in cluster {cluster_id}"
        configs = ", ".join(f"{entity} ({', '.join(keys)})" for entity, keys in entities.items())
        yield values.visible(f"blocked: {configs}{where}: {reason}")


def outcome_lines(outcomes: Iterable[Outcome]) -> Iterator[str]:
    """The outcome of each change, with the reason if it was not written."""
    for outcome in outcomes:
        change = outcome.change
        what = f"{change.desired.config_key} = {_whole(change)}"
        why = "" if outcome.detail is None else f": {values.visible(outcome.detail)}"
        yield f"{outcome.step:10} {_entity(change)}: {what}{why}"


def restore_lines(restore_plan: RestorePlan) -> Iterator[str]:
    """What a restore writes."""
    if restore_plan.changes:
        yield from plan_lines(Plan(restore_plan.changes, ()))
    elif (
        restore_plan.yielded
        or restore_plan.unanswered
        or restore_plan.blocked
        or restore_plan.refused
    ):
        yield "nothing can be restored"
    else:
        yield "nothing to restore: no lease is over (--all restores leases that are not over)"


def left_alone_lines(restore_plan: RestorePlan) -> Iterator[str]:
    """Configs that a restore leaves: changed by others, no answer, blocked, refused."""
    for each in restore_plan.yielded:
        yield values.visible(f"left alone: {each.key[0]}: {each.key[1]}: {each.reason}")
    for entity, key in restore_plan.unanswered:
        yield values.visible(f"not reached: {entity}: {key}: it waits for the next run")
    yield from _blocked_lines(restore_plan.changes, restore_plan.blocked)
    for refused in restore_plan.refused:
        entity, key = refused.key
        yield values.visible(f"refused: {entity}: {key}: {refused.why}")
    for why in restore_plan.distrusted:
        yield values.visible(f"refused: {why}")


def _entity(change: Change) -> str:
    return values.visible(str(change.entity))


def _value(value: str | None) -> str:
    return "not set" if value is None else values.visible(value)


def _lease(change: Change) -> str:
    return "for good" if change.lease_s is None else texts.duration(change.lease_s * 1e3)


def _time(moment: datetime) -> str:
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"
