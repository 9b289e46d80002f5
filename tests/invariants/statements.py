"""What is true of every warehouse: SQL that returns the rows for which it is not.

A statement names its kind, so that a new column or view of that kind is included without a change
here. Where a name means something else, the exception says why.
"""

from collections.abc import Iterator

import duckdb

from quotaflow.pipelines.snapshots.sections import SNAPSHOT_TABLES
from quotaflow.schemas.tables.catalog import FACTS

_NUMBERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "DOUBLE", "FLOAT", "DECIMAL")

_MAY_BE_NEGATIVE = {
    # Kafka's own numbers for "none", and numbers that are no measure.
    *("acks", "broker_id", "error_code", "node_id", "replica_id", "session_epoch", "series_id"),
    *("producer_id", "producer_epoch", "subscription_id", "expected_subscription_id"),
    *("preferred_read_replica", "last_sequence", "coordinator_epoch"),
    *("retention_ms", "retention_bytes", "local_retention_ms", "local_retention_bytes"),
    # What a client or a Collector sends.
    *("value", "value_int", "histogram_min", "histogram_max", "histogram_sum", "exponential_scale"),
    *("increase", "total", "rate_per_s", "peak_value", "bound"),
    # A deficit is their meaning.
    *("tokens", "headroom"),
}
_MAY_BE_INFINITE = {"value", "peak_value", "total", "increase", "rate_per_s", "histogram_sum"}
_SHARES = ("share", "fairness")
_MAY_PASS_ONE = {"peak_share"}
"""Of a quota: use can be more than it."""

_ORDERED = (
    *(("first_seen", "last_seen"), ("started_at", "ended_at"), ("since", "until")),
    *(("first_window", "last_window"), ("first_push", "last_push"), ("start_time", "event_time")),
    *(("min_fetch_offset", "max_fetch_offset"), ("first_offset", "last_offset")),
    *(
        ("min_log_start_offset", "max_log_start_offset"),
        ("min_high_watermark", "max_high_watermark"),
    ),
    *(("min_log_end_offset", "max_log_end_offset"), ("latency_avg_ms", "latency_max_ms")),
    *(("rebalancing_answers", "errors"), ("fenced_answers", "errors")),
    *(("stopped_ms", "duration_ms"), ("last_offset", "max_offset")),
    ("latency_p50_ms", "latency_p95_ms"),
    *(("outside_avg_ms", "slowest_outside_ms"), ("lag", "max_lag")),
    *(("cross_rack_bytes", "bytes"), ("avoidable_bytes", "cross_rack_bytes")),
    *(("cross_rack_bytes", "consumed_bytes + produced_bytes"), ("unknown_rack_bytes", "bytes")),
    *(("throttled_requests", "request_count"), ("throttled_windows", "windows_in_force")),
    *(("windows_over", "windows"), ("over_windows", "windows"), ("windows_in_force", "windows")),
    *(("broker_throttled_requests", "broker_requests"), ("usage_median", "usage_p99")),
    *(
        ("broker_throttle_time_max_ms", "broker_throttle_time_ms"),
        ("percentile_usage", "peak_usage"),
    ),
    *(("missing_pushes", "expected_pushes"), ("accepted_pushes", "expected_pushes")),
    *(("new_ids", "new_ids_exact"), ("new_ids_exact", "sightings")),
    *(("source_ids", "ids"), ("source_clients", "clients"), ("abandoned_ids", "ids")),
    *(("accused_bursts", "bursts"), ("p99_rate_per_s", "peak_rate_per_s")),
    *(("saved_bytes_per_hour", "bytes_per_hour"), ("diverged_answers", "requests")),
    *(("recovered_points", "delta_points"), ("unanswered", "answers")),
    *(("leader_throttled_bytes", "bytes"), ("follower_throttled_bytes", "bytes")),
    *(("behind_fetches", "fetches"), ("stalled_fetches", "fetches")),
    *(("min_in_sync", "in_sync_before"), ("answers_to_followers", "answers")),
    *(("follower_bytes_per_hour", "bytes_per_hour"), ("unknown_bytes_per_hour", "bytes_per_hour")),
    *(("bound_bytes", "max_bytes"), ("filled_fetches", "fetches"), ("starved_fetches", "fetches")),
    *(("cross_rack_cost", "cost"), ("avoidable_cost", "cross_rack_cost")),
    ("moved_cost", "cost"),
    *(("first_partitions", "partitions"), ("offending_minutes", "period_minutes")),
    *(("redelivered_records", "acquired_records"), ("share_requests", "request_count")),
    ("throttled_redeliveries + unexplained_redeliveries", "redelivered_records"),
    ("max_throttle_time_ms", "throttle_time_ms"),
)
"""Columns of one row of which the first is never more than the second."""

