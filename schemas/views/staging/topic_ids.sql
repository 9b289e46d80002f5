-- kind: staging
-- grain: one row per topic id
-- area: cluster
-- level: admin_api
-- description: The name of the topic behind each topic id, from snapshots and from answers of brokers
--   to clients. An id always has the same name; a topic that is created again under the same name gets
--   another id.
-- history: topic_names
-- columns:
--   from topics: cluster_id, topic_id, topic
--   first_seen: earliest snapshot that changed the topic, or minute of an answer that names the id
--   last_seen: latest snapshot that changed the topic, or minute of an answer that names the id
WITH names AS (
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
FROM names
WHERE topic_id IS NOT NULL
GROUP BY cluster_id, topic_id
