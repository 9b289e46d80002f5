-- kind: mart
-- grain: one row per job that ever ran
-- area: pipeline
-- level: admin_api
-- question: Jobs. Is each job up to date?
-- description: When each job last ran and last found new data, how fast and how far behind it was then,
--   and what became of its rows in its last hour of work.
-- columns:
--   from batches: cluster_id, job
--   last_trigger: when it last checked its source for new data
--   last_batch: start of its last micro-batch with data
--   from batches: query_id, batch_id, duration_ms, processed_rows_per_s, behind_offsets, behind_files,
--     behind_bytes, state_rows, state_bytes
--   newest_event_time: time of the newest event that it ever read
--   batches: micro-batches in the hour up to last_batch
--   rows_in: rows that came in, in that hour
--   rows_out: rows written, in that hour
--   rows_left_out: rows left out on purpose, in that hour
--   rows_duplicate: of these, lines that a shipper sent again, in that hour
--   rows_quarantined: rows that went to quarantine, in that hour
--   rows_late: rows that came too late, in that hour
--   rows_failed: rows whose rule failed, in that hour
--   rows_refused: points that the receiver of monitoring.forward refused, in that hour
WITH clusters AS (
    -- The first run of a query that reads tables may not know the cluster yet.
    SELECT query_id, max(cluster_id) AS cluster_id
    FROM pipeline_progress
    GROUP BY query_id
),
reported AS (
    SELECT
        coalesce(reported.cluster_id, clusters.cluster_id) AS cluster_id,
        reported.job,
        reported.event_time,
        reported.batch_id
    FROM query_progress AS reported
    LEFT JOIN clusters USING (query_id)
),
triggers AS (
    SELECT
        cluster_id,
        job,
        max(event_time) AS last_trigger,
        max(CASE WHEN batch_id IS NOT NULL THEN event_time END) AS last_batch
    FROM reported
    GROUP BY cluster_id, job
),
newest AS (
    SELECT
        *,
        row_number() OVER (PARTITION BY cluster_id, job ORDER BY event_time DESC, batch_id DESC)
            AS nth
    FROM batches
),
counted AS (
    SELECT
        coalesce(counts.cluster_id, clusters.cluster_id) AS cluster_id,
        counts.job,
        counts.event_time
    FROM pipeline_progress AS counts
    LEFT JOIN clusters USING (query_id)
),
events AS (
    SELECT cluster_id, job, max(event_time) AS newest_event_time
    FROM counted
    GROUP BY cluster_id, job
),
hours AS (
    SELECT
        worked.cluster_id,
        worked.job,
        count(*) AS batches,
        sum(worked.rows_in) AS rows_in,
        sum(worked.rows_out) AS rows_out,
        sum(worked.rows_left_out) AS rows_left_out,
        sum(worked.rows_duplicate) AS rows_duplicate,
        sum(worked.rows_quarantined) AS rows_quarantined,
        sum(worked.rows_late) AS rows_late,
        sum(worked.rows_failed) AS rows_failed,
        sum(worked.rows_refused) AS rows_refused
    FROM batches AS worked
    INNER JOIN triggers
        ON worked.cluster_id IS NOT DISTINCT FROM triggers.cluster_id AND worked.job = triggers.job
    WHERE unix_millis(triggers.last_batch) - unix_millis(worked.event_time) < 3600000
    GROUP BY worked.cluster_id, worked.job
)

SELECT
    *,
    coalesce(triggers.cluster_id, events.cluster_id) AS cluster_id,
    coalesce(triggers.job, events.job) AS job,
    coalesce(triggers.last_trigger, events.newest_event_time) AS last_trigger,
    events.newest_event_time,
    hours.rows_in,
    hours.rows_out,
    hours.rows_left_out,
    hours.rows_duplicate,
    hours.rows_quarantined,
    hours.rows_late,
    hours.rows_failed,
    hours.rows_refused
FROM triggers
FULL OUTER JOIN events
    ON triggers.cluster_id IS NOT DISTINCT FROM events.cluster_id AND triggers.job = events.job
LEFT JOIN newest
    ON triggers.cluster_id IS NOT DISTINCT FROM newest.cluster_id
        AND triggers.job = newest.job
        AND newest.nth = 1
LEFT JOIN hours
    ON triggers.cluster_id IS NOT DISTINCT FROM hours.cluster_id AND triggers.job = hours.job