_MAY_BE_AHEAD = {
    # When an alert will be stale is written ahead of its time.
    "metric_alert_events",
    # Seconds in which the rate of the last ids falls, if no other comes.
    "producer_id_rates",
    # What this process did, by its own clock.
    *("answer_state", "batches", "query_progress"),
}
# What was read, of logs and by snapshots.
_NEWEST = " UNION ALL ".join(
    f"SELECT event_time FROM {table}"
    for table in sorted(FACTS | {table.name for table in SNAPSHOT_TABLES})
)

_MAY_GO_BACK = {("group_commits", "first_offset", "last_offset")}
"""A client may commit an earlier offset."""

STATEMENTS = {
    "a bound of an answer is at most what its partitions may return": """
        SELECT * FROM fetch_sizes WHERE bound_bytes > partitions * partition_max_bytes
    """,
    "an answer is limited by one thing": """
        SELECT * FROM fetch_sizes
        WHERE fetches < max_bytes_fetches + broker_cap_fetches + quota_window_fetches
            + partition_max_bytes_fetches + first_batch_fetches + drained_fetches
            + wait_timeout_fetches + throttled_fetches + redirected_fetches + error_fetches
    """,
    "the parts of a latency are the whole": """
        SELECT * FROM client_latency
        WHERE abs(slowest_outside_ms + broker_total_max_ms - latency_max_ms)
            > 1e-6 * latency_max_ms + 1e-6
    """,
    "a latency is split, or a reason says why not": """
        SELECT * FROM client_latency
        WHERE (slowest_outside_ms IS NULL) <> (outside_unknown IS NOT NULL)
    """,
    "a client owes no more than it had time for": """
        SELECT * FROM client_coverage JOIN (
            SELECT cluster_id, client_instance_id, min(push_interval_ms) AS least_ms FROM (
                SELECT cluster_id, client_instance_id, push_interval_ms FROM telemetry_pushes
                UNION ALL BY NAME
                SELECT cluster_id, client_instance_id, push_interval_ms FROM telemetry_subscriptions
            ) GROUP BY ALL
        ) AS asked USING (cluster_id, client_instance_id)
        WHERE missing_pushes * least_ms > epoch_ms(last_seen) - epoch_ms(first_seen)
    """,
    "expected pushes are those that came and those that did not": """
        SELECT * FROM client_coverage WHERE expected_pushes <> accepted_pushes + missing_pushes
    """,
    "no advice and no plan slows a protected principal": """
        SELECT principal FROM protected_principals AS protected
        WHERE EXISTS (
            SELECT 1 FROM quota_advice
            WHERE quota_advice.cluster_id = protected.cluster_id
                AND 'User:' || user = protected.principal AND advice IS NOT NULL
        ) OR EXISTS (
            SELECT 1 FROM desired_configs
            WHERE desired_configs.cluster_id = protected.cluster_id AND blocked_reason IS NULL
                AND entity_type = 'user' AND 'User:' || entity_name = protected.principal
        )
    """,
    "what a topic keeps is known, or a reason says why not": """
        SELECT * FROM storage_by_hour
        WHERE (stored_bytes IS NULL) <> (unknown_reason IS NOT NULL)
            OR (unsized_replicas > 0) <> (unknown_reason IS NOT NULL)
            OR (stored_bytes IS NULL AND storage_cost IS NOT NULL)
            OR NOT (known_s > 0 AND known_s <= 3600)
    """,
    "what is done has nothing left": """
        SELECT topic, state, offsets_left FROM reassignments
        WHERE (state IN ('done', 'in_place'))
            <> coalesce(offsets_left = 0 AND bytes_left = 0, false)
            OR (state = 'cancelled' AND (offsets_left IS NOT NULL OR bytes_left IS NOT NULL))
            OR (state <> 'moving' AND eta_s IS NOT NULL)
        UNION ALL
        SELECT topic, state, bytes_left FROM ongoing_moves
        WHERE (state = 'caught_up') <> coalesce(bytes_left = 0, false)
            OR (state = 'caught_up' AND eta_s IS NOT NULL)
        UNION ALL
        SELECT topic, trend, lag FROM group_lag
        WHERE (trend = 'caught_up') <> coalesce(lag = 0 AND lag_s = 0, false)
            OR (trend = 'caught_up' AND caught_up_in_s IS NOT NULL)
    """,
    "a verdict on racks is what the share that crossed says": """
        SELECT verdict, cross_rack_share FROM client_racks
        WHERE (verdict = 'followed' AND cross_rack_share > 0.1 + 1e-9)
            OR (verdict = 'elsewhere' AND NOT coalesce(cross_rack_share > 0.9 - 1e-9, false))
            OR (verdict = 'mixed'
                AND NOT coalesce(cross_rack_share BETWEEN 0.1 - 1e-9 AND 0.9 + 1e-9, false))
    """,
    "no price, no cost": """
        SELECT cluster_id FROM top_talkers WHERE cost IS NOT NULL
            AND cluster_id NOT IN (SELECT cluster_id FROM current_prices)
    """,
    "a rate is its increase by its time": """
        SELECT * FROM metric_totals
        WHERE isfinite(increase) AND elapsed_ms > 0 AND rate_per_s IS NOT NULL
            AND abs(rate_per_s - increase * 1e3 / elapsed_ms) > 1e-9 * abs(rate_per_s)
    """,
    "one request is charged to one quota of a client": """
        SELECT cluster_id, sum(n) FROM (
            SELECT cluster_id, sum(request_count) AS n FROM quota_usage GROUP BY ALL
            UNION ALL
            SELECT cluster_id, -sum(weight) FROM requests
            WHERE cluster_id IN (SELECT cluster_id FROM quota_usage) GROUP BY ALL
        ) GROUP BY ALL HAVING sum(n) > 0
    """,
}

