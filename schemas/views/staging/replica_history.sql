-- kind: staging
-- grain: one row per replica of a partition and period in which its state did not change
-- area: cluster
-- level: admin_api
-- description: The states of each replica over time, as snapshots saw them. A change between two
--   snapshots counts from the later one.
-- columns:
--   from replicas: cluster_id, topic_id, partition, broker_id, topic, is_preferred, is_leader,
--     is_in_sync, is_offline
--   valid_from: time of the snapshot that saw this state first
--   valid_to: time of the snapshot that saw the next state; null: the last snapshot still found this
--     one
WITH changes AS (
    SELECT
        *,
        lead(event_time) OVER (
            PARTITION BY cluster_id, topic_id, partition, broker_id ORDER BY event_time
        ) AS valid_to
    FROM replicas
)

SELECT
    *,
    event_time AS valid_from
FROM changes
WHERE NOT is_removed
