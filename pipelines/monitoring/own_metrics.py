"""Every Prometheus metric of quotaflow itself: name, meaning, labels, alerts and chart.

The exposition (prometheus.py), the rule file, the Grafana dashboard, the runbook and the tables of
the docs are made from these.
"""

from collections.abc import Iterator

from quotaflow.pipelines.areas.changes import LEASE_OVER
from quotaflow.pipelines.areas.pipeline import (
    CHECK_FAILED,
    DATA_OLD,
    MAX_AGE_S,
    RESULT_FAILED,
    ROWS_UNUSED,
)
from quotaflow.pipelines.monitoring.own_metric import (
    BY_JOB,
    CRITICAL,
    JOB,
    STAT,
    WARNING,
    Alert,
    Chart,
    OwnMetric,
)

_NOT_SCHEDULED = "upkeep|rebuild|backfill"


def alerts() -> Iterator[Alert]:
    """Every alert, in the order of the metrics."""
    for metric in OWN_METRICS.values():
        yield from metric.alerts


def _rows_appear(outcome: str) -> str:
    """True when rows of an outcome were counted in the last hour.

    A counter begins with the first row of a UTC day, and increase() ignores where it begins.
    """
    rows = f'quotaflow_rows_total{{outcome="{outcome}"}}'
    return f"(increase({rows}[1h]) > 0) or ({rows} unless {rows} offset 1h)"


