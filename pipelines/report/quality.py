"""Whether the tables can be believed: the last result of each check (`quotaflow check`)."""

from collections.abc import Sequence

from quotaflow.pipelines.report import texts
from quotaflow.pipelines.report.scope import Scope
from quotaflow.pipelines.report.section import (
    MOST_ROWS,
    NOW,
    SOON,
    Alarm,
    Column,
    Row,
    Section,
    grid,
    moment,
    number,
    text,
)
from quotaflow.schemas import tables

TITLE = "Quality of the tables"
_TABLE = "quality_results"
_LAST = f"""
SELECT
    *,
    count(*) OVER () AS of_all,
    max(event_time) OVER () AS last_run,
    count(CASE WHEN NOT success THEN 1 END) OVER () AS failed
FROM quality_now
WHERE cluster_id = {{cluster}} OR cluster_id IS NULL
ORDER BY success, severity, suite, expectation
LIMIT {MOST_ROWS}
"""
_FAILED = (
    text("table", "suite"),
    text("check", "kind"),
    text("expectation", "expectation"),
    Column("column", lambda row: texts.listed(row["column_name"] or "")),
    text("severity", "severity"),
    number("rows checked", "checked_rows"),
    number("rows wrong", "failed_rows"),
    moment("at (UTC)", "event_time"),
    Column("details", lambda row: texts.listed(row["details"] or "", 160)),
)


def section(scope: Scope) -> Section:
    """Checks that failed when they were last run."""
    is_made = _TABLE in tables.TABLES and scope.reader.is_made(_TABLE)
    rows = scope.rows(_LAST) if is_made else []
    if not rows:
        return Section(
            TITLE,
            sentences=("No checks were run yet: `quotaflow check` runs them.",),
            advice="Run `quotaflow check`, best on a schedule.",
        )
    failed = [row for row in rows if not row["success"]]
    first = rows[0]
    said = f"{first['failed']:,} of {texts.count(first['of_all'], 'check')} failed when last run."
    return Section(
        TITLE,
        span=f"last run {texts.moment(first['last_run'])} UTC",
        sentences=(said,),
        advice="Look at the rows in question: a critical failure stops `quotaflow plan`."
        if failed
        else "Nothing.",
        grids=(grid("Checks that fail, critical ones first", failed, _FAILED, "None fails."),),
        alarms=_alarms(failed),
    )


def _alarms(failed: Sequence[Row]) -> tuple[Alarm, ...]:
    critical = [row["suite"] for row in failed if row["severity"] == "critical"]
    if critical:
        return (
            Alarm(NOW, f"Critical checks fail, so nothing is planned: {texts.names(critical)}."),
        )
    warned = texts.names(row["suite"] for row in failed)
    return (Alarm(SOON, f"Checks fail on {warned}."),) if failed else ()
