-- One row per cluster: its first snapshot of producers, and its last (snapshot_time). active_producers
-- has what changed alone: of a snapshot that found nothing new pipeline_progress tells.
SELECT cluster_id, min(event_time) AS first_at, max(event_time) AS snapshot_time
FROM (
    SELECT cluster_id, event_time FROM active_producers
    UNION ALL
    SELECT cluster_id, event_time FROM pipeline_progress
    WHERE job = 'snapshot' AND target = 'active_producers' AND outcome = 'in'
) AS taken
GROUP BY cluster_id
