-- kind: staging
-- grain: one row per topic
-- area: cluster
-- level: admin_api
-- question: Topics. Which topics are there?
-- description: The state of each topic in the last snapshot.
-- columns:
--   from topics: cluster_id, topic_id, topic, partition_count, is_internal
--   valid_from: time of the snapshot that saw this state first
SELECT
    *,
    event_time AS valid_from
FROM (
    SELECT
        *,
        row_number() OVER (
            PARTITION BY cluster_id, topic_id ORDER BY event_time DESC
        ) AS age
    FROM topics
) AS aged
WHERE age = 1 AND NOT is_removed
