-- One row per topic id: the name of its topic, from snapshots and from what brokers told clients. An
-- id never changes its name; a topic that was made again under its name has another id.
WITH told AS (
    SELECT cluster_id, topic_id, topic, event_time FROM topics
    UNION ALL
    SELECT cluster_id, topic_id, topic, event_time FROM topic_names
)

SELECT
    cluster_id,
    topic_id,
    max(topic) AS topic,
    min(event_time) AS first_seen,
    max(event_time) AS last_seen
FROM told
WHERE topic_id IS NOT NULL
GROUP BY cluster_id, topic_id
