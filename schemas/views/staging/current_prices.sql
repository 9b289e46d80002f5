-- kind: staging
-- grain: one row per cluster
-- area: quotas
-- level: admin_api
-- description: The prices of traffic and storage in conf (section prices), as the last snapshot stored them.
-- columns:
--   from settings: cluster_id
--   currency: currency of the prices, as conf names it
--   produced_per_gib: price of a GiB that clients produce, in currency
--   consumed_per_gib: price of a GiB that clients consume, in currency
--   cross_rack_per_gib: price of a GiB that crosses racks, in currency
--   remote_read_per_gib: price of a GiB that clients read from remote storage, in currency
--   stored_per_gib_month: price of a GiB that a replica keeps on a disk for a month of 730 hours, in
--     currency
SELECT
    cluster_id,
    max(CASE WHEN setting = 'prices.currency' THEN setting_value END) AS currency,
    max(CASE WHEN setting = 'prices.produced_per_gib' THEN CAST(setting_value AS DOUBLE) END)
        AS produced_per_gib,
    max(CASE WHEN setting = 'prices.consumed_per_gib' THEN CAST(setting_value AS DOUBLE) END)
        AS consumed_per_gib,
    max(CASE WHEN setting = 'prices.cross_rack_per_gib' THEN CAST(setting_value AS DOUBLE) END)
        AS cross_rack_per_gib,
    max(CASE WHEN setting = 'prices.remote_read_per_gib' THEN CAST(setting_value AS DOUBLE) END)
        AS remote_read_per_gib,
    max(CASE WHEN setting = 'prices.stored_per_gib_month' THEN CAST(setting_value AS DOUBLE) END)
        AS stored_per_gib_month
FROM (
    SELECT
        *,
        row_number() OVER (PARTITION BY cluster_id, setting ORDER BY event_time DESC) AS age
    FROM settings
    WHERE setting LIKE 'prices.%'
) AS aged
WHERE age = 1 AND NOT is_removed
GROUP BY cluster_id
