"""The section on the pipeline's health: rows by outcome and reason, and the age of the data."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from quotaflow.pipelines.areas.finding import Finding
from quotaflow.pipelines.areas.pipeline import (
    DATA_OLD,
    DOCTOR,
    FLOWS,
    JOBS,
    MAX_AGE_S,
    OUTCOMES,
    PROBLEMS,
    UNUSED,
)
from quotaflow.pipelines.areas.question import Row
from quotaflow.pipelines.areas.scope import Scope
from quotaflow.pipelines.report.charts import bars
from quotaflow.pipelines.report.section import (
    NUMBER,
    Figure,
    GridColumn,
    ReportSection,
    grid,
    moment,
    nothing,
    number,
    section_of,
    text,
)
from quotaflow.pipelines.terminal import texts
from quotaflow.udfs.counted import counted

TITLE = "Health of the pipeline"
_TABLE = "pipeline_progress"


def _behind(row: Row) -> str:
    if row["behind_offsets"] is not None:
        return counted(row["behind_offsets"], "line")
    return "" if row["behind_bytes"] is None else texts.size(row["behind_bytes"])


_FLOW_COLUMNS = (
    text("job", "job"),
    number("read", "in_rows"),
    number("written", "out_rows"),
    number("left out", "left_out_rows"),
    number("late", "late_rows"),
    number("quarantined", "quarantined_rows"),
    number("failed", "failed_rows"),
    number("refused", "refused_rows"),
    number("rows per s", "processed_rows_per_s"),
    GridColumn("unread", _behind, NUMBER),
    moment("newest event (UTC)", "newest"),
)
_REASON_COLUMNS = (
    text("what", "outcome"),
    text("reason", "reason"),
    text("job", "job"),
    text("table", "target"),
    number("rows", "row_count"),
    moment("newest (UTC)", "newest"),
)


@section_of(TITLE, PROBLEMS)
def section(scope: Scope) -> ReportSection:
    """Jobs by rows read, written and not used."""
    flows, reasons = _flows(scope), scope.ask(UNUSED)
    if not flows:
        return ReportSection(sentences=(nothing(scope, _TABLE),))
    ages = _ages(scope, flows)
    return ReportSection(
        time_range=texts.time_range(*scope.extent(_TABLE)),
        sentences=(_lost(flows), _oldest(scope, flows)),
        advice=_advice(scope, flows, reasons),
        charts=(Figure(ages, "How old the newest event of each job was when this was made"),),
        grids=(
            grid("Rows that were not used, by reason", reasons, _REASON_COLUMNS, "None."),
            grid("Jobs, the oldest first", flows, _FLOW_COLUMNS, "No job ran."),
        ),
        left_out=(
            "A row that a job read counts once. A row that it wrote counts for each table, and "
            "again if it was computed again.",
        ),
        alarms=tuple(_age_alarm(scope, flows)),
    )


def _flows(scope: Scope) -> list[Row]:
    """Counts by job, with the state of its query if there is one."""
    rows = (
        scope.rows(JOBS.first_rows, limit="1000") if scope.reader.is_made("query_progress") else []
    )
    states = {row["job"]: row for row in rows}
    unknown = dict.fromkeys(
        ("last_trigger", "processed_rows_per_s", "behind_offsets", "behind_bytes")
    )
    return [unknown | states.get(row["job"], {}) | row for row in scope.rows(FLOWS)]


def _ages(scope: Scope, flows: Sequence[Row]) -> str:
    ages = [max((scope.now - row["newest"]).total_seconds() / 60, 0) for row in flows]
    names = [row["job"] for row in flows]
    return bars(
        names,
        {"minutes": ages},
        "minutes",
        lambda minutes: texts.duration(minutes and minutes * 6e4),
    )


def _lost(flows: Sequence[Row]) -> str:
    counts = {outcome: sum(row[f"{outcome}_rows"] for row in flows) for outcome in OUTCOMES[2:]}
    parts = [f"{rows:,} {what.replace('_', ' ')}" for what, rows in counts.items() if rows]
    return f"Rows that were not used: {', '.join(parts)}." if parts else "Every row was used."


def _oldest(scope: Scope, flows: Sequence[Row]) -> str:
    row = flows[0]
    return f"The job furthest behind is `{row['job']}`: its newest event is " + (
        f"{texts.age(row['newest'], scope.now)} old."
    )


def _advice(scope: Scope, flows: Sequence[Row], reasons: Sequence[Row]) -> str:
    """What to do; each part has rows that call for it."""
    outcomes = {row["outcome"] for row in reasons}
    parts = []
    if "quarantined" in outcomes:
        parts.append("`quotaflow show quarantine` has what could not be read")
    if "late" in outcomes:
        parts.append("`quotaflow rebuild` computes results again with late rows")
    if "failed" in outcomes or _is_old(scope, flows):
        parts.append("`quotaflow doctor` says what keeps a job from running")
    return texts.to_do(parts)


def _is_old(scope: Scope, flows: Sequence[Row]) -> bool:
    newest: datetime = max(row["newest"] for row in flows)
    return (scope.now - newest).total_seconds() > MAX_AGE_S


def _age_alarm(scope: Scope, flows: Sequence[Row]) -> Iterator[Finding]:
    if _is_old(scope, flows):
        newest = max(row["newest"] for row in flows)
        sentence = f"The newest event of all is {texts.age(newest, scope.now)} old"
        yield Finding(
            text=f"{sentence}{_last_triggers(scope, flows)}", problem=DATA_OLD, next_step=DOCTOR
        )


def _last_triggers(scope: Scope, flows: Sequence[Row]) -> str:
    looks = [row["last_trigger"] for row in flows if row["last_trigger"]]
    if not looks or (scope.now - max(looks)).total_seconds() > MAX_AGE_S:
        return ": is a job running?"
    return (
        f", though jobs looked {texts.age(max(looks), scope.now)} ago: do brokers ship their log?"
    )
