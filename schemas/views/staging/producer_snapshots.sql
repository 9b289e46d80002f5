-- kind: staging
-- grain: one row per cluster
-- description: When the first and the last snapshot of producers were taken. active_producers has only
--   changes; for snapshots without a change, pipeline_progress has the time.
-- columns:
--   from active_producers: cluster_id
--   first_at: time of the first snapshot of producers
--   snapshot_time: time of the last snapshot of producers
SELECT cluster_id, min(event_time) AS first_at, max(event_time) AS snapshot_time
FROM (
    SELECT cluster_id, event_time FROM active_producers
    UNION ALL
    SELECT cluster_id, event_time FROM pipeline_progress
    WHERE job = 'snapshot' AND target = 'active_producers' AND outcome = 'in'
) AS taken
GROUP BY cluster_id
