"""The section on data quality: the last result of each check (`quotaflow check`)."""

from quotaflow.pipelines.areas.pipeline import CHECKS, QUALITY
from quotaflow.pipelines.areas.scope import Scope
from quotaflow.pipelines.report.section import (
    ReportSection,
    grid,
    moment,
    number,
    section_of,
    text,
)
from quotaflow.pipelines.terminal import texts
from quotaflow.schemas.tables.declared import QUALITY_RESULTS
from quotaflow.udfs.counted import counted

TITLE = "Quality of the tables"
_FAILED = (
    text("table", "suite"),
    text("expectation", "expectation"),
    text("column", "column_name"),
    text("severity", "severity"),
    number("rows checked", "checked_rows"),
    number("rows wrong", "failed_rows"),
    moment("at (UTC)", "event_time"),
    text("what is expected", "details", 160),
)


@section_of(TITLE, QUALITY)
def section(scope: Scope) -> ReportSection:
    """Checks that failed in their last run."""
    rows = scope.ask(CHECKS) if scope.reader.is_made(QUALITY_RESULTS.name) else []
    if not rows:
        return ReportSection(
            sentences=("No checks were run yet: `quotaflow check` runs them.",),
            advice="Run `quotaflow check`, best on a schedule.",
        )
    failed = [row for row in rows if not row["success"]]
    first = rows[0]
    sentence = (
        f"{first['all_failed']:,} of {counted(first['checks'], 'check')} failed in the last run."
    )
    return ReportSection(
        time_range=f"last run {texts.moment(first['last_run'])} UTC",
        sentences=(sentence,),
        advice="Look at these rows: a critical failure stops `quotaflow plan`."
        if failed
        else texts.NO_STEP,
        grids=(grid("Checks that fail, critical ones first", failed, _FAILED, "None fails."),),
        left_out=("Each check reads only rows that came after the previous check.",),
    )