TOTALS = {
    "bytes by flow": (
        "SELECT cluster_id, direction, sum(bytes) FROM traffic GROUP BY ALL",
        "SELECT cluster_id, direction, sum(bytes) FROM traffic_by_hour GROUP BY ALL",
        "SELECT cluster_id, flow, sum(bytes) FROM rack_traffic WHERE flow <> 'replicated'"
        " GROUP BY ALL",
        "SELECT cluster_id, flow, sum(bytes) FROM rack_traffic_by_hour WHERE flow <> 'replicated'"
        " GROUP BY ALL",
        "UNPIVOT (SELECT cluster_id, CAST(sum(produced_bytes) AS BIGINT) AS produced,"
        " CAST(sum(consumed_bytes) AS BIGINT) AS consumed FROM top_talkers GROUP BY ALL)"
        " ON produced, consumed",
    ),
    "bytes across racks by flow": (
        "SELECT cluster_id, direction, coalesce(sum(cross_rack_bytes), 0) FROM traffic"
        " GROUP BY ALL",
        "SELECT cluster_id, direction, coalesce(sum(cross_rack_bytes), 0) FROM traffic_by_hour"
        " GROUP BY ALL",
        "SELECT cluster_id, flow, coalesce(sum(cross_rack_bytes), 0) FROM rack_traffic"
        " WHERE flow <> 'replicated' GROUP BY ALL",
        "SELECT cluster_id, flow, coalesce(sum(cross_rack_bytes), 0) FROM rack_traffic_by_hour"
        " WHERE flow <> 'replicated' GROUP BY ALL",
    ),
    "throttled requests by quota": (
        "SELECT cluster_id, quota_type, sum(throttled_requests) FROM quota_usage GROUP BY ALL",
        "SELECT cluster_id, quota_type, sum(throttled_requests) FROM throttled_clients"
        " GROUP BY ALL",
    ),
    "time throttled": (
        "SELECT cluster_id, 1, sum(throttle_time_ms) FROM quota_usage GROUP BY ALL",
        "SELECT cluster_id, 1, sum(throttle_time_ms) FROM throttled_clients GROUP BY ALL",
    ),
    "pushes": (
        "SELECT cluster_id, accepted, count(*) FROM unique_pushes GROUP BY ALL",
        "SELECT cluster_id, true, sum(pushes - rejected) FROM telemetry_cost GROUP BY ALL UNION ALL"
        " SELECT cluster_id, false, sum(rejected) FROM telemetry_cost GROUP BY ALL",
        "SELECT cluster_id, true, sum(accepted_pushes) FROM client_coverage GROUP BY ALL UNION ALL"
        " SELECT cluster_id, false, sum(rejected_pushes) FROM client_coverage GROUP BY ALL",
    ),
}
"""One fact -> the queries that show it: cluster, what it is counted by, and the same total."""


