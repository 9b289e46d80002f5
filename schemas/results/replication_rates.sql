-- kind: result
-- grain: one row per second in which it moved bytes that a list covers, in sync or not
-- area: replication
-- level: sampled_log
-- description: LeaderReplicationThrottledRate and FollowerReplicationThrottledRate of a broker
--   (KIP-73), one row {per}
-- key: cluster_id, event_time, broker_id, side
-- time: event_time
-- partitioning: event_date
-- facts: requests
-- relevant: api = 'PRODUCE' OR (api = 'FETCH' AND replica_id IS NOT NULL) OR api IN
--   ('INCREMENTAL_ALTER_CONFIGS', 'ALTER_CONFIGS', 'CREATE_TOPICS', 'DELETE_TOPICS', 'METADATA',
--   'DESCRIBE_TOPIC_PARTITIONS', 'CREATE_TOPICS')
-- bucket: 1 min
-- lookback: 10 s
-- split_by: cluster_id, broker_id
-- split_or_by: cluster_id, replica_id
-- runs_forward: yes
-- lookups:
--   config_alterations: changes nothing
--   configs: from event_time, reaches back
--   topic_names: changes nothing
--   topics: changes nothing
-- unnamed:
--   replication_traffic
-- columns:
--   from topic_names: cluster_id, event_date
--   event_time TIMESTAMP: start of the second, by the leader's clock
--   broker_id INT: broker whose rate it is
--   side STRING: leader: the broker is read from; follower: it reads
--   bytes BIGINT: record bytes in this second
--   throttled_rate DOUBLE: bytes of this second and the ten before, over the time from the first to
--     the last of them, one second at least: Kafka's SimpleRate when the last came, over aligned
--     seconds; the broker's may differ by one sample
--   quota DOUBLE: rate that applies, bytes per second; null: none is known
--   is_over BOOLEAN: throttled_rate above the quota

-- Throttled replication of brokers as Kafka's SimpleRate measures it (KIP-73), by second.
WITH sides(side) AS (VALUES ('leader'), ('follower')),
-- One row per second in which a side of a broker moved bytes that a list covers.
seconds AS (
    SELECT
        cluster_id, event_time, if(side = 'leader', leader_id, follower_id) AS broker_id, side,
        sum(if(side = 'leader', leader_throttled_bytes, follower_throttled_bytes)) AS bytes,
        min(first_time) AS first_time, max(last_time) AS last_time
    FROM partition_seconds, sides
    WHERE if(side = 'leader', leader_throttled_bytes, follower_throttled_bytes) > 0
    GROUP BY ALL
),
-- The rate begins with the first record, as SimpleRate does, and covers at least a second.
-- The period is all windows of the quota together: the second's own, and those of $lookback_s.
measured AS (
    SELECT *,
        (epoch_us(last_time) - min(epoch_us(first_time)) OVER last_seconds) / 1_000_000
            AS covered_s,
        sum(bytes) OVER last_seconds / greatest(covered_s, 1.0::DOUBLE) AS throttled_rate
    FROM seconds
    WINDOW last_seconds AS (
        PARTITION BY cluster_id, broker_id, side ORDER BY epoch_seconds(event_time)
        RANGE BETWEEN $lookback_s PRECEDING AND CURRENT ROW
    )
),
rates AS (FROM throttle_rates),
brokers_with_rates AS (SELECT DISTINCT cluster_id, side, broker_id FROM rates)
SELECT
    m.cluster_id, CAST(event_time AS DATE) AS event_date, event_time, m.broker_id, m.side, bytes,
    throttled_rate, rate AS quota, coalesce(throttled_rate > rate, false) AS is_over
FROM measured m
LEFT JOIN brokers_with_rates b USING (cluster_id, side, broker_id)
LEFT JOIN rates r ON r.cluster_id = m.cluster_id AND r.side = m.side
    AND r.broker_id IS NOT DISTINCT FROM b.broker_id
    AND since < event_time + INTERVAL 1 SECOND AND coalesce(until > event_time, true)
-- The last rate that the broker had in the second.
QUALIFY row_number() OVER (
    PARTITION BY m.cluster_id, m.broker_id, m.side, event_time ORDER BY since DESC
) = 1
