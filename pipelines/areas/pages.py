"""Questions of the page of a name: charts over time, and lists; `{is}` selects its rows."""

from quotaflow.pipelines.areas.diagnoses import MEANS
from quotaflow.pipelines.areas.groups import MEMBERS, POSITIONS
from quotaflow.pipelines.areas.replication import (
    BROKER_SLOW,
    EVERY_MOVE,
    EVERY_STEP,
    THROTTLE_WRONG,
)


def _lines(
    table: str, time: str, name: str, value: str, *, more: str = "true", rows: str = "{is}"
) -> str:
    return (
        f"SELECT {name} AS name, unix_micros({time}) // 1000000 // {{step}} * {{step}} AS second, "
        f"{value} AS value FROM {table} WHERE {{of_cluster}} AND {time} >= {{since}} "
        f"AND {rows} AND {more} GROUP BY 1, 2 ORDER BY name DESC, second"
    )


def _most(columns: str, table: str, since: str, rows: str = "{is}") -> str:
    """The rows with most bytes, by names that clients choose."""
    return (
        f"SELECT {columns}, sum(bytes) AS bytes, count(*) OVER () AS of_all FROM {table} "
        f"WHERE {{of_cluster}} AND {since} AND {rows} "
        f"GROUP BY ALL ORDER BY bytes DESC, {columns} LIMIT {{limit}}"
    )


TRAFFIC = _lines(
    "traffic", "event_time", "direction", "sum(bytes) / 1e6 / {step}", rows="{is_in_traffic}"
)
FULLNESS = _lines(
    "quota_usage",
    "event_time",
    "quota_type",
    "100 * max(quota_bucket_usage / quota)",
    more="quota > 0 AND quota_bucket_usage IS NOT NULL",
)
THROTTLED = _lines(
    "quota_usage",
    "event_time",
    "coalesce(throttled_by, quota_type)",
    "sum(throttle_time_ms) / 1e3",
    more="throttle_time_ms > 0",
)
LATENCY = _lines(
    "client_latency",
    "minute",
    "api",
    "max(latency_max_ms)",
    more="latency_max_ms IS NOT NULL",
)
BUDGET = f"""
SELECT
    unix_micros(event_time) // 1000000 // {{step}} * {{step}} AS second,
    {MEANS.strip()}
    AND event_time >= {{since}} AND {{is}}
GROUP BY 1
ORDER BY second
"""
"""On what requests of a name waited, by time."""
GAUGES = """
SELECT * FROM (
    SELECT
        quota_type,
        quota_bucket_user,
        quota_bucket_client_id,
        max_by(broker_id, quota_bucket_usage / quota) AS broker_id,
        max_by(quota, quota_bucket_usage / quota) AS quota,
        max_by(quota_bucket_usage, quota_bucket_usage / quota) AS usage,
        max(quota_bucket_usage / quota) AS share
    FROM quota_usage
    WHERE {of_cluster} AND {is} AND quota > 0 AND quota_bucket_usage IS NOT NULL
        AND event_time >= (
            SELECT max(event_time) - INTERVAL 1 HOUR FROM quota_usage
            WHERE {of_cluster} AND event_time >= {since} AND {is} AND quota > 0)
    GROUP BY quota_type, quota_bucket_user, quota_bucket_client_id
) AS quotas
ORDER BY share DESC, quota_type, quota_bucket_user, quota_bucket_client_id
LIMIT {limit}
"""
"""How full the quotas of a name were in its last hour, at the fullest broker of each."""
_OF_ROWS = "FROM request_times WHERE {of_cluster} AND event_time >= {since} AND {is}"
NEIGHBOURS = f"""
SELECT *, count(*) OVER () AS of_all FROM (
    SELECT
        principal,
        client_id,
        {{is}} AS is_own,
        sum(request_count) AS requests,
        sum(bytes) AS bytes,
        sum(waited_time_ms) / sum(timed_requests) AS waited_ms,
        sum(local_time_ms) / sum(sum(local_time_ms)) OVER () AS share
    FROM request_times
    WHERE {{of_cluster}} AND timed_requests > 0
        AND broker_id IN (SELECT broker_id {_OF_ROWS})
        AND event_time >= (SELECT min(event_time) {_OF_ROWS})
        AND event_time <= (SELECT max(event_time) {_OF_ROWS})
    GROUP BY principal, client_id
) AS users
WHERE NOT is_own
ORDER BY share DESC, principal, client_id
LIMIT {{limit}}
"""
"""Who else used the brokers of a name while it did."""
REPLICATION = _lines("replication_rates", "event_time", "side", "sum(bytes) / 1e6 / {step}")
COMMITS = _lines("group_commits", "event_time", "coalesce(topic, topic_id)", "sum(commits)")
LEFT = _lines(
    "move_progress",
    "event_time",
    "concat('to broker ', CAST(replica_id AS STRING))",
    "max(bytes_left) / 1e6",
    more="bytes_left IS NOT NULL",
)
DEGRADATION = (
    "SELECT name, second, max(value) AS value FROM ("
    + " UNION ALL ".join(
        f"SELECT '{api}' AS name, "
        f"unix_micros(event_time) // 1000000 // {{step}} * {{step}} AS second, "
        f"{column} AS value FROM broker_degradation WHERE {{of_cluster}} "
        f"AND event_time >= {{since}} AND {{is}} AND {column} IS NOT NULL"
        for api, column in (("produce", "produce_p99_ms"), ("fetch", "fetch_p99_ms"))
    )
    + ") AS measured GROUP BY 1, 2 ORDER BY name DESC, second"
)
LAG = (
    "SELECT concat(topic, '-', CAST(partition AS STRING)) AS name, lag AS value FROM group_lag "
    "WHERE {of_cluster} AND {is} AND lag > 0 ORDER BY lag DESC, name "
    "LIMIT {limit}"
)
CLIENTS_BY_BYTES = _most(
    "principal, client_id, direction",
    "traffic",
    "event_time >= {since}",
    "{is_in_traffic}",
)
TOPICS_BY_BYTES = _most(
    "topic, client_id, direction", "traffic_of_clients", "hour >= date_trunc('hour', {since})"
)
LAGS = POSITIONS.where("{is}").counted_rows
MEMBERS_OF = MEMBERS.where("{is}").counted_rows
MOVES = EVERY_MOVE.where("{is}").counted_rows
MOVES_OF_BROKER = EVERY_MOVE.where("replica_id = {name} OR leader_id = {name}").counted_rows
SLOW = BROKER_SLOW.question.where("{is}").counted_rows
CHECKS = THROTTLE_WRONG.question.where("{is_in_checks}").counted_rows
STEPS = EVERY_STEP.where("entity_name = {topic}").counted_rows
TOPIC_IDS = "SELECT topic_id FROM topic_ids WHERE {of_cluster} AND {of_name}"
"""Ids of a topic, which rows without its name have."""
LAST_MOVES = """
SELECT replica_id, state, requested_time, offsets_left FROM reassignments
WHERE {of_cluster} AND {is}
ORDER BY requested_time DESC, replica_id
LIMIT 5
"""
BROKER = """
SELECT host, port, rack, is_controller, is_fenced FROM current_brokers
WHERE {of_cluster} AND {is}
"""
