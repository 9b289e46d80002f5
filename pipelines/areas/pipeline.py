"""The pipeline itself: rows by outcome and reason, the age of the data, checks of the tables."""

from collections.abc import Sequence

from quotaflow.pipelines.areas.finding import NOW, SOON, Problem, RowProblem
from quotaflow.pipelines.areas.question import Question, Row
from quotaflow.pipelines.terminal import texts

OUTCOMES = ("in", "out", "left_out", "late", "quarantined", "failed", "refused")
"""What became of rows (pipeline_progress)."""
# A row that is late, or whose rule fails, is counted once for each result it concerns.
_COUNTED_BY_TARGET = {"in", "late", "failed"}
_SUMS = ", ".join(
    f"sum(CASE WHEN outcome = '{outcome}' THEN row_count ELSE 0 END) AS {outcome}_rows"
    for outcome in OUTCOMES
)
_TOTALS = ", ".join(
    f"{'max' if outcome in _COUNTED_BY_TARGET else 'sum'}({outcome}_rows) AS {outcome}_rows"
    for outcome in OUTCOMES
)
FLOWS = f"""
WITH by_target AS (
    SELECT job, target,
        {_SUMS},
        count(DISTINCT batch_id) AS batches,
        max(event_time) AS newest
    FROM pipeline_progress
    WHERE {{of_cluster}} AND {{within:event_time}}
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
"""Rows by job, the job with the oldest events first."""
UNUSED = Question(
    """
SELECT
    cluster_id,
    job,
    coalesce(target, '') AS target,
    outcome,
    coalesce(reason, 'no reason given') AS reason,
    sum(row_count) AS row_count,
    max(event_time) AS newest
FROM pipeline_progress
WHERE {of_cluster} AND {within:event_time}
    AND outcome IN ('left_out', 'late', 'quarantined', 'doubtful', 'failed', 'refused')
GROUP BY cluster_id, job, coalesce(target, ''), outcome, coalesce(reason, 'no reason given')
""",
    "CASE outcome WHEN 'failed' THEN 0 WHEN 'quarantined' THEN 1 WHEN 'late' THEN 2 ELSE 3 END, "
    "row_count DESC, job, target, reason",
)
"""Rows that were not used, by reason."""
WITHOUT_LOG = (
    "cluster_id NOT IN (SELECT cluster_id FROM pipeline_progress "
    "WHERE job = 'ingest_request_log' AND cluster_id IS NOT NULL)"
)
"""The condition for clusters whose request log no job reads."""
JOBS = Question("SELECT * FROM job_health WHERE {of_cluster}", "newest_event_time, job")
"""Jobs, the oldest first."""
CHECKS = Question(
    "SELECT *, count(*) OVER () AS checks, max(event_time) OVER () AS last_run, "
    "count(CASE WHEN NOT success THEN 1 END) OVER () AS all_failed FROM current_quality "
    "WHERE {of_cluster} OR cluster_id IS NULL",
    "success, severity, suite, expectation",
)
"""The last result of each check of the tables."""
CRITICAL = Question(
    "SELECT * FROM quality_results WHERE {of_cluster} AND {within:event_time} "
    "AND success = false AND severity = 'critical'",
    "event_time DESC",
)
"""Runs of critical checks that failed."""
FAILED_ANSWERS = (
    "SELECT answer, event_time, error FROM answer_state WHERE error IS NOT NULL ORDER BY answer"
)
OPEN_ALERTS = "SELECT count(*) AS n FROM alerts WHERE is_open"
"""The number of open alerts, of all rules of conf."""
USUAL_GAPS = """
SELECT job, quantile_cont(gap_s, 0.9) AS gap_s
FROM (
    SELECT job, (at_us - lag(at_us) OVER (PARTITION BY job ORDER BY at_us)) / 1e6 AS gap_s
    FROM (
        SELECT job, unix_micros(event_time) AS at_us FROM query_progress
        WHERE event_time > {since}
    ) AS triggers
) AS gaps
GROUP BY job
"""
"""The time between two triggers of a job that nine of ten did not exceed."""
ROWS_OF_TODAY = """
SELECT counts.job, counts.target, counts.outcome, counts.reason, sum(counts.row_count) AS n
FROM pipeline_progress AS counts
INNER JOIN (
    SELECT DISTINCT query_id, batch_id FROM query_progress WHERE event_time >= {since}
) AS today ON counts.query_id = today.query_id AND counts.batch_id = today.batch_id
GROUP BY 1, 2, 3, 4
"""
"""Rows by outcome, of micro-batches of a day."""
LAST_LINES = """
SELECT broker_id, CAST(sum(coalesce(weight, 1)) AS BIGINT) AS lines,
    min(event_time) AS since, max(event_time) AS until
