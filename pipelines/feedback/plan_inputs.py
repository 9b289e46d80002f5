"""What a plan reads from tables: desired configs, the age of inputs, and counts of entities."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from quotaflow.pipelines import reasons
from quotaflow.pipelines.feedback.desired_configs import DesiredConfig
from quotaflow.pipelines.feedback.guards import REQUESTS, RESULTS, SNAPSHOT, TELEMETRY
from quotaflow.pipelines.warehouse import views
from quotaflow.pipelines.warehouse.sql_literals import literal
from quotaflow.pipelines.warehouse.tables import Tables
from quotaflow.schemas.configs import BROKER, ENTITY_TYPES, PROBE, REFUSED, TOPIC, USER
from quotaflow.schemas.tables.control import QUERY_PROGRESS

_WORDED = {"reason", "blocked_reason"}
_FIELDS = tuple(
    name
    for name in DesiredConfig.__dataclass_fields__
    if name not in {"entity_client_id", *_WORDED}
)
# The newest snapshot counts only if it read configs and quotas both: one of other tables, or one
# that was refused them, says nothing of those.
NEWEST_INPUTS = """
    SELECT job, max(event_time) AS newest
    FROM pipeline_progress
    WHERE {0} AND job <> 'snapshot'
    GROUP BY job
    UNION ALL
    SELECT 'snapshot' AS job, CASE WHEN count(*) = 2 THEN min(newest) END AS newest
    FROM (
        SELECT target, max(event_time) AS newest
        FROM pipeline_progress
        WHERE {0} AND job = 'snapshot' AND outcome = 'in' AND target IN ('configs', 'client_quotas')
        GROUP BY target
    ) AS targets
"""
_INPUT_JOBS = {
    REQUESTS: "ingest_request_log",
    RESULTS: "request_results",
    TELEMETRY: "client_metrics",
    SNAPSHOT: "snapshot",
}
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
MOVED = """
    SELECT DISTINCT topic, partition, broker_id
    FROM replication_throttles
    WHERE {0} AND is_moving AND topic IS NOT NULL AND broker_id IS NOT NULL
        AND event_time = (SELECT max(event_time) FROM replication_throttles WHERE {0})
"""
PROTECTED = "SELECT principal, why_code FROM protected_principals WHERE {0}"
ENTITY_COUNTS = """
    SELECT
        (
            SELECT count(DISTINCT principal) FROM quota_usage
            WHERE event_time > now() - INTERVAL '1 days' AND {0}
        ) AS users,
        (SELECT count(*) FROM current_brokers WHERE {0}) AS brokers,
        (SELECT count(*) FROM current_topics WHERE {0}) AS topics
"""
_COUNTED = (USER, BROKER, TOPIC)
_PROBES = f"SELECT * FROM current_settings WHERE setting LIKE '{PROBE}%'"


def desired_configs(tables: Tables) -> list[DesiredConfig]:
    """The rows of desired_configs as they are now."""
    return [_worded(row) for row in tables.rows("SELECT * FROM desired_configs")]


def _worded(row: dict[str, Any]) -> DesiredConfig:
    return DesiredConfig(
        **{name: row[name] for name in _FIELDS if name in row},
        reason=reasons.reason(row),
        blocked_reason=reasons.blocked_reason(row),
    )


def newest_inputs(tables: Tables, cluster: str) -> dict[str, datetime | None]:
    """The newest time of each input of a plan; null where none is known.

    `cluster` is SQL that is true for rows of the cluster.
    """
    newest = {row["job"]: row["newest"] for row in tables.rows(NEWEST_INPUTS.format(cluster))}
    return {name: newest.get(job) for name, job in _INPUT_JOBS.items()}


def protected_principals(tables: Tables, cluster: str) -> dict[str, str]:
    """Principals that no quota may slow down -> how each is known."""
    rows = tables.rows(PROTECTED.format(cluster))
    return {row["principal"]: row["why_code"] for row in rows}


def lags(tables: Tables, cluster: str, now: datetime) -> dict[str, timedelta]:
    """How old each input becomes before newer rows replace it: the 95th percentile of a day.

    That is from the newest event of a batch to the end of the next one. Empty for an input with
    fewer than three batches.
    """
    ends = ENDS if tables.is_made(QUERY_PROGRESS.name) else NO_ENDS
    sql = LAGS.format(cluster, literal(now - timedelta(days=1)), ends)
    lag_ms = {row["job"]: float(row["lag_ms"]) for row in tables.rows(sql)}
    return {
        name: timedelta(milliseconds=lag_ms[job])
        for name, job in _INPUT_JOBS.items()
        if job in lag_ms
    }


def moves(tables: Tables, cluster: str) -> list[frozenset[str]]:
    """The brokers of each current reassignment: those whose moved partitions have brokers in
    common are one.
    """
    if not all_made(tables, [MOVED]):
        return []
    brokers: dict[tuple[str, int], set[str]] = {}
    for row in tables.rows(MOVED.format(cluster)):
        partition = brokers.setdefault((row["topic"], row["partition"]), set())
        partition.add(str(row["broker_id"]))
    groups: list[set[str]] = []
    for each in brokers.values():
        shared = [group for group in groups if group & each]
        groups = [group for group in groups if group not in shared]
        groups.append(each.union(*shared))
    return [frozenset(group) for group in groups]


def entity_counts(tables: Tables, cluster: str) -> dict[str, int]:
    """How many users, brokers and topics the cluster has."""
    (counts,) = tables.rows(ENTITY_COUNTS.format(cluster))
    return {entity_type: counts[ENTITY_TYPES[entity_type]] for entity_type in _COUNTED}


def refused_keys(tables: Tables, cluster_id: str | None) -> Mapping[str, str]:
    """Configs that the cluster refused when a snapshot probed them, with its answer.

    Empty without an answer of this cluster or, if None, of the only one there is.
    """
    probes = tables.rows(_PROBES)
    cluster_ids = {cluster_id or row["cluster_id"] for row in probes}
    refusals = {
        row["setting"].removeprefix(PROBE): row["setting_value"].removeprefix(REFUSED)
        for row in probes
        if row["cluster_id"] in cluster_ids and row["setting_value"].startswith(REFUSED)
    }
    return refusals if len(cluster_ids) == 1 else {}


def of_cluster(cluster_id: str | None) -> str:
    """SQL that is true for rows of this cluster; of every cluster if None."""
    return f"cluster_id = {literal(cluster_id)}" if cluster_id else "true"


def all_made(tables: Tables, queries: Iterable[str]) -> bool:
    """Whether all tables that these queries read exist."""
    read = {table for sql in queries for table in views.dependencies(sql)[0]}
    return all(tables.is_made(table) for table in sorted(read))