_EVERY = (
    OwnMetric(
        "up",
        "1 when the tables could be read",
        alerts=(
            Alert(
                "QuotaflowDown",
                "(quotaflow_up == 0) or absent(quotaflow_up)",
                "5m",
                CRITICAL,
                "quotaflow's tables cannot be read, or nothing exposes its metrics",
                "Every other alert of quotaflow is blind meanwhile.",
                (
                    "Is `quotaflow run` alive, or the timer that starts it? Start it again.",
                    "`quotaflow doctor` says what cannot be read; after an upgrade run "
                    "`quotaflow upkeep`.",
                ),
            ),
        ),
        chart=Chart("Tables are readable", "bool_yes_no", STAT, bad="1", low_is_bad=True),
    ),
    OwnMetric(
        "healthy",
        "1 when nothing is past a bound of conf",
        alerts=(
            Alert(
                "QuotaflowUnhealthy",
                "quotaflow_healthy == 0",
                "10m",
                WARNING,
                "quotaflow is past a bound of its conf",
                "The section health of conf has the bounds.",
                ("`quotaflow status` names each problem in a line that begins with `!`.",),
            ),
        ),
        chart=Chart("Healthy", "bool_yes_no", STAT, bad="1", low_is_bad=True),
    ),
    OwnMetric(
        "job_last_trigger_timestamp_seconds",
        "When the job last checked its source for new data",
        BY_JOB,
        alerts=(
            Alert(
                "QuotaflowJobSilent",
                "time() - quotaflow_job_last_trigger_timestamp_seconds"
                f'{{{JOB}!~"{_NOT_SCHEDULED}"}} > $max_silence_s',
                "1m",
                CRITICAL,
                "Job {{ $labels.quotaflow_job }} has not run for {{ $value | humanizeDuration }}",
                "Its tables get old. Records that Kafka deletes before they are read are lost.",
                (
                    "Is the scheduler alive, and the process of `quotaflow run`?",
                    "`quotaflow status` has the last trigger of each job; the log of `run` has "
                    "the error that ended it.",
                    "`quotaflow doctor` says for how long the topic keeps unread records.",
                ),
            ),
        ),
        chart=Chart(
            "Time since the last trigger",
            "s",
            expr="time() - quotaflow_job_last_trigger_timestamp_seconds",
            bad="$max_silence_s",
        ),
    ),
    OwnMetric(
        "job_last_batch_timestamp_seconds",
        "When its last micro-batch started",
        BY_JOB,
        chart=Chart(
            "Time since the last micro-batch with data",
            "s",
            expr="time() - quotaflow_job_last_batch_timestamp_seconds",
        ),
    ),
    OwnMetric(
        "job_last_batch_duration_seconds",
        "How long its last micro-batch took",
        BY_JOB,
        chart=Chart("Duration of the last micro-batch", "s"),
    ),
    OwnMetric(
        "job_newest_event_timestamp_seconds",
        "Time of the newest event it read",
        BY_JOB,
        alerts=(
            Alert(
                "QuotaflowRequestLogSilent",
                "time() - quotaflow_job_newest_event_timestamp_seconds"
                f'{{{JOB}="ingest_request_log"}} > {MAX_AGE_S}',
                "10m",
                WARNING,
                "No line of the request log for {{ $value | humanizeDuration }}",
                "Brokers log no requests, or nothing ships their lines to the topic.",
                (
                    "`quotaflow doctor`: `request logger` says whether DEBUG is on at each broker, "
                    "`log lines` how old the newest record is.",
                    "Restart the shipper of the brokers that are missing.",
                ),
                problem=DATA_OLD,
            ),
        ),
        chart=Chart(
            "Age of the newest event",
            "s",
            expr="time() - quotaflow_job_newest_event_timestamp_seconds",
        ),
    ),
    OwnMetric(
        "job_processed_rows_per_second",
        "Rows per second of its last micro-batch",
        BY_JOB,
        chart=Chart("Rows per second", "rowsps"),
    ),
    OwnMetric(
        "job_behind_offsets",
        "Unread records of its topic when its last batch started",
        BY_JOB,
        chart=Chart("Unread records of topics"),
    ),
    OwnMetric(
        "job_behind_bytes",
        "Unread bytes of its table",
        BY_JOB,
        chart=Chart("Unread bytes of tables", "bytes"),
    ),
    OwnMetric(
        "job_behind_seconds",
        "How long unread data has waited",
        BY_JOB,
        alerts=(
            Alert(
                "QuotaflowJobBehind",
                "quotaflow_job_behind_seconds > $max_behind_s",
                "15m",
                WARNING,
                "Data has waited {{ $value | humanizeDuration }} for job "
                "{{ $labels.quotaflow_job }}",
                "It reads more slowly than data comes in.",
                (
                    "`quotaflow status`: does its batch take longer than the interval of the run?",
                    "[Lag grows](../operate.md#lag-grows) says how to catch up, or bring less.",
                ),
            ),
        ),
        chart=Chart("How long unread data has waited", "s", bad="$max_behind_s"),
    ),
    OwnMetric("job_state_rows", "Rows in its state", BY_JOB, chart=Chart("Rows in state")),
    OwnMetric(
        "job_state_bytes",
        "Memory of its state",
        BY_JOB,
        alerts=(
            Alert(
                "QuotaflowStateGrows",
                "(quotaflow_job_state_bytes > 2 * quotaflow_job_state_bytes offset 3d) "
                "and (quotaflow_job_state_bytes > 100e6)",
                "1h",
                WARNING,
                "The state of job {{ $labels.quotaflow_job }} doubled in three days",
                "It has {{ $value | humanize1024 }}B in memory now.",
                ("Lower `results.max_lateness_s`, or give Spark more memory.",),
            ),
        ),
        chart=Chart("Bytes in state", "bytes"),
    ),
    OwnMetric(
        "job_problems",
        "How many bounds of conf it is past, 0 when healthy",
        BY_JOB,
        alerts=(
            Alert(
                "QuotaflowJobUnhealthy",
                "quotaflow_job_problems > 0",
                "15m",
                WARNING,
                "Job {{ $labels.quotaflow_job }} is past {{ $value }} bounds of conf",
                "Silence, unread data, or too many rows in quarantine or late.",
                ("`quotaflow status` names each problem in a line that begins with `!`.",),
            ),
        ),
        chart=Chart(
            "Problems of jobs", "none", STAT, "sum(quotaflow_job_problems)", legend="", bad="1"
        ),
    ),
    OwnMetric(
        "rows",
        "Rows by outcome, of micro-batches since 00:00 UTC",
        (JOB, "table", "outcome", "reason"),
        "counter",
        alerts=(
            Alert(
                "QuotaflowRowsQuarantined",
                _rows_appear("quarantined"),
                "1m",
                WARNING,
                "Job {{ $labels.quotaflow_job }} could not read rows: {{ $labels.reason }}",
                "They are in the table quarantine. Rows beside them are read.",
                (
                    "`quotaflow show quarantine` has the first 4 KiB of each, and why.",
                    "[Quarantine grows](../operate.md#quarantine-grows) has a remedy by reason.",
                ),
                problem=ROWS_UNUSED,
            ),
            Alert(
                "QuotaflowRowsFailed",
                _rows_appear("failed"),
                "1m",
                WARNING,
                "A rule failed in job {{ $labels.quotaflow_job }}: {{ $labels.table }} is too old",
                "The next batch tries again. Rows of other tables are right.",
                (
                    "`quotaflow status` has the error. If it stays, it is a bug, or a conf that "
                    "does not fit.",
                    "[Results are not up to date](../operate.md#results-are-not-up-to-date).",
                ),
                problem=RESULT_FAILED,
            ),
            Alert(
                "QuotaflowRowsLost",
                _rows_appear("lost"),
                "1m",
                CRITICAL,
                "Job {{ $labels.quotaflow_job }} went on behind a gap: records were lost",
                "Kafka deleted them before they were read, and a run accepted it.",
                (
                    "Raise `retention.ms` of the topic, or run more often.",
                    "`quotaflow sql \"SELECT * FROM pipeline_progress WHERE outcome = 'lost'\"` "
                    "says how many.",
                ),
            ),
        ),
        chart=Chart(
            "Rows by outcome, in 15 minutes",
            expr="sum by (table, outcome) (increase(quotaflow_rows_total[15m]))",
            legend="{{table}} {{outcome}}",
        ),
    ),
    OwnMetric(
        "configs_owned",
        "Configs of the cluster that have a value of ours",
        chart=Chart("Configs that are ours for now", "none", STAT),
    ),
    OwnMetric(
        "configs_overdue",
        "Configs that should have been restored",
        alerts=(
            Alert(
                "QuotaflowConfigsOverdue",
                "quotaflow_configs_overdue > 0",
                "30m",
                CRITICAL,
                "{{ $value }} configs of the cluster should have been restored",
                "Their leases are over, and the cluster still has our values.",
                (
                    "`quotaflow restore` shows them, `quotaflow restore --yes` gives them back. "
                    "Schedule it.",
                    "Where tables are lost or locked: `quotaflow restore --panic`.",
                ),
                problem=LEASE_OVER,
            ),
        ),
        chart=Chart("Configs overdue", "none", STAT, bad="1"),
    ),
    OwnMetric(
        "plan_changes_pending",
        "Changes of the newest plan that is not applied",
        chart=Chart("Changes that wait", "none", STAT),
    ),
    OwnMetric(
        "alerts_open",
        "Open alerts on client metrics",
        chart=Chart("Open alerts of clients", "none", STAT, bad="1"),
    ),
    OwnMetric(
        "feedback_stopped",
        "1 while a stop file prevents writing to the cluster",
        alerts=(
            Alert(
                "QuotaflowFeedbackStopped",
                "quotaflow_feedback_stopped == 1",
                "1d",
                WARNING,
                "A stop file has prevented writes to the cluster for a day",
                "Configs are neither changed nor renewed.",
                ("Remove the file `STOP` beside the tables once its reason is gone.",),
            ),
        ),
        chart=Chart("Stop file", "bool_yes_no", STAT, bad="1"),
    ),
    OwnMetric(
        "warehouse_locked",
        "1 while a process writes the tables",
        chart=Chart("Tables are being written", "bool_yes_no", STAT),
    ),
    OwnMetric(
        "checks_failing",
        "Quality checks that fail",
        ("severity",),
        alerts=(
            Alert(
                "QuotaflowChecksFailing",
                'quotaflow_checks_failing{severity="critical"} > 0',
                "1m",
                WARNING,
                "{{ $value }} critical checks of the tables fail",
                "Plans block every change that depends on these tables.",
                (
                    '`quotaflow show current_quality --where "NOT success"` names them, the pages '
                    "of `quotaflow check` explain each.",
                    "[Checks](../quality.md) says what lets plans go on.",
                ),
                problem=CHECK_FAILED,
            ),
        ),
        chart=Chart("Checks that fail", "none", legend="{{severity}}", bad="1"),
    ),
    OwnMetric(
        "answers_failing",
        "Answers that could not be computed and keep old rows",
        alerts=(
            Alert(
                "QuotaflowAnswersFailing",
                "quotaflow_answers_failing > 0",
                "15m",
                WARNING,
                "{{ $value }} tables of answers could not be computed",
                "Their rows are old. No plan uses them.",
                ('`quotaflow show answer_state --where "error IS NOT NULL"` has the errors.',),
            ),
        ),
        chart=Chart("Answers that fail", "none", STAT, bad="1"),
    ),
    OwnMetric(
        "disk_free_ratio",
        "Share of the disk that is free",
        ("disk",),
        alerts=(
            Alert(
                "QuotaflowDiskFull",
                "quotaflow_disk_free_ratio < $min_free_share",
                "10m",
                CRITICAL,
                "The disk of the {{ $labels.disk }} has {{ $value | humanizePercentage }} free",
                "On a full disk batches fail and are tried again. No table breaks.",
                (
                    "`quotaflow upkeep` removes rows that are kept too long.",
                    "Or give it more room: [Disk full](../operate.md#disk-full).",
                ),
            ),
        ),
        chart=Chart(
            "Free disk", "percentunit", legend="{{disk}}", bad="$min_free_share", low_is_bad=True
        ),
    ),
)
OWN_METRICS = {metric.name: metric for metric in _EVERY}
"""Every metric by its name without the prefix."""
