WITH produced AS (
    SELECT
        writes.cluster_id,
        writes.topic,
        writes.partition,
        writes.event_time,
        newest.event_time AS now,
        sum(writes.bytes) AS bytes
    FROM replication_traffic AS writes
    INNER JOIN replication_time AS newest ON writes.cluster_id = newest.cluster_id
    WHERE
        writes.follower_id IS NULL
        AND unix_micros(writes.event_time) > unix_micros(newest.event_time) - 600000000
    GROUP BY
        writes.cluster_id,
        writes.topic,
        writes.partition,
        writes.event_time,
        newest.event_time
)

SELECT
    cluster_id,
    topic,
    partition,
    max(now) AS event_time,
    max(bytes) / 60e0 AS written_bytes_per_s
FROM produced
WHERE topic IS NOT NULL
GROUP BY cluster_id, topic, partition
