-- One row per cluster: what conf's section replication says of rates, as the last snapshot found it;
-- where none was taken, as it is without conf. capacity_bytes_per_s is null where conf tells none.
WITH told AS (
    SELECT cluster_id, setting AS name, coalesce(setting_value, '') AS value
    FROM current_settings
    WHERE setting LIKE 'replication.%'
    UNION ALL
    SELECT DISTINCT cluster_id, '' AS name, '' AS value
    FROM replication_throttles
)

SELECT
    cluster_id,
    max(CASE WHEN name = 'replication.manage' AND value = 'True' THEN 1 ELSE 0 END) = 1
        AS is_managed,
    max(
        CASE
            WHEN name = 'replication.capacity_bytes_per_s' AND value <> 'None'
                THEN CAST(value AS DOUBLE)
        END
    ) AS capacity_bytes_per_s,
    coalesce(max(CASE WHEN name = 'replication.share' THEN CAST(value AS DOUBLE) END), 0.9e0)
        AS share,
    coalesce(max(CASE WHEN name = 'replication.hysteresis' THEN CAST(value AS DOUBLE) END), 0.1e0)
        AS hysteresis,
    coalesce(max(CASE WHEN name = 'replication.most_step' THEN CAST(value AS DOUBLE) END), 2e0)
        AS most_step,
    coalesce(max(CASE WHEN name = 'replication.hold_s' THEN CAST(value AS DOUBLE) END), 180e0)
        AS hold_s,
    coalesce(max(CASE WHEN name = 'replication.produce_p99_ms' THEN CAST(value AS DOUBLE) END), 1e3)
        AS produce_p99_ms,
    coalesce(max(CASE WHEN name = 'replication.fetch_p99_ms' THEN CAST(value AS DOUBLE) END), 5e2)
        AS fetch_p99_ms,
    coalesce(max(CASE WHEN name = 'replication.p99_rise' THEN CAST(value AS DOUBLE) END), 2e0)
        AS p99_rise,
    coalesce(max(CASE WHEN name = 'replication.lease_s' THEN CAST(value AS BIGINT) END), 3600)
        AS lease_s
FROM told
GROUP BY cluster_id
