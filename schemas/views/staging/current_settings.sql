-- kind: staging
-- grain: one row per cluster and value of conf that views compute with
-- area: cluster
-- level: admin_api
-- description: The values of conf that the last snapshot stored for SQL.
-- columns:
--   from settings: cluster_id, setting, setting_value
SELECT * FROM (
    SELECT
        *,
        row_number() OVER (PARTITION BY cluster_id, setting ORDER BY event_time DESC) AS age
    FROM settings
) AS aged
WHERE age = 1 AND NOT is_removed
