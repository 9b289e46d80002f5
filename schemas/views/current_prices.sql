-- One row per cluster: the prices of conf, as the last snapshot found them.
SELECT
    cluster_id,
    max(CASE WHEN setting = 'prices.currency' THEN setting_value END) AS currency,
    max(CASE WHEN setting = 'prices.produced_per_gib' THEN CAST(setting_value AS DOUBLE) END)
        AS produced_per_gib,
    max(CASE WHEN setting = 'prices.consumed_per_gib' THEN CAST(setting_value AS DOUBLE) END)
        AS consumed_per_gib,
    max(CASE WHEN setting = 'prices.cross_rack_per_gib' THEN CAST(setting_value AS DOUBLE) END)
        AS cross_rack_per_gib
FROM current_settings
GROUP BY cluster_id
