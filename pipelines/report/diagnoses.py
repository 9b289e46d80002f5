"""The section on diagnoses: who suffers, since when, why, and what to do."""

from collections.abc import Sequence

from quotaflow.pipelines import reasons
from quotaflow.pipelines.areas import diagnoses
from quotaflow.pipelines.areas.diagnoses import OF_CLUSTER, PROBLEMS
from quotaflow.pipelines.areas.question import Row
from quotaflow.pipelines.areas.scope import Scope
from quotaflow.pipelines.report.charts import MAX_BARS, bars
from quotaflow.pipelines.report.section import (
    Figure,
    GridColumn,
    ReportSection,
    grid,
    number,
    section_of,
    text,
)
from quotaflow.pipelines.terminal import texts
from quotaflow.udfs.counted import counted

TITLE = "Diagnoses"
_TABLE = "request_times"
_CHARS = 200
_NOTHING = "No client waits or fails, and no group lags."


@section_of(TITLE, PROBLEMS, _TABLE)
def section(scope: Scope) -> ReportSection:
    """Each symptom with its causes, those that last first."""
    rows = scope.ask_if_made(OF_CLUSTER)
    columns = (
        GridColumn("what is wrong", lambda row: texts.listed(diagnoses.sentence(row), _CHARS)),
        GridColumn("since", lambda row: "" if row["since"] is None else texts.moment(row["since"])),
        GridColumn("why", lambda row: texts.listed(diagnoses.cause(row), _CHARS)),
        number("explains", "share", texts.share),
        GridColumn("how sure", lambda row: reasons.how_sure(row["confidence"])),
        GridColumn(
            "what to do", lambda row: texts.listed(diagnoses.step(scope, row) or "", _CHARS)
        ),
        text("name", "principal"),
    )
    return ReportSection(
        time_range=texts.time_range(*scope.extent(_TABLE)),
        sentences=(_sentence(rows),),
        advice=texts.to_do(["run `quotaflow why NAME` for each name below"] if rows else []),
        charts=_charts(rows),
        grids=(grid("Who suffers, and why", rows, columns, _NOTHING),),
    )


def _charts(rows: Sequence[Row]) -> tuple[Figure, ...]:
    """On what the slow clients wait, a part of the bar for each part of the budget."""
    slow = [row for row in rows if row["rank"] == 1 and row["budget"]][:MAX_BARS]
    if not slow:
        return ()
    budgets = [dict(diagnoses.parts(row)) for row in slow]
    series = {
        name: [budget.get(part) for budget in budgets]
        for part, name in diagnoses.PARTS.items()
        if part != diagnoses.OUTSIDE
    }
    names = [f"{row['client_id'] or row['principal']}, {row['api']}" for row in slow]
    waits = counted(len(slow), "slow client waits", "slow clients wait")
    caption = f"For what {waits}, as a mean of a request"
    return (Figure(bars(names, series, "ms", texts.duration), caption),)


def _sentence(rows: Sequence[Row]) -> str:
    firsts = [diagnoses.sentence(row) for row in rows if row["rank"] == 1]
    return firsts[0] if firsts else _NOTHING
