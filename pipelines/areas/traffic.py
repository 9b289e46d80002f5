"""A cluster in numbers: its size, what clients moved, and numbers against the period before."""

from quotaflow.pipelines.areas.question import Question

CLUSTERS = Question(
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
    "cluster_id",
)
BY_HOUR = Question(
    """
SELECT cluster_id, hour, direction, sum(bytes) AS bytes
FROM traffic_of_clients
WHERE {of_cluster} AND {within:hour}
GROUP BY cluster_id, hour, direction
""",
    "hour",
)
CLUSTER = """
SELECT
    (SELECT count(*) FROM current_brokers WHERE {of_cluster}) AS brokers,
    (SELECT count(DISTINCT rack) FROM current_brokers WHERE {of_cluster}) AS racks,
    (SELECT count(*) FROM current_topics WHERE {of_cluster}) AS topics,
    count(DISTINCT concat(topic_id, '-', CAST(partition AS STRING))) AS partitions
FROM current_replicas
WHERE {of_cluster}
"""
CLIENTS = """
SELECT
    count(DISTINCT principal) AS principals,
    count(DISTINCT client_id) AS clients,
    sum(CASE WHEN direction = 'produced' THEN bytes END) AS produced,
    sum(CASE WHEN direction = 'consumed' THEN bytes END) AS consumed
FROM traffic
WHERE {of_cluster} AND {within:event_time}
"""
FLOWS = """
SELECT
    direction,
    unix_micros(event_time) // 1000000 // {step} * {step} AS second,
    sum(bytes) / 1e6 / {step} AS rate
FROM traffic
WHERE {of_cluster} AND {within:event_time}
GROUP BY 1, 2
ORDER BY direction DESC, second
"""

SNAPSHOTS = """
SELECT
    count(DISTINCT CASE WHEN event_time >= {since} THEN batch_id END) AS now,
    count(DISTINCT batch_id) AS every
FROM pipeline_progress
WHERE {of_cluster} AND job = 'snapshot'
"""
CHANGES_SEEN = """
SELECT count(*) AS changes
FROM config_value_changes
WHERE {of_cluster} AND changed_at >= {since} AND known_by = 'snapshot'
"""
BOTH = """
SELECT
    coalesce(sum(CASE WHEN event_time >= {since} THEN {value} END), 0) AS now,
    coalesce(sum(CASE WHEN event_time < {since} THEN {value} END), 0) AS before
FROM {table}
WHERE {of_cluster} AND event_time >= {before}
"""
BY_STEP = """
SELECT
    unix_micros(event_time) // 1000000 // {step} * {step} AS second,
    sum({value}) AS value
FROM {table}
WHERE {of_cluster} AND event_time >= {since}
GROUP BY 1
ORDER BY second
"""
EARLIER = """
SELECT 1 AS one FROM {table} WHERE {of_cluster} AND event_time < {before} LIMIT 1
"""
RACK_COSTS = """
SELECT
    sum(bytes) AS bytes,
    sum(cross_rack_bytes) AS cross_rack_bytes,
    sum(CASE WHEN cross_rack_bytes IS NULL THEN bytes END) AS unknown_bytes,
    sum(avoidable_bytes) AS avoidable_bytes,
    sum(cross_rack_cost) AS cross_rack_cost,
    sum(avoidable_cost) AS avoidable_cost,
    max(currency) AS currency,
    min(hour) AS first_hour
FROM rack_traffic_by_hour
WHERE {of_cluster} AND hour >= date_trunc('hour', {since})
"""
