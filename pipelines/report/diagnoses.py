"""The section on diagnoses: who suffers, since when, why, and what to do."""

from collections.abc import Sequence

from quotaflow.pipelines.areas import diagnoses
from quotaflow.pipelines.areas.diagnoses import OF_CLUSTER, PROBLEMS
from quotaflow.pipelines.areas.question import Row
from quotaflow.pipelines.areas.scope import Scope
from quotaflow.pipelines.report.section import (
    GridColumn,
    ReportSection,
    grid,
    number,
    section_of,
    text,
)
from quotaflow.pipelines.terminal import texts

TITLE = "Diagnoses"
_TABLE = "request_times"
_CHARS = 200
_NOTHING = "Nothing is diagnosed: nobody waits, fails or lags."


@section_of(TITLE, PROBLEMS, _TABLE)
def section(scope: Scope) -> ReportSection:
    """Each symptom with its causes, those that last first."""
    rows = scope.ask_if_made(OF_CLUSTER)
    columns = (
        GridColumn("what is wrong", lambda row: texts.listed(diagnoses.sentence(row), _CHARS)),
        GridColumn("since", lambda row: "" if row["since"] is None else texts.moment(row["since"])),
        GridColumn("why", lambda row: texts.listed(diagnoses.cause(row), _CHARS)),
        number("share", "share", texts.share),
        number("sure", "confidence", texts.share),
        GridColumn(
            "what to do", lambda row: texts.listed(diagnoses.step(scope, row) or "", _CHARS)
        ),
        text("name", "principal"),
    )
    return ReportSection(
        time_range=texts.time_range(*scope.extent(_TABLE)),
        sentences=(_sentence(rows),),
        advice=texts.to_do(["run `quotaflow why NAME` for each name below"] if rows else []),
        grids=(grid("Who suffers, and why", rows, columns, _NOTHING),),
    )


def _sentence(rows: Sequence[Row]) -> str:
    firsts = [diagnoses.sentence(row) for row in rows if row["rank"] == 1]
    return firsts[0] if firsts else _NOTHING
