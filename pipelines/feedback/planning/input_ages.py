"""How old the inputs of a plan are, how old they may be, and how long a write takes to show there.

An input is as new as the newest batch whose rows became rows: a batch in which its rule failed does
not count. It may be as old as its job lets it become anyway, within bounds.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from quotaflow.pipelines.feedback.planning.guards import (
    REQUESTS,
    RESULT_TABLES,
    RESULTS,
    SNAPSHOT,
    TELEMETRY,
)
from quotaflow.pipelines.warehouse.reader import Reader
from quotaflow.pipelines.warehouse.sql_literals import literal
from quotaflow.schemas.tables.declared import CONFIG_CHANGES, PIPELINE_PROGRESS, QUERY_PROGRESS

_JOBS = {
    REQUESTS: "ingest_request_log",
    RESULTS: "request_results",
    TELEMETRY: "client_metrics",
    SNAPSHOT: "snapshot",
    "metric_alert_events": "metric_alerts",
}
_RESULT_JOB = "request_results"
# The newest snapshot counts only if it read configs and quotas both: one of other tables, or one
# that was refused them, says nothing of those.
SNAPSHOT_TARGETS = ("configs", "client_quotas")

_LAG_FACTOR, _MOST = 2, timedelta(hours=1)
"""How many times its lag an input may be old, and how old at most."""
_DEAD_TIME = timedelta(minutes=20)
"""The dead time until enough changes were measured."""

DEAD_TIME = "SELECT max(dead_time_s) AS dead_time_s FROM feedback_dead_times WHERE {0}"
NEWEST = """
    SELECT job, target,
        max(CASE WHEN outcome IN ('in', 'out') THEN event_time END) AS counted_at,
        max(CASE WHEN outcome = 'out' THEN event_time END) AS written_at,
        max(CASE WHEN outcome = 'failed' THEN event_time END) AS failed_at
    FROM pipeline_progress
    WHERE {0}
    GROUP BY job, target
"""
ENDS = """
    SELECT query_id, batch_id, max(unix_millis(event_time) + duration_ms) AS ended_ms
    FROM query_progress
    WHERE batch_id IS NOT NULL
    GROUP BY query_id, batch_id
"""
NO_ENDS = """
    SELECT query_id, batch_id, CAST(NULL AS BIGINT) AS ended_ms
    FROM pipeline_progress
    WHERE false
"""
LAGS = """
    WITH ends AS ({2}),
    counted AS (
        SELECT job, query_id, batch_id, max(unix_millis(event_time)) AS newest_ms
        FROM pipeline_progress
        WHERE {0} AND outcome IN ('in', 'out') AND event_time > {1}
        GROUP BY job, query_id, batch_id
    ),
    followed AS (
        SELECT
            counted.job,
            coalesce(ends.ended_ms, counted.newest_ms)
            - lag(counted.newest_ms) OVER (PARTITION BY counted.job ORDER BY counted.newest_ms)
                AS lag_ms
        FROM counted
        LEFT JOIN ends
            ON counted.query_id = ends.query_id AND counted.batch_id = ends.batch_id
    ),
    ranked AS (
        SELECT
            job,
            lag_ms,
            row_number() OVER (PARTITION BY job ORDER BY lag_ms) AS nth,
            count(*) OVER (PARTITION BY job) AS batches
        FROM followed
        WHERE lag_ms IS NOT NULL
    )
    SELECT job, min(CASE WHEN nth >= 0.95 * batches THEN lag_ms END) AS lag_ms
    FROM ranked
    WHERE batches >= 2
    GROUP BY job
