-- kind: staging
-- grain: one row per replica of a partition
-- area: cluster
-- level: admin_api
-- question: Replicas. Which broker has which replica, and is it in sync?
-- description: The state of each replica in the last snapshot.
-- columns:
--   from replicas: cluster_id, topic_id, topic, partition, broker_id, is_preferred, is_leader,
--     is_in_sync, is_offline
--   valid_from: time of the snapshot that saw this state first
SELECT
    *,
    event_time AS valid_from
FROM (
    SELECT
        *,
        row_number() OVER (
            PARTITION BY cluster_id, topic_id, partition, broker_id ORDER BY event_time DESC
        ) AS age
    FROM replicas
) AS aged
WHERE age = 1 AND NOT is_removed