def problems(
    database: duckdb.DuckDBPyConnection, only: str | None = None
) -> dict[str, list[object]]:
    """Each statement that is not true of these tables and views -> rows for which it is not.

    With `only` no other statement is checked.
    """
    queries = {**STATEMENTS, **dict(_of_columns(database))}
    wrong: dict[str, list[object]] = {
        statement: list(rows)
        for statement, sql in queries.items()
        if only in {None, statement} and (rows := database.execute(sql).fetchmany(3))
    }
    for fact, each in TOTALS.items():
        statement = f"one total of {fact}"
        if only in {None, statement}:
            first, *others = (_totals(database, sql) for sql in each)
            if any(other != first for other in others):
                wrong[statement] = [first, *others]
    return wrong


def _totals(database: duckdb.DuckDBPyConnection, sql: str) -> dict[str, float]:
    rows = database.execute(sql).fetchall()
    return {f"{cluster} {key}": round(float(total), 3) for cluster, key, total in rows if total}


def _of_columns(database: duckdb.DuckDBPyConnection) -> Iterator[tuple[str, str]]:
    columns = database.execute(
        "SELECT table_name, column_name, data_type FROM information_schema.columns"
    ).fetchall()
    of_table: dict[str, set[str]] = {}
    for table, column, kind in columns:
        of_table.setdefault(table, set()).add(column)
        if not kind.startswith(_NUMBERS) or kind.endswith("[]"):
            continue
        name, shown = f'"{column}"', f'SELECT {column} FROM "{table}"'
        if column not in _MAY_BE_NEGATIVE:
            yield f"{table}.{column} is not negative", f"{shown} WHERE {name} < 0"
        if kind == "DOUBLE" and column not in _MAY_BE_INFINITE:
            yield f"{table}.{column} is a number", f"{shown} WHERE NOT isfinite({name})"
        if column.endswith(_SHARES) and column not in _MAY_PASS_ONE:
            yield f"{table}.{column} is a share", f"{shown} WHERE {name} > 1 + 1e-9"
    for table, names in of_table.items():
        if "event_time" in names and table not in _MAY_BE_AHEAD:
            sql = (
                f'SELECT event_time FROM "{table}" WHERE event_time > (SELECT max(event_time) FROM'
            )
            yield f"{table}: no time is ahead of all facts", f"{sql} ({_NEWEST}))"
        for low, high in _ORDERED:
            if {low, *high.split(" + ")} <= names and (table, low, high) not in _MAY_GO_BACK:
                sql = f'SELECT "{low}", {high} FROM "{table}" WHERE "{low}" > {high}'
                yield f"{table}: {low} is at most {high}", sql
