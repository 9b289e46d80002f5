WITH produced AS (
    SELECT
        writes.cluster_id,
        coalesce(writes.topic, topic_ids.topic) AS topic,
        writes.partition,
        writes.event_time,
        newest.event_time AS now,
        sum(writes.bytes) AS bytes
    FROM replication_traffic AS writes
    INNER JOIN replication_time AS newest ON writes.cluster_id = newest.cluster_id
    LEFT JOIN topic_ids
        ON writes.cluster_id = topic_ids.cluster_id AND writes.topic_id = topic_ids.topic_id
    WHERE
        writes.follower_id IS NULL
        AND unix_micros(writes.event_time) > unix_micros(newest.event_time) - 600000000
    GROUP BY
        writes.cluster_id,
        coalesce(writes.topic, topic_ids.topic),
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
