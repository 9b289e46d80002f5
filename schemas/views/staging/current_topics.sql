-- kind: staging
-- grain: one row per topic
-- description: The state of each topic in the last snapshot.
-- columns:
--   from topic_history: cluster_id, topic_id, topic, partition_count, is_internal, valid_from
SELECT
    cluster_id,
    topic_id,
    topic,
    partition_count,
    is_internal,
    valid_from
FROM topic_history
WHERE valid_to IS NULL
