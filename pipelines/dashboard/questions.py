"""The questions of the dashboard: one dataset each, in SQL that Spark and DuckDB have."""

from quotaflow.pipelines.dashboard.lakeview import CLUSTER, TIME_RANGE, Dataset, overlaps, within
from quotaflow.pipelines.warehouse import internal
from quotaflow.pipelines.warehouse.cost_items import COST_ITEMS

_MAX_ROWS = 200


def _rows(name: str, view: str, columns: str, order: str, where: str = "true") -> Dataset:
    """The first rows of a view."""
    names = tuple(columns.split())
    sql = f"""
SELECT {CLUSTER}, {", ".join(names)}
FROM {view}
WHERE {where}
ORDER BY {order}
LIMIT {_MAX_ROWS}
"""
    return Dataset(name, sql, names)


_EVERY = (
    Dataset(
        "cluster",
        """
SELECT
    brokers.cluster_id,
    count(DISTINCT brokers.broker_id) AS brokers,
    count(DISTINCT brokers.rack) AS racks,
    count(DISTINCT topics.topic_id) AS topics
FROM current_brokers AS brokers
LEFT JOIN current_topics AS topics ON brokers.cluster_id = topics.cluster_id
GROUP BY brokers.cluster_id
""",
    ),
    Dataset(
        "attention",
        f"""
SELECT cluster_id, 'principals accused over producer ids' AS what, count(*) AS found
FROM producer_id_advice
WHERE is_accused AND {overlaps("started_at", "ended_at")}
GROUP BY cluster_id
UNION ALL
SELECT cluster_id, 'clients throttled' AS what, count(DISTINCT client_id) AS found
FROM throttled_clients
WHERE {within("hour")}
GROUP BY cluster_id
UNION ALL
SELECT cluster_id, 'findings about replication throttles' AS what, count(*) AS found
FROM throttle_checks
GROUP BY cluster_id
UNION ALL
SELECT cluster_id, 'clients that cannot read as they should' AS what, count(*) AS found
FROM read_problems
WHERE advice IS NOT NULL AND {overlaps("first_seen", "last_seen")}
GROUP BY cluster_id
UNION ALL
SELECT cluster_id, 'alerts that are open' AS what, count(*) AS found
FROM metric_alerts
WHERE is_open
GROUP BY cluster_id
UNION ALL
SELECT cluster_id, 'checks of tables that fail' AS what, count(*) AS found
FROM current_quality
WHERE NOT success
GROUP BY cluster_id
ORDER BY found DESC
""",
        ("what", "found"),
    ),
    Dataset(
        "traffic",
        f"""
SELECT cluster_id, hour, direction, sum(bytes) AS bytes
FROM traffic_by_hour
WHERE {within("hour")}
GROUP BY cluster_id, hour, direction
ORDER BY hour
""",
    ),
    Dataset(
        "costs",
        f"""
SELECT cluster_id, hour, item, sum(cost) AS cost
FROM ({COST_ITEMS}) AS costs
WHERE {within("hour")}
GROUP BY cluster_id, hour, item
ORDER BY hour
""",
    ),
    Dataset(
        "costs_of_topics",
        f"""
SELECT cluster_id, topic, item, sum(amount) AS amount, unit, sum(cost) AS cost,
    max(currency) AS currency
FROM ({COST_ITEMS}) AS costs
WHERE {within("hour")}
GROUP BY cluster_id, topic, item, unit
ORDER BY cost DESC NULLS LAST, amount DESC NULLS LAST
LIMIT {_MAX_ROWS}
""",
        ("topic", "item", "amount", "unit", "cost", "currency"),
    ),
    _rows(
        "producer_id_offenders",
        "producer_id_advice",
        "principal cause is_accused source new_ids max_rate_per_s quota_per_s "
        "recommended_rate_per_s recommended_by max_throttle_time_ms ids clients source_ids "
        "median_gap_ms requests_per_id",
        "is_accused DESC, new_ids DESC",
        overlaps("started_at", "ended_at"),
    ),
    Dataset(
        "producer_id_rates_by_minute",
        f"""
SELECT cluster_id, date_trunc('minute', event_time) AS minute, principal,
    max(rate_per_s) AS rate_per_s
FROM producer_id_rates
WHERE kind = 'allocation' AND event_date BETWEEN :{TIME_RANGE}.min AND :{TIME_RANGE}.max
GROUP BY cluster_id, date_trunc('minute', event_time), principal
ORDER BY minute
""",
    ),
    Dataset(
        "throttled",
        f"""
SELECT cluster_id, principal, client_id, coalesce(throttled_by, 'not known') AS throttled_by,
    sum(throttled_requests) AS throttled_requests, sum(throttle_time_ms) / 1e3 AS throttled_s
FROM throttled_clients
WHERE {within("hour")}
GROUP BY cluster_id, principal, client_id, coalesce(throttled_by, 'not known')
ORDER BY throttled_s DESC
LIMIT {_MAX_ROWS}
""",
        ("principal", "client_id", "throttled_by", "throttled_requests", "throttled_s"),
    ),
    Dataset(
        "headroom",
        f"""
SELECT cluster_id, broker_id, quota_type, quota_bucket_user, quota_bucket_client_id, quota,
    peak_usage, headroom, 100 * peak_share AS peak_percent, windows_over, windows_throttled, state
FROM quota_headroom
ORDER BY peak_percent DESC
LIMIT {_MAX_ROWS}
""",
        (
            "quota_bucket_user",
            "quota_bucket_client_id",
            "broker_id",
            "quota_type",
            "quota",
            "peak_usage",
            "peak_percent",
            "windows_over",
            "windows_throttled",
            "state",
        ),
    ),
    _rows(
        "replication_throttles_that_stand",
        "throttle_checks",
        "finding topic side broker_id rate age_s set_by replicas malformed_entries "
        "response_max_bytes largest_response_max_bytes",
        "finding, topic, side, broker_id",
    ),
    _rows(
        "moves",
        "reassignments",
        "topic partition replica_id state requested_time requested_by bytes_left bytes_per_s eta_s",
        "requested_time DESC",
        f"state NOT IN ('in_place', 'done', 'cancelled') OR ({within('requested_time')})",
    ),
    _rows(
        "steps_of_throttles_and_moves",
        "throttle_timeline",
        "event_time entity_type entity_name config_key change value principal is_done",
        "event_time DESC",
        within("event_time"),
    ),
    Dataset(
        "throttled_replication",
        f"""
SELECT cluster_id, event_time AS minute, broker_id, leader_replication_throttled_rate AS rate
FROM replication_metrics
WHERE {within("event_time")}
ORDER BY minute
""",
    ),
    Dataset(
        "racks",
        f"""
SELECT cluster_id, coalesce(client_rack, 'not known') AS client_rack,
    coalesce(broker_rack, 'not known') AS broker_rack, sum(bytes) AS bytes
FROM rack_pairs
WHERE flow = 'consumed' AND {overlaps("since", "until")}
GROUP BY cluster_id, coalesce(client_rack, 'not known'), coalesce(broker_rack, 'not known')
""",
    ),
    _rows(
        "steps_that_keep_bytes_in_their_rack",
        "replica_advice",
        "advice client_rack client_id topic broker_id saved_bytes_per_hour replica_bytes_per_hour",
        "saved_bytes_per_hour DESC",
        overlaps("since", "until"),
    ),
    _rows(
        "fetch_settings",
        "fetch_advice",
        "principal client_id replica_id advice setting current_value recommended_value trade_off "
        "fetches_per_s expected_fetches_per_s",
        "fetches_per_s DESC",
    ),
    _rows(
        "reads_that_fail",
        "read_problems",
        "principal client_id topic advice too_small_answers redirect_loop_answers resets "
        "lagging_minutes last_seen",
        "last_seen DESC",
        overlaps("first_seen", "last_seen"),
    ),
    _rows(
        "why_groups_lag",
        "why_groups_lag",
        "group_id topic lag lag_s trend rank cause confidence detail caught_up_in_s",
        "lag DESC NULLS LAST, group_id, topic, rank",
    ),
    Dataset(
        "groups_behind",
        """
SELECT cluster_id, group_id, topic, sum(lag) AS lag, max(lag_s) AS lag_s,
    sum(records_in_per_s) AS records_in_per_s, sum(records_out_per_s) AS records_out_per_s
FROM group_lag
GROUP BY cluster_id, group_id, topic
ORDER BY lag DESC NULLS LAST
""",
        ("group_id", "topic", "lag", "lag_s", "records_in_per_s", "records_out_per_s"),
    ),
    Dataset(
        "telemetry_coverage",
        f"""
SELECT cluster_id, coalesce(client_software_name, 'unknown') AS software, state,
    count(*) AS instances, sum(missing_pushes) AS missing_pushes
FROM client_coverage
WHERE {internal.not_in("client_coverage")} AND {overlaps("first_seen", "last_seen")}
GROUP BY cluster_id, coalesce(client_software_name, 'unknown'), state
ORDER BY instances DESC
""",
    ),
    _rows(
        "alerts",
        "metric_alerts",
        "is_open rule client_id principal metric bound peak_value unit first_breach duration_ms",
        "is_open DESC, first_breach DESC",
        f"is_open OR ({within('first_breach')})",
    ),
    _rows(
        "changes_that_wait",
        "desired_configs",
        "priority entity_type entity_name config_key prior_value config_value reason_code "
        "blocked_reason observed bound unit matching total subject",
        "priority, entity_type, entity_name",
        "blocked_reason IS NOT NULL OR config_value IS DISTINCT FROM prior_value",
    ),
    _rows(
        "changes_that_were_made",
        "config_changes",
        "event_time purpose step entity_type entity_name config_key prior_value config_value "
        "expires_at reason run_by",
        "event_time DESC",
        within("event_time"),
    ),
    _rows(
        "jobs",
        "job_health",
        "job last_trigger newest_event_time processed_rows_per_s behind_offsets behind_bytes "
        "rows_in rows_out rows_left_out rows_quarantined rows_late rows_failed",
        "newest_event_time, job",
    ),
    _rows(
        "checks_that_fail",
        "current_quality",
        "suite severity expectation column_name failed_rows checked_rows details event_time",
        "severity, suite, expectation",
        "NOT success",
    ),
    Dataset(
        "rows_that_were_not_used",
        f"""
SELECT cluster_id, job, coalesce(target, '') AS target, outcome,
    coalesce(reason, 'no reason given') AS reason, sum(row_count) AS row_count
FROM pipeline_progress
WHERE outcome IN ('left_out', 'late', 'quarantined', 'doubtful', 'failed')
    AND {within("event_time")}
GROUP BY cluster_id, job, coalesce(target, ''), outcome, coalesce(reason, 'no reason given')
ORDER BY row_count DESC
""",
        ("outcome", "reason", "job", "target", "row_count"),
    ),
)
QUESTIONS = {dataset.name: dataset for dataset in _EVERY}
"""Every dataset by its name; each has the column cluster_id."""
ABOUT_NOW = frozenset(
    {
        *("cluster", "headroom", "replication_throttles_that_stand", "fetch_settings"),
        *("changes_that_wait", "jobs", "checks_that_fail", "why_groups_lag", "groups_behind"),
    }
)
"""Datasets about the present, which the chosen days do not change."""
