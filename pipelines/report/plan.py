"""The section on proposed config changes and on the plan that was saved last."""

from collections.abc import Sequence

from quotaflow.pipelines import reasons
from quotaflow.pipelines.report import texts
from quotaflow.pipelines.report.scope import Scope
from quotaflow.pipelines.report.section import (
    MAX_ROWS,
    SOON,
    Alarm,
    GridColumn,
    ReportSection,
    Row,
    grid,
    number,
    text,
)

TITLE = "Changes that wait"
_DESIRED = f"""
SELECT
    *,
    count(*) OVER () AS of_all,
    count(CASE WHEN blocked_reason IS NULL THEN 1 END) OVER () AS proposed
FROM desired_configs
WHERE cluster_id = {{cluster}}
    AND (blocked_reason IS NOT NULL OR config_value IS DISTINCT FROM prior_value)
ORDER BY blocked_reason IS NOT NULL, priority, entity_type, entity_name, config_key
LIMIT {MAX_ROWS}
"""
_FROZEN = f"""
WITH newest AS (
    SELECT plan_id, event_time
    FROM plans
    WHERE cluster_id = {{cluster}}
    ORDER BY event_time DESC, plan_id
    LIMIT 1
)
SELECT plans.*, count(*) OVER () AS of_all
FROM plans
INNER JOIN newest ON plans.plan_id = newest.plan_id AND plans.event_time = newest.event_time
WHERE cluster_id = {{cluster}}
ORDER BY number
LIMIT {MAX_ROWS}
"""


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
_DESIRED_COLUMNS = (
    GridColumn("whose", entity),
    text("config", "config_key"),
    value("now", "prior_value"),
    value("then", "config_value"),
    GridColumn("why", lambda row: texts.listed(reasons.reason(row), _REASON_CHARS)),
    GridColumn(
        "not planned, because",
        lambda row: texts.listed(reasons.blocked_reason(row) or "", _REASON_CHARS),
    ),
)
_APPROVABLE = (
    GridColumn("whose", entity),
    text("config", "config_key"),
    text("operation", "operation"),
    value("now", "prior_value"),
    value("then", "config_value"),
    GridColumn(
        "holds",
        lambda row: "for good" if row["lease_s"] is None else texts.duration(row["lease_s"] * 1e3),
    ),
    number("priority", "priority"),
)


def section(scope: Scope) -> ReportSection:
    """Configs that results propose, and the plan that was saved last."""
    desired = scope.rows(_DESIRED)
    frozen = scope.rows(_FROZEN) if scope.reader.is_made("plans") else []
    proposed = desired[0]["proposed"] if desired else 0
    sentence = (
        f"Results ask for {texts.count(proposed, 'config')} to change."
        if proposed
        else ("Results ask for no change.")
    )
    return ReportSection(
        TITLE,
        time_range=f"as of {texts.moment(scope.until)} UTC",
        sentences=(sentence, _frozen(frozen)),
        advice="`quotaflow plan` says which of them it would write now, with the command of each; "
        "`quotaflow plan --save` freezes that, `quotaflow apply PLAN --yes` writes it."
        if proposed
        else "Nothing.",
        grids=(
            grid("What results ask for, most urgent first", desired, _DESIRED_COLUMNS, "Nothing."),
            grid(
                "The plan that was frozen last",
                frozen,
                _APPROVABLE,
                "No plan was frozen yet: `quotaflow plan --save` does that.",
            ),
        ),
        left_out=(
            "Age of the tables, leases, exclusions and the bounds of conf may hold a change back: "
            "`quotaflow plan` says so, this list does not.",
        ),
        alarms=_alarms(desired, proposed),
    )


def _frozen(frozen: Sequence[Row]) -> str:
    if not frozen:
        return "No plan was frozen yet."
    first = frozen[0]
    return f"Plan {first['plan_id']} of {texts.moment(first['event_time'])} UTC froze " + (
        f"{texts.count(first['of_all'], 'change')}."
    )


def _alarms(desired: Sequence[Row], proposed: int) -> tuple[Alarm, ...]:
    if not proposed:
        return ()
    owners = texts.names(entity(row) for row in desired if row["blocked_reason"] is None)
    return (Alarm(SOON, f"{texts.count(proposed, 'config')} should change: {owners}."),)
