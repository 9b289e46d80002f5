-- kind: staging
-- grain: one row per cluster
-- area: producer_ids
-- level: admin_api
-- description: When the first and the last snapshot of producers were taken. active_producers has only
--   changes; for snapshots without a change, pipeline_progress has the time.
-- columns:
--   from active_producers: cluster_id
--   first_at: time of the first snapshot of producers
--   paced_since: time of the first snapshot in the hour before the last one, or else of the last one
--     before that hour: what came since shows the pace of now; null: there is one snapshot only
--   snapshot_time: time of the last snapshot of producers
WITH taken AS (
    SELECT cluster_id, event_time FROM active_producers
    UNION ALL
    SELECT cluster_id, event_time FROM pipeline_progress
    WHERE job = 'snapshot' AND target = 'active_producers' AND outcome = 'in'
),
timed AS (
    SELECT
        cluster_id,
        event_time,
        max(event_time) OVER (PARTITION BY cluster_id) AS snapshot_time
    FROM taken
)

SELECT
    cluster_id,
    min(event_time) AS first_at,
    coalesce(
        min(
            CASE
                WHEN unix_millis(event_time) >= unix_millis(snapshot_time) - 3600000
                    AND event_time < snapshot_time
                    THEN event_time
            END
        ),
        max(event_time)
            FILTER (WHERE unix_millis(event_time) < unix_millis(snapshot_time) - 3600000)
    ) AS paced_since,
    max(snapshot_time) AS snapshot_time
FROM timed
GROUP BY cluster_id
