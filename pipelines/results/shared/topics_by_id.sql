-- One row per topic id: the name of its topic, and `since` when an answer or a snapshot shows it.
-- An id never gets another name.
WITH named AS (
    SELECT cluster_id, topic_id, topic, event_time AS since FROM topic_names
    UNION ALL
    SELECT cluster_id, topic_id, topic,
        since_of(event_time, min(event_time) OVER (PARTITION BY cluster_id)) AS since
    FROM topics
)
SELECT cluster_id, topic_id, max(topic) AS topic, min(since) AS since
FROM named
WHERE topic_id IS NOT NULL
GROUP BY ALL
