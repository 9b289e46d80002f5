"""The section on the pipeline's health: rows by outcome and reason, and the age of the data."""

from collections.abc import Sequence
from datetime import datetime

from quotaflow.pipelines.areas import texts
from quotaflow.pipelines.areas.scope import Scope
from quotaflow.pipelines.report.charts import bars
from quotaflow.pipelines.report.section import (
    MAX_ROWS,
    NOW,
    NUMBER,
    SOON,
    Alarm,
    Chart,
    GridColumn,
    ReportSection,
    Row,
    grid,
    moment,
    number,
    text,
)
from quotaflow.udfs.counted import counted

TITLE = "Health of the pipeline"
_TABLE = "pipeline_progress"
_OUTCOMES = ("in", "out", "left_out", "late", "quarantined", "failed")
# A row that is late, or whose rule fails, is counted once for each result it concerns.
_COUNTED_BY_TARGET = {"in", "late", "failed"}
_SUMS = ", ".join(
    f"sum(CASE WHEN outcome = '{outcome}' THEN row_count ELSE 0 END) AS {outcome}_rows"
    for outcome in _OUTCOMES
)
_TOTALS = ", ".join(
    f"{'max' if outcome in _COUNTED_BY_TARGET else 'sum'}({outcome}_rows) AS {outcome}_rows"
    for outcome in _OUTCOMES
)
_FLOWS = f"""
WITH by_target AS (
    SELECT job, target,
        {_SUMS},
        count(DISTINCT batch_id) AS batches,
        max(event_time) AS newest
    FROM {_TABLE}
    WHERE cluster_id = {{cluster}} AND event_time >= {{since}}
    GROUP BY job, target
)
SELECT
    job,
    {_TOTALS},
    max(batches) AS batches,
    max(newest) AS newest
FROM by_target
GROUP BY job
ORDER BY newest, job
"""
_REASONS = f"""
SELECT
    job,
    coalesce(target, '') AS target,
    outcome,
    coalesce(reason, 'no reason given') AS reason,
    sum(row_count) AS row_count,
    max(event_time) AS newest,
    count(*) OVER () AS of_all
FROM {_TABLE}
WHERE cluster_id = {{cluster}} AND event_time >= {{since}}
    AND outcome IN ('left_out', 'late', 'quarantined', 'doubtful', 'failed')
GROUP BY 1, 2, 3, 4
ORDER BY
    CASE outcome WHEN 'failed' THEN 0 WHEN 'quarantined' THEN 1 WHEN 'late' THEN 2 ELSE 3 END,
    row_count DESC, job, target, reason
LIMIT {MAX_ROWS}
"""
_STATES = """
SELECT job, last_trigger, processed_rows_per_s, behind_offsets, behind_bytes
FROM job_health
WHERE cluster_id = {cluster}
"""


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
_DOCTOR = "`quotaflow doctor` says what keeps a job from running."
_OLD_MS = 3_600_000


def section(scope: Scope) -> ReportSection:
    """Jobs by rows read, written and not used."""
    flows, reasons = _flows(scope), scope.rows(_REASONS)
    if not flows:
        return ReportSection(TITLE, sentences=(scope.nothing(_TABLE),))
    ages = _ages(scope, flows)
    return ReportSection(
        TITLE,
        time_range=texts.time_range(*scope.extent(_TABLE)),
        sentences=(_lost(flows), _oldest(scope, flows)),
        advice=_advice(scope, flows, reasons),
        charts=(Chart(ages, "How old the newest event of each job was when this was made"),),
        grids=(
            grid("Rows that were not used, by reason", reasons, _REASON_COLUMNS, "None."),
            grid("Jobs, the oldest first", flows, _FLOW_COLUMNS, "No job ran."),
        ),
        left_out=(
            "What a job read counts once, though it may fill several tables from it; what it wrote "
            "counts for each, and again where it was computed anew.",
        ),
        alarms=tuple(_alarms(scope, flows, reasons)),
    )


def _flows(scope: Scope) -> list[Row]:
    """Counts by job, with the state of its query if there is one."""
    rows = scope.rows(_STATES) if scope.reader.is_made("query_progress") else []
    states = {row["job"]: row for row in rows}
    unknown = dict.fromkeys(
        ("last_trigger", "processed_rows_per_s", "behind_offsets", "behind_bytes")
    )
    return [unknown | states.get(row["job"], {}) | row for row in scope.rows(_FLOWS)]


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
    counts = {outcome: sum(row[f"{outcome}_rows"] for row in flows) for outcome in _OUTCOMES[2:]}
    parts = [
        f"{counted(rows, 'row')} {what.replace('_', ' ')}" for what, rows in counts.items() if rows
    ]
    return f"{', '.join(parts).capitalize()}." if parts else "Every row was used."


def _oldest(scope: Scope, flows: Sequence[Row]) -> str:
    row = flows[0]
    return f"The job furthest behind is {row['job']}: its newest event is " + (
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
    return (scope.now - newest).total_seconds() * 1e3 > _OLD_MS


def _alarms(scope: Scope, flows: Sequence[Row], reasons: Sequence[Row]) -> list[Alarm]:
    alarms = []
    failed = [row["target"] for row in reasons if row["outcome"] == "failed"]
    if failed:
        sentence = f"Results could not be computed: {texts.names(failed)}."
        alarms.append(Alarm(NOW, sentence, _DOCTOR))
    bad = [row["reason"] for row in reasons if row["outcome"] in {"quarantined", "late"}]
    if bad:
        sentence = f"Rows could not be used: {texts.names(bad)}."
        alarms.append(Alarm(SOON, sentence, "`quotaflow show quarantine` has them."))
    if _is_old(scope, flows):
        newest = max(row["newest"] for row in flows)
        sentence = f"The newest event of all is {texts.age(newest, scope.now)} old"
        alarms.append(Alarm(NOW, f"{sentence}{_last_triggers(scope, flows)}", _DOCTOR))
    return alarms


def _last_triggers(scope: Scope, flows: Sequence[Row]) -> str:
    looks = [row["last_trigger"] for row in flows if row["last_trigger"]]
    if not looks or (scope.now - max(looks)).total_seconds() * 1e3 > _OLD_MS:
        return ": is a job running?"
    return (
        f", though jobs looked {texts.age(max(looks), scope.now)} ago: do brokers ship their log?"
    )
