-- One row per topic as the last snapshot found it.
SELECT
    cluster_id,
    topic_id,
    topic,
    partition_count,
    is_internal,
    valid_from
FROM topic_history
WHERE valid_to IS NULL
