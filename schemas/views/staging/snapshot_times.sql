-- kind: staging
-- grain: one row per table that snapshots fill, and snapshot of it
-- area: pipeline
-- level: admin_api
-- question: Snapshots. As of when does each table have the state of the cluster?
-- description: When snapshots were taken. Their tables have only changes, so a snapshot without a
--   change shows here alone.
-- columns:
--   from pipeline_progress: cluster_id
--   table_name: table that the snapshot filled
--   taken_at: time of the snapshot
--   taken_before: time of the one before it; null: it is the first
--   last_taken: time of the last one
SELECT
    cluster_id,
    target AS table_name,
    event_time AS taken_at,
    lag(event_time) OVER (PARTITION BY cluster_id, target ORDER BY event_time) AS taken_before,
    max(event_time) OVER (PARTITION BY cluster_id, target) AS last_taken
FROM (
    SELECT DISTINCT
        cluster_id,
        target,
        event_time
    FROM pipeline_progress
    WHERE job = 'snapshot' AND outcome = 'in' AND target IS NOT NULL
) AS runs
