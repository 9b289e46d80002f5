-- In-sync replicas of partitions by the request log (ALTER_PARTITION): one row per change, valid
-- from `since` to `until` (null: still).
WITH changes AS (
    SELECT
        cluster_id, topic_id, "partition", event_time AS since, broker_id,
        coalesce(list_sort(list(DISTINCT replica_id) FILTER (replica_id IS NOT NULL)), []) AS isr
    FROM reassignment_changes
    -- 108 is NEW_LEADER_ELECTED: the change is done too.
    WHERE change = 'in_sync' AND error_code IN (0, 108)
    GROUP BY ALL
)
SELECT
    cluster_id, topic_id, "partition", since, isr,
    lead(since) OVER (
        PARTITION BY cluster_id, topic_id, "partition" ORDER BY since, isr, broker_id
    ) AS until
FROM changes
