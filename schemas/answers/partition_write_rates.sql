-- kind: answer
-- grain: one row per partition that clients wrote to in the last ten minutes with replication
-- area: replication
-- level: sampled_log
-- description: How much is written into each partition, which every replica must take to keep up.
-- key: cluster_id, topic, partition
-- time: event_time
-- clustering: event_time, topic
-- lookbacks:
--   replication_traffic: 10 min
--   replication_throttles: 10 min
-- columns:
--   from replication_traffic: cluster_id
--   topic STRING: name of the topic
--   from replication_traffic: partition
--   event_time TIMESTAMP: start of the newest minute with data about replication
--   written_bytes_per_s DOUBLE: record bytes that clients produced into the partition, per second
--     of the busiest of the last ten minutes

WITH produced AS (
    SELECT
        writes.cluster_id,
        writes.topic,
        writes.partition,
        writes.event_time,
        newest.event_time AS now,
        sum(writes.bytes) AS bytes
    FROM replication_traffic AS writes
    INNER JOIN replication_time AS newest USING (cluster_id)
    WHERE
        writes.follower_id IS NULL
        AND unix_micros(writes.event_time) > unix_micros(newest.event_time) - 600000000
    GROUP BY ALL
)

SELECT
    *,
    max(now) AS event_time,
    max(bytes) / 60e0 AS written_bytes_per_s
FROM produced
WHERE topic IS NOT NULL
GROUP BY ALL
