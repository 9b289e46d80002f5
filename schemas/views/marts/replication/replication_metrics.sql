-- kind: mart
-- grain: one row per minute and broker
-- area: replication
-- level: sampled_log
-- description: The metrics of KIP-73 under its names. The table replication_rates has the throttled
--   rates of every second.
-- columns:
--   from replication_traffic: cluster_id, event_time
--   broker_id: broker whose metrics these are
--   leader_replication_throttled_rate: greatest LeaderReplicationThrottledRate of the minute, in bytes
--     per second
--   follower_replication_throttled_rate: greatest FollowerReplicationThrottledRate of the minute, in
--     bytes per second
--   bytes_in_rate: what clients produced into partitions that it leads, in bytes per second over the
--     minute. The KIP's PartitionBytesInRate is this rate of one partition: see partition_write_rates
--   replicated_bytes_in_rate: what it read as a follower, in bytes per second over the minute
--   replicated_bytes_out_rate: what followers read from it, in bytes per second over the minute
--   sum_replica_lag: offsets that its own replicas were behind their leaders at the end of the minute,
--     in all (SumReplicaLag); null: not known for one of them, or it follows no partition
--   followers_offset_lag: offsets that the followers of its partitions were behind at the end of the
--     minute, in all; null: not known for one of them, or no follower read from it
WITH led AS (
    SELECT
        cluster_id,
        event_time,
        coalesce(leader_id, -1) AS broker_id,
        sum(CASE WHEN follower_id IS NULL THEN bytes ELSE 0 END) / 60e0 AS bytes_in_rate,
        sum(CASE WHEN follower_id IS NOT NULL THEN bytes ELSE 0 END) / 60e0
            AS replicated_bytes_out_rate,
        CAST(NULL AS BIGINT) AS sum_replica_lag,
        CASE
            WHEN
                count(CASE WHEN follower_id IS NOT NULL THEN 1 END)
                = count(CASE WHEN follower_id IS NOT NULL THEN offset_lag END)
                THEN sum(CASE WHEN follower_id IS NOT NULL THEN offset_lag END)
        END AS followers_offset_lag,
        0e0 AS replicated_bytes_in_rate
    FROM replication_traffic
    GROUP BY cluster_id, event_time, leader_id
    UNION ALL
    SELECT
        cluster_id,
        event_time,
        coalesce(follower_id, -1) AS broker_id,
        0e0 AS bytes_in_rate,
        0e0 AS replicated_bytes_out_rate,
        CASE WHEN count(*) = count(offset_lag) THEN sum(offset_lag) END AS sum_replica_lag,
        CAST(NULL AS BIGINT) AS followers_offset_lag,
        sum(bytes) / 60e0 AS replicated_bytes_in_rate
    FROM replication_traffic
    WHERE follower_id IS NOT NULL
    GROUP BY cluster_id, event_time, follower_id
),
moved AS (
    SELECT
        cluster_id,
        event_time,
        broker_id,
        sum(bytes_in_rate) AS bytes_in_rate,
        sum(replicated_bytes_in_rate) AS replicated_bytes_in_rate,
        sum(replicated_bytes_out_rate) AS replicated_bytes_out_rate,
        max(sum_replica_lag) AS sum_replica_lag,
        max(followers_offset_lag) AS followers_offset_lag
    FROM led
    GROUP BY cluster_id, event_time, broker_id
),
rates AS (
    SELECT
        cluster_id,
        date_trunc('minute', event_time) AS event_time,
        broker_id,
        max(CASE WHEN side = 'leader' THEN throttled_rate END) AS leader_rate,
        max(CASE WHEN side = 'follower' THEN throttled_rate END) AS follower_rate
    FROM replication_rates
    GROUP BY cluster_id, date_trunc('minute', event_time), broker_id
)

SELECT
    *,
    coalesce(rates.leader_rate, 0e0) AS leader_replication_throttled_rate,
    coalesce(rates.follower_rate, 0e0) AS follower_replication_throttled_rate
FROM moved
LEFT JOIN rates USING (cluster_id, event_time, broker_id)
