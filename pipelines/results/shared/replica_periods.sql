-- Whether replicas were in sync by snapshots: one row per change that a snapshot found, valid from
-- `since` to `until` (null: still).
WITH changes AS (
    SELECT
        cluster_id, topic_id, topic, "partition", broker_id, event_time AS since,
        NOT is_removed AND coalesce(is_in_sync, false) AS is_in_sync
    FROM replicas
)
SELECT *,
    lead(since) OVER (
        PARTITION BY cluster_id, topic_id, topic, "partition", broker_id
        ORDER BY since, is_in_sync
    ) AS until
FROM changes
