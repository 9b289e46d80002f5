-- One row per topic id: the name of its topic, by an answer or a snapshot. An id never gets another
-- name, so the name is that of all time. A name that comes later affects rows without a name
-- (pipelines/compute/late_names.py).
WITH named AS (
    SELECT cluster_id, topic_id, topic FROM topic_names
    UNION ALL
    SELECT cluster_id, topic_id, topic FROM topics
)
SELECT cluster_id, topic_id, max(topic) AS topic
FROM named
WHERE topic_id IS NOT NULL AND topic IS NOT NULL
GROUP BY ALL
