-- One row per expectation of each table, as the last run of `quotaflow check` found it: a table is
-- checked anew when something new is in it, or while a critical expectation of it fails.
WITH runs AS (
    SELECT
        *,
        rank() OVER (PARTITION BY suite ORDER BY event_time DESC, run_id) AS place
    FROM quality_results
)

SELECT
    suite,
    expectation,
    column_name,
    severity,
    success,
    failed_rows,
    checked_rows,
    event_time,
    from_time,
    until_time,
    cluster_id,
    kind,
    details,
    run_id
FROM runs
WHERE place = 1
