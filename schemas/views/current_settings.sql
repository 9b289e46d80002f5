-- One row per value of conf that views compute with, as the last snapshot found it.
SELECT
    cluster_id,
    setting,
    setting_value
FROM (
    SELECT
        *,
        row_number() OVER (PARTITION BY cluster_id, setting ORDER BY event_time DESC) AS age
    FROM settings
) AS aged
WHERE age = 1 AND NOT is_removed
