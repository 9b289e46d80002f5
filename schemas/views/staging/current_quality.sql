-- kind: staging
-- grain: one row per table and expectation
-- area: pipeline
-- level: admin_api
-- question: Checks. Which data-quality checks pass?
-- description: The last result of each expectation of `quotaflow check`. A run checks a table again if
--   the table has new rows or if a critical expectation failed before.
-- columns:
--   from quality_results: suite, expectation, column_name, severity, success, failed_rows,
--     checked_rows, event_time, from_time, until_time, cluster_id, kind, details, run_id
WITH runs AS (
    SELECT
        *,
        rank() OVER (PARTITION BY suite ORDER BY event_time DESC, run_id) AS place
    FROM quality_results
)

SELECT * FROM runs
WHERE place = 1
