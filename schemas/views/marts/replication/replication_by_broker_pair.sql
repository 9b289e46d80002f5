-- kind: mart
-- grain: one row per hour, leader and follower
-- area: replication
-- level: sampled_log
-- question: Replication by broker. How much does each broker copy from each other one?
-- description: How much each follower reads from each leader, what replication throttles cover of it
--   (KIP-73), and how far it was behind.
-- columns:
--   from replication_traffic: cluster_id
--   hour: start of the hour
--   leader_id: broker that was read from
--   follower_id: broker that read
--   from replication_traffic: bytes, leader_throttled_bytes, follower_throttled_bytes
--   peak_bytes_per_s: record bytes per second in the minute with most
--   partitions: partitions replicated
--   partitions_behind: those of them that were ever behind
--   peak_offset_lag: sum of the offset lags of all partitions at the end of the worst minute; null: one
--     of them is not known
WITH minutes AS (
    SELECT
        cluster_id,
        event_time,
        leader_id,
        follower_id,
        sum(bytes) AS bytes,
        sum(leader_throttled_bytes) AS leader_throttled_bytes,
        sum(follower_throttled_bytes) AS follower_throttled_bytes,
        CASE WHEN count(offset_lag) = count(*) THEN sum(offset_lag) END AS offset_lag
    FROM replication_traffic
    WHERE follower_id IS NOT NULL
    GROUP BY cluster_id, event_time, leader_id, follower_id
),
by_partition AS (
    SELECT
        cluster_id,
        date_trunc('hour', event_time) AS hour,
        leader_id,
        follower_id,
        coalesce(topic_id, topic) AS topic,
        partition,
        max(CASE WHEN behind_fetches > 0 THEN 1 ELSE 0 END) AS was_behind
    FROM replication_traffic
    WHERE follower_id IS NOT NULL
    GROUP BY ALL
),
partitions AS (
    SELECT
        cluster_id,
        hour,
        leader_id,
        follower_id,
        count(*) AS partitions,
        sum(was_behind) AS partitions_behind
    FROM by_partition
    GROUP BY cluster_id, hour, leader_id, follower_id
),
hours AS (
    SELECT
        cluster_id,
        date_trunc('hour', event_time) AS hour,
        leader_id,
        follower_id,
        sum(bytes) AS bytes,
        sum(leader_throttled_bytes) AS leader_throttled_bytes,
        sum(follower_throttled_bytes) AS follower_throttled_bytes,
        max(bytes) / 60e0 AS peak_bytes_per_s,
        CASE WHEN count(offset_lag) = count(*) THEN max(offset_lag) END AS peak_offset_lag
    FROM minutes
    GROUP BY cluster_id, date_trunc('hour', event_time), leader_id, follower_id
)

SELECT * FROM hours
INNER JOIN partitions USING (cluster_id, hour, leader_id, follower_id)
