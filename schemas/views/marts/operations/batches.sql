-- kind: mart
-- grain: one row per micro-batch of a streaming query
-- area: pipeline
-- level: admin_api
-- question: Batches. How long does each batch of a job take, and how far behind is it?
-- description: How long each micro-batch took, what became of its rows, how far behind the query was,
--   and how old the newest event was when the batch ended.
-- columns:
--   from query_progress: cluster_id
--   from query_progress: event_time, job, query_id, run_id
--   batch_id: number of the micro-batch
--   rows_in: rows that came in
--   rows_out: rows written to all tables
--   rows_left_out: rows left out on purpose; pipeline_progress has the reasons
--   rows_duplicate: of these, lines that a shipper sent again
--   rows_quarantined: rows that could not be read and went to quarantine
--   rows_late: rows that came too late; the most of any result, because one row can be late for several
--   rows_failed: rows whose rule failed; the most of any result, because one row can fail for several
--   rows_refused: points that the receiver of monitoring.forward refused
--   from query_progress: input_rows_per_s, processed_rows_per_s, duration_ms, latest_offset_ms,
--     get_batch_ms, query_planning_ms, wal_commit_ms, add_batch_ms, commit_offsets_ms, behind_offsets,
--     behind_files, behind_bytes, state_rows, state_bytes
--   newest_event_time: time of the newest event in the batch
--   newest_event_age_s: age of that event when the batch ended, in seconds; 0 if its clock was ahead
WITH clusters AS (
    -- The first run of a query that reads tables may not know the cluster yet.
    SELECT query_id, max(cluster_id) AS cluster_id
    FROM pipeline_progress
    GROUP BY query_id
),
reported AS (
    SELECT
        *,
        row_number() OVER (PARTITION BY query_id, batch_id ORDER BY event_time DESC) AS nth
    FROM query_progress
    WHERE batch_id IS NOT NULL
),
by_target AS (
    SELECT
        query_id,
        batch_id,
        max(event_time) AS newest_event_time,
        sum(CASE WHEN outcome = 'out' THEN row_count ELSE 0 END) AS rows_out,
        sum(CASE WHEN outcome = 'left_out' THEN row_count ELSE 0 END) AS rows_left_out,
        sum(CASE WHEN outcome = 'left_out' AND reason = 'duplicate' THEN row_count ELSE 0 END)
            AS rows_duplicate,
        sum(CASE WHEN outcome = 'quarantined' THEN row_count ELSE 0 END) AS rows_quarantined,
        sum(CASE WHEN outcome = 'late' THEN row_count ELSE 0 END) AS rows_late,
        sum(CASE WHEN outcome = 'failed' THEN row_count ELSE 0 END) AS rows_failed,
        sum(CASE WHEN outcome = 'refused' THEN row_count ELSE 0 END) AS rows_refused
    FROM pipeline_progress
    GROUP BY query_id, batch_id, target
),
counted AS (
    SELECT
        query_id,
        batch_id,
        max(newest_event_time) AS newest_event_time,
        sum(rows_out) AS rows_out,
        sum(rows_left_out) AS rows_left_out,
        sum(rows_duplicate) AS rows_duplicate,
        sum(rows_quarantined) AS rows_quarantined,
        -- A row that comes late, or whose rule fails, does so for each result it concerns.
        max(rows_late) AS rows_late,
        max(rows_failed) AS rows_failed,
        sum(rows_refused) AS rows_refused
    FROM by_target
    GROUP BY query_id, batch_id
)

SELECT
    *,
    coalesce(reported.cluster_id, clusters.cluster_id) AS cluster_id,
    reported.input_rows AS rows_in,
    CASE
        WHEN counted.newest_event_time IS NOT NULL
            THEN greatest(
                unix_millis(reported.event_time) + coalesce(reported.duration_ms, 0)
                - unix_millis(counted.newest_event_time),
                0
            ) / 1e3
    END AS newest_event_age_s
FROM reported
LEFT JOIN clusters USING (query_id)
LEFT JOIN counted USING (query_id, batch_id)
WHERE reported.nth = 1