"""


@dataclass(frozen=True, slots=True)
class InputAges:
    """The newest time of each input, null where none is known, and how old it may be.

    `dead_time`: how long a write takes to show in results.
    """

    newest_at: Mapping[str, datetime | None]
    max_ages: Mapping[str, timedelta]
    dead_time: timedelta


def read(tables: Reader, cluster: str, now: datetime, max_age: timedelta) -> InputAges:
    """The ages by what jobs wrote. `cluster` is SQL that is true for rows of the cluster.

    An input of a job that is slower may be older than `max_age`.
    """
    job_lags = lags(tables, cluster, now)
    dead_time = _DEAD_TIME
    if all(tables.is_made(t.name) for t in (CONFIG_CHANGES, PIPELINE_PROGRESS, QUERY_PROGRESS)):
        (row,) = tables.rows(DEAD_TIME.format(cluster))
        seconds = row["dead_time_s"]
        dead_time = dead_time if seconds is None else timedelta(seconds=seconds)
    return InputAges(
        newest_of(tables.rows(NEWEST.format(cluster))),
        allowed(job_lags, max_age),
        max(dead_time, 2 * job_lags.get(RESULTS, timedelta(0))),
    )


def newest_of(rows: Iterable[Mapping[str, Any]]) -> dict[str, datetime | None]:
    """The newest time of each input, by rows of NEWEST. Pure."""
    by_job: dict[str, dict[str | None, Mapping[str, Any]]] = {}
    for row in rows:
        by_job.setdefault(row["job"], {})[row["target"]] = row
    ages = {name: _of_job(by_job.get(job, {})) for name, job in _JOBS.items() if name != SNAPSHOT}
    snapshot = [by_job.get("snapshot", {}).get(target) for target in SNAPSHOT_TARGETS]
    times = [_counted(row) for row in snapshot if row is not None]
    is_whole = len(times) == len(SNAPSHOT_TARGETS) and None not in times
    ages[SNAPSHOT] = min(filter(None, times)) if is_whole else None
    for table in sorted({each for names in RESULT_TABLES.values() for each in names}):
        ages[table] = _of_table(by_job.get(_JOBS.get(table, _RESULT_JOB), {}), table)
    return ages


def lags(tables: Reader, cluster: str, now: datetime) -> dict[str, timedelta]:
    """How old each input becomes before newer rows replace it: the 95th percentile of a day.

    That is from the newest event of a batch to the end of the next one. Empty for an input with
    fewer than three batches.
    """
    ends = ENDS if tables.is_made(QUERY_PROGRESS.name) else NO_ENDS
    sql = LAGS.format(cluster, literal(now - timedelta(days=1)), ends)
    lag_of = {row["job"]: timedelta(milliseconds=float(row["lag_ms"])) for row in tables.rows(sql)}
    names = {*_JOBS, *(each for tables in RESULT_TABLES.values() for each in tables)}
    job_of = {name: _JOBS.get(name, _RESULT_JOB) for name in names}
    return {name: lag_of[job] for name, job in job_of.items() if job in lag_of}


def allowed(measured: Mapping[str, timedelta], max_age: timedelta) -> dict[str, timedelta]:
    """How old each input with a measured lag may be: a multiple of that, within bounds."""
    return {name: max(max_age, min(lag * _LAG_FACTOR, _MOST)) for name, lag in measured.items()}


def _of_job(targets: Mapping[str | None, Mapping[str, Any]]) -> datetime | None:
    times = [time for row in targets.values() if (time := _counted(row)) is not None]
    return max(times, default=None)


def _of_table(targets: Mapping[str | None, Mapping[str, Any]], table: str) -> datetime | None:
    """The time of the job, because a batch may have nothing for the table; its own if it fails."""
    row = targets.get(table)
    if row is not None and row["failed_at"] is not None and _is_failing(row):
        return _utc(row["written_at"])
    return _of_job(targets)


def _counted(row: Mapping[str, Any]) -> datetime | None:
    return _utc(row["written_at"] if _is_failing(row) else row["counted_at"])


def _is_failing(row: Mapping[str, Any]) -> bool:
    """Whether the rule failed in the newest batch that had rows for it."""
    failed, counted, written = row["failed_at"], row["counted_at"], row["written_at"]
    if failed is None:
        return False
    is_newest = counted is None or failed >= counted
    return bool(is_newest and (written is None or failed > written))


def _utc(time: datetime | None) -> datetime | None:
    return None if time is None else time.astimezone(UTC)
