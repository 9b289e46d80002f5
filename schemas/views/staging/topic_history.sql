-- kind: staging
-- grain: one row per topic id and period in which the topic did not change
-- area: cluster
-- level: admin_api
-- description: The states of each topic over time, as snapshots saw them. A change between two
--   snapshots counts from the later one.
-- columns:
--   from topics: cluster_id, topic_id, topic, partition_count, is_internal
--   valid_from: time of the snapshot that saw this state first
--   valid_to: time of the snapshot that saw the next state; null: the last snapshot still found this
--     one
WITH changes AS (
    SELECT
        *,
        lead(event_time) OVER (
            PARTITION BY cluster_id, topic_id ORDER BY event_time
        ) AS valid_to
    FROM topics
)

SELECT
    *,
    event_time AS valid_from
FROM changes
WHERE NOT is_removed