FROM requests
WHERE {of_cluster} AND event_time >
    (SELECT max(event_time) FROM requests WHERE {of_cluster}) - INTERVAL '10 minutes'
GROUP BY broker_id
"""
"""Lines of the request log in its last ten minutes, by broker."""
DOCTOR = "`quotaflow doctor` says what keeps a job from running."


def _suites(rows: Sequence[Row]) -> str:
    return texts.names(row["suite"] for row in rows)


def _reasons(rows: Sequence[Row]) -> str:
    return texts.names(row["reason"].replace("_", " ") for row in rows)


_CHECK = ("suite", "expectation", "column_name", "kind")
CHECK_FAILED = RowProblem(
    code="check_failed",
    severity=NOW,
    subjects="critical checks of tables that fail",
    subject=_CHECK,
    table="current_quality",
    question=CHECKS.where("NOT success AND severity = 'critical'"),
    summary=lambda rows: f"No plan is made while critical checks fail on {_suites(rows)}.",
)
CHECK_WARNS = RowProblem(
    code="check_warns",
    severity=SOON,
    subjects="checks of tables that fail",
    subject=_CHECK,
    table="current_quality",
    question=CHECKS.where("NOT success AND severity <> 'critical'"),
    summary=lambda rows: f"Checks fail on {_suites(rows)}.",
)
RESULT_FAILED = RowProblem(
    code="result_failed",
    severity=NOW,
    subjects="results that could not be computed",
    subject=("target",),
    table="pipeline_progress",
    question=UNUSED.where("outcome = 'failed'"),
    summary=lambda rows: (
        f"Results of {texts.names(row['target'] or row['job'] for row in rows)} could not be "
        "computed."
    ),
    action=lambda _: DOCTOR,
)
ROWS_UNUSED = RowProblem(
    code="rows_unused",
    severity=SOON,
    subjects="reasons why rows could not be used",
    subject=("job", "target", "outcome", "reason"),
    table="pipeline_progress",
    question=UNUSED.where("outcome IN ('quarantined', 'late') AND target <> 'otlp'"),
    summary=lambda rows: f"Rows could not be used: {_reasons(rows)}.",
    action=lambda _: "`quotaflow show quarantine` has them.",
)
POINTS_NOT_SENT = RowProblem(
    code="points_not_sent",
    severity=SOON,
    subjects="reasons why points of clients were not sent",
    subject=("job", "target", "outcome", "reason"),
    table="pipeline_progress",
    question=UNUSED.where("outcome = 'refused' OR (outcome = 'late' AND target = 'otlp')"),
    summary=lambda rows: f"Points of clients were not sent: {_reasons(rows)}.",
    action=lambda _: "Search the log of the receiver that `monitoring.forward` names.",
)
QUALITY = (CHECK_FAILED, CHECK_WARNS)
PROBLEMS = (RESULT_FAILED, ROWS_UNUSED, POINTS_NOT_SENT)
DATA_OLD = Problem(code="data_old", severity=NOW)
MAX_AGE_S = 3_600
"""The newest event of a pipeline that works is younger than this."""
SECTION_FAILED = Problem(code="section_failed", severity=NOW)
