"""The section on the plan of now and on the one that was saved last."""

from collections.abc import Sequence
from dataclasses import replace

from quotaflow.pipelines.areas.changes import FROZEN, WAITING
from quotaflow.pipelines.areas.finding import Finding
from quotaflow.pipelines.areas.question import Row
from quotaflow.pipelines.areas.scope import Scope
from quotaflow.pipelines.feedback.configs.change import Plan
from quotaflow.pipelines.feedback.configs.desired_configs import DesiredConfig
from quotaflow.pipelines.feedback.planning import planning
from quotaflow.pipelines.feedback.runs import context
from quotaflow.pipelines.report.section import (
    GridColumn,
    ReportSection,
    grid,
    number,
    section_of,
    text,
)
from quotaflow.pipelines.terminal import texts
from quotaflow.udfs.counted import counted

TITLE = "Changes that wait"


def entity(row: Row) -> str:
    """The entity of a config, in words."""
    name = row["entity_name"]
    owner = f"{row['entity_type']} {texts.listed(name) if name else '(the default of all)'}"
    client_id = row.get("entity_client_id")
    return owner if client_id is None else f"{owner} as {texts.listed(client_id)}"


def value(head: str, name: str) -> GridColumn:
    """A column of config values."""
    return GridColumn(head, lambda row: config_value(row, name))


def config_value(row: Row, name: str) -> str:
    """A value of a config in words, which may be a long list."""
    return "not set" if row[name] is None else texts.listed(row[name], 80)


_REASON_CHARS = 240
_PLANNED_COLUMNS = (
    GridColumn("whose", entity),
    text("config", "config_key"),
    value("now", "prior_value"),
    value("then", "config_value"),
    GridColumn("why", lambda row: texts.listed(row["reason"], _REASON_CHARS)),
    GridColumn(
        "not planned, because", lambda row: texts.listed(row["blocked_reason"] or "", _REASON_CHARS)
    ),
)
_APPROVABLE = (
    GridColumn("whose", entity),
    text("config", "config_key"),
    text("operation", "operation"),
    value("now", "prior_value"),
    value("then", "config_value"),
    GridColumn(
        "lease",
        lambda row: "no end" if row["lease_s"] is None else texts.duration(row["lease_s"] * 1e3),
    ),
    number("priority", "priority"),
)


@section_of(TITLE)
def section(scope: Scope) -> ReportSection:
    """The plan as `quotaflow plan` makes it now, what it leaves out, and the plan saved last."""
    plan = _plan(scope)
    planned = [_row(change.desired, change.value) for change in plan.changes]
    blocked = [_row(each.desired, each.desired.config_value, each.reason) for each in plan.blocked]
    frozen = scope.ask(FROZEN) if scope.reader.is_made("plans") else []
    return ReportSection(
        time_range=f"as of {texts.moment(scope.now)} UTC",
        sentences=(_waiting(plan), *_halt(plan), *plan.unmade, _frozen(frozen)),
        advice="`quotaflow plan --save` freezes these changes, `quotaflow apply PLAN --yes` writes "
        "them."
        if planned
        else texts.NO_STEP,
        grids=(
            grid("Changes that wait, most urgent first", planned, _PLANNED_COLUMNS[:-1], "None."),
            grid("Changes that no plan makes, and why", blocked, _PLANNED_COLUMNS, "None."),
            grid(
                "The plan that was frozen last",
                frozen,
                _APPROVABLE,
                "No plan was frozen yet: `quotaflow plan --save` does that.",
            ),
        ),
        alarms=_alarms(plan),
    )


def _plan(scope: Scope) -> Plan:
    """The plan of this cluster now."""
    kafka = scope.conf.kafka.model_copy(update={"cluster_id": scope.cluster_id})
    conf = scope.conf.model_copy(update={"kafka": kafka})
    plan = planning.make(context.of_plans(conf), scope.reader, scope.now)
    return replace(
        plan,
        changes=tuple(c for c in plan.changes if c.desired.cluster_id == scope.cluster_id),
        blocked=tuple(b for b in plan.blocked if b.desired.cluster_id == scope.cluster_id),
    )


def _row(desired: DesiredConfig, config_value: str | None, blocked: str | None = None) -> Row:
    return {
        "entity_type": desired.entity_type,
        "entity_name": desired.entity_name,
        "entity_client_id": desired.entity_client_id,
        "config_key": desired.config_key,
        "prior_value": desired.prior_value,
        "config_value": config_value,
        "reason": desired.reason,
        "blocked_reason": blocked,
    }


def _waiting(plan: Plan) -> str:
    if not plan.changes:
        return "No change waits."
    count = len(plan.changes)
    return f"{counted(count, 'change waits', 'changes wait')}."


def _halt(plan: Plan) -> tuple[str, ...]:
    return () if plan.halt is None else (texts.listed(plan.halt.reason, texts.SENTENCE_CHARS),)


def _frozen(frozen: Sequence[Row]) -> str:
    if not frozen:
        return "No plan was frozen yet."
    first = frozen[0]
    return f"Plan {first['plan_id']} of {texts.moment(first['event_time'])} UTC froze " + (
        f"{counted(first['of_all'], 'change')}."
    )


def _alarms(plan: Plan) -> tuple[Finding, ...]:
    if not plan.changes:
        return ()
    owners = texts.names(entity(_row(change.desired, change.value)) for change in plan.changes)
    return (Finding(text=f"{_waiting(plan).rstrip('.')}: {owners}.", problem=WAITING),)
