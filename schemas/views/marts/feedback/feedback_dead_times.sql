-- kind: mart
-- grain: one row per cluster that plans changed
-- area: configs
-- level: admin_api
-- description: How long a write to the cluster takes to show in results: from the write to the end of the
--   first batch of request_results that has a whole window of brokers after it. Of the last 20 changes.
-- columns:
--   from config_changes: cluster_id
--   changes: how many of the last 20 changes show in a batch
--   p95_delay_s: 95th percentile of their delays, in seconds
--   job_period_s: median time from the start of a batch of request_results to that of the next, over the
--     last 100 batches, in seconds; null: not known
--   dead_time_s: p95_delay_s, or two job periods if that is longer, in seconds; null: unknown, because
--     fewer than 5 changes show
WITH finished AS (
    SELECT
        cluster_id,
        event_time AS started_at,
        unix_millis(event_time) + coalesce(duration_ms, 0) AS ended_ms,
        unix_millis(newest_event_time) AS newest_ms
    FROM batches
    WHERE job = 'request_results' AND newest_event_time IS NOT NULL
),
numbered AS (
    SELECT
        cluster_id,
        unix_millis(started_at)
        - lag(unix_millis(started_at)) OVER (PARTITION BY cluster_id ORDER BY started_at) AS gap_ms,
        row_number() OVER (PARTITION BY cluster_id ORDER BY started_at DESC) AS age
    FROM finished
),
gaps AS (
    SELECT
        cluster_id,
        gap_ms,
        row_number() OVER (PARTITION BY cluster_id ORDER BY gap_ms) AS nth,
        count(*) OVER (PARTITION BY cluster_id) AS gap_count
    FROM numbered
    WHERE age <= 100 AND gap_ms IS NOT NULL
),
periods AS (
    SELECT
        cluster_id,
        min(CASE WHEN nth * 2 >= gap_count THEN gap_ms END) / 1e3 AS job_period_s
    FROM gaps
    GROUP BY cluster_id
),
writes AS (
    SELECT cluster_id, run_id, change_id, event_time
    FROM config_changes
    WHERE step = 'done' AND operation <> 'RENEW' AND purpose = 'apply'
),
delays AS (
    -- Kafka's default window is 11 s: before it is over, its usage is partly of the time before.
    SELECT
        writes.cluster_id,
        writes.event_time,
        min(finished.ended_ms) - unix_millis(writes.event_time) AS delay_ms
    FROM writes
    INNER JOIN finished
        ON writes.cluster_id = finished.cluster_id
            AND finished.newest_ms >= unix_millis(writes.event_time) + 11000
    GROUP BY writes.cluster_id, writes.run_id, writes.change_id, writes.event_time
),
recent AS (
    SELECT
        cluster_id,
        delay_ms,
        row_number() OVER (PARTITION BY cluster_id ORDER BY event_time DESC) AS age
    FROM delays
),
ranked AS (
    SELECT
        cluster_id,
        delay_ms,
        row_number() OVER (PARTITION BY cluster_id ORDER BY delay_ms) AS nth,
        count(*) OVER (PARTITION BY cluster_id) AS changes
    FROM recent
    WHERE age <= 20
),
measured AS (
    SELECT
        cluster_id,
        max(changes) AS changes,
        min(CASE WHEN nth >= 95e-2 * changes THEN delay_ms END) / 1e3 AS p95_delay_s
    FROM ranked
    GROUP BY cluster_id
)

SELECT
    *,
    CAST(measured.p95_delay_s AS DOUBLE) AS p95_delay_s,
    CAST(periods.job_period_s AS DOUBLE) AS job_period_s,
    CASE
        WHEN measured.changes >= 5
            THEN CAST(
                greatest(measured.p95_delay_s, coalesce(2 * periods.job_period_s, 0)) AS DOUBLE
            )
    END AS dead_time_s
FROM measured
LEFT JOIN periods USING (cluster_id)
