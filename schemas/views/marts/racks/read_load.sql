-- kind: mart
-- grain: one row per broker
-- area: racks
-- level: sampled_log
-- question: Traffic and reads by broker. Which broker carries most bytes, how uneven is that, and what
--   would change if each consumer read the nearest replica?
-- description: The record bytes of each broker, per hour of the last day. What consumers read from it
--   is there as they do now, as they would if each read from its nearest replica as Kafka names it
--   (recommended), and as they would if those with several followers as near read from all of them
--   alike (spread; a replica selector of one's own can do that) (KIP-392).
-- first: traffic_skew
-- columns:
--   from current_brokers: cluster_id, broker_id
--   rack: broker.rack; null: it has none, or no snapshot has the broker
--   traffic_bytes_per_hour: record bytes that clients produced to it and read from it and that its
--     followers read from it, per hour
--   traffic_skew: traffic_bytes_per_hour / mean of all brokers of the cluster; 1 if all carry the same
--   produced_bytes_per_hour: record bytes that clients produced to it, per hour
--   bytes_per_hour: record bytes that consumers read from it, per hour
--   follower_bytes_per_hour: those of partitions that it does not lead, per hour
--   unknown_bytes_per_hour: those for which the nearest replica is not known, per hour; they stay where
--     they are in the other columns
--   replicated_bytes_per_hour: record bytes that its followers read from it, per hour
--   recommended_bytes_per_hour: record bytes per hour if each consumer read from its nearest replica as
--     Kafka names it
--   spread_bytes_per_hour: record bytes per hour if consumers spread over replicas that are as near
--   skew: bytes_per_hour / mean of the brokers of its rack; 1 if all serve the same, or if it is the
--     only one
--   recommended_skew: recommended_bytes_per_hour / mean of the brokers of its rack
--   spread_skew: spread_bytes_per_hour / mean of the brokers of its rack
--   since: first minute that counts
--   until: last minute that counts
WITH newest AS (
    SELECT cluster_id, max(event_time) AS event_time
    FROM (
        SELECT cluster_id, event_time FROM preferred_replicas
        UNION ALL
        SELECT cluster_id, event_time FROM rack_traffic
    ) AS moved
    GROUP BY cluster_id
),
read AS (
    SELECT
        reads.*,
        coalesce(reads.recommended_replica, reads.broker_id) AS nearest
    FROM preferred_replicas AS reads
    INNER JOIN newest USING (cluster_id)
    WHERE unix_millis(reads.event_time) > unix_millis(newest.event_time) - 86400000
),
moved AS (
    SELECT traffic.cluster_id, traffic.event_time, traffic.broker_id, traffic.flow, traffic.bytes
    FROM rack_traffic AS traffic
    INNER JOIN newest USING (cluster_id)
    WHERE unix_millis(traffic.event_time) > unix_millis(newest.event_time) - 86400000
),
time_ranges AS (
    SELECT cluster_id, min(event_time) AS since, max(event_time) AS until
    FROM (
        SELECT cluster_id, event_time FROM read
        UNION ALL
        SELECT cluster_id, event_time FROM moved
    ) AS counted
    GROUP BY cluster_id
),
shared AS (
    SELECT
        read.cluster_id,
        brokers.broker_id,
        CAST(read.bytes AS DOUBLE) / cardinality(read.eligible_replicas) AS bytes
    FROM read
    INNER JOIN current_brokers AS brokers
        ON read.cluster_id = brokers.cluster_id
            AND array_contains(read.eligible_replicas, brokers.broker_id)
),
served AS (
    SELECT cluster_id, broker_id, 'read' AS measure, CAST(bytes AS DOUBLE) AS bytes
    FROM read
    UNION ALL
    SELECT cluster_id, broker_id, 'follower' AS measure, CAST(bytes AS DOUBLE) AS bytes
    FROM read
    WHERE broker_id <> leader_id
    UNION ALL
    SELECT cluster_id, broker_id, 'unknown' AS measure, CAST(bytes AS DOUBLE) AS bytes
    FROM read
    WHERE recommended_replica IS NULL
    UNION ALL
    SELECT cluster_id, nearest AS broker_id, 'recommended' AS measure, CAST(bytes AS DOUBLE) AS bytes
    FROM read
    UNION ALL
    SELECT cluster_id, nearest AS broker_id, 'spread' AS measure, CAST(bytes AS DOUBLE) AS bytes
    FROM read
    WHERE eligible_replicas IS NULL
    UNION ALL
    SELECT cluster_id, broker_id, 'spread' AS measure, bytes
    FROM shared
    UNION ALL
    SELECT cluster_id, broker_id, flow AS measure, CAST(bytes AS DOUBLE) AS bytes
    FROM moved
    WHERE flow <> 'consumed'
    UNION ALL
    SELECT brokers.cluster_id, brokers.broker_id, 'nothing' AS measure, CAST(0 AS DOUBLE) AS bytes
    FROM current_brokers AS brokers
    INNER JOIN time_ranges USING (cluster_id)
),
of_brokers AS (
    SELECT
        served.cluster_id,
        served.broker_id,
        max(brokers_now.rack) AS rack,
        sum(CASE WHEN served.measure = 'read' THEN served.bytes ELSE 0e0 END) AS bytes,
        sum(CASE WHEN served.measure = 'follower' THEN served.bytes ELSE 0e0 END) AS follower_bytes,
        sum(CASE WHEN served.measure = 'unknown' THEN served.bytes ELSE 0e0 END) AS unknown_bytes,
        sum(CASE WHEN served.measure = 'replicated' THEN served.bytes ELSE 0e0 END)
            AS replicated_bytes,
        sum(CASE WHEN served.measure = 'produced' THEN served.bytes ELSE 0e0 END)
            AS produced_bytes,
        sum(CASE WHEN served.measure = 'recommended' THEN served.bytes ELSE 0e0 END)
            AS recommended_bytes,
        sum(CASE WHEN served.measure = 'spread' THEN served.bytes ELSE 0e0 END) AS spread_bytes
    FROM served
    LEFT JOIN current_brokers AS brokers_now USING (cluster_id, broker_id)
    GROUP BY served.cluster_id, served.broker_id
),
hourly AS (
    SELECT
        of_brokers.*,
        bytes + produced_bytes + replicated_bytes AS traffic_bytes,
        (unix_millis(time_ranges.until) - unix_millis(time_ranges.since) + 60000) / 36e5 AS hours,
        time_ranges.since,
        time_ranges.until
    FROM of_brokers
    INNER JOIN time_ranges USING (cluster_id)
)

SELECT
    *,
    traffic_bytes / hours AS traffic_bytes_per_hour,
    traffic_bytes / nullif(avg(traffic_bytes) OVER (PARTITION BY cluster_id), 0) AS traffic_skew,
    produced_bytes / hours AS produced_bytes_per_hour,
    bytes / hours AS bytes_per_hour,
    follower_bytes / hours AS follower_bytes_per_hour,
    unknown_bytes / hours AS unknown_bytes_per_hour,
    replicated_bytes / hours AS replicated_bytes_per_hour,
    recommended_bytes / hours AS recommended_bytes_per_hour,
    spread_bytes / hours AS spread_bytes_per_hour,
    bytes / nullif(avg(bytes) OVER (PARTITION BY cluster_id, rack), 0) AS skew,
    recommended_bytes / nullif(avg(recommended_bytes) OVER (PARTITION BY cluster_id, rack), 0)
        AS recommended_skew,
    spread_bytes / nullif(avg(spread_bytes) OVER (PARTITION BY cluster_id, rack), 0) AS spread_skew
FROM hourly
