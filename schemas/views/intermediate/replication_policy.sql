-- kind: intermediate
-- grain: one row per cluster
-- area: replication
-- level: admin_api
-- description: Conf's section replication as the last snapshot stored it; conf's defaults if no
--   snapshot did.
-- history: replication_throttles
-- columns:
--   from current_settings: cluster_id
--   is_managed: conf's replication.manage: plans set rates and lists
--   capacity_bytes_per_s: capacity of a broker for all its traffic, in bytes per second; null: conf
--     does not set it
--   share: part of the free capacity that replication can take, 0 to 1
--   hysteresis: a rate changes only if the new one differs by more than this part of it, 0 to 1
--   max_step_factor: a rate grows or shrinks at most by this factor at once
--   cooldown_s: a rate stays at least this long, in seconds
--   produce_p99_ms: p99 of PRODUCE above which a minute can be slow, in ms
--   fetch_p99_ms: the same for consumer FETCH without its wait, in ms
--   p99_rise_factor: a minute is slow only if its p99 is above this many times the usual one
--   lease_s: length of the lease of a rate, in seconds
WITH stored AS (
    SELECT cluster_id, setting AS name, coalesce(setting_value, '') AS value
    FROM current_settings
    WHERE setting LIKE 'replication.%'
    UNION ALL
    SELECT DISTINCT cluster_id, '' AS name, '' AS value
    FROM replication_throttles
)

SELECT
    cluster_id,
    max(CASE WHEN name = 'replication.manage' AND lower(value) = 'true' THEN 1 ELSE 0 END) = 1
        AS is_managed,
    max(TRY_CAST(value AS DOUBLE))
        FILTER (WHERE name = 'replication.capacity_bytes_per_s') AS capacity_bytes_per_s,
    coalesce(max(CASE WHEN name = 'replication.share' THEN CAST(value AS DOUBLE) END), 0.9e0)
        AS share,
    coalesce(max(CASE WHEN name = 'replication.hysteresis' THEN CAST(value AS DOUBLE) END), 0.1e0)
        AS hysteresis,
    coalesce(max(CASE WHEN name = 'replication.max_step_factor' THEN CAST(value AS DOUBLE) END), 2e0)
        AS max_step_factor,
    coalesce(max(CASE WHEN name = 'replication.cooldown_s' THEN CAST(value AS DOUBLE) END), 180e0)
        AS cooldown_s,
    coalesce(max(CASE WHEN name = 'replication.produce_p99_ms' THEN CAST(value AS DOUBLE) END), 1e3)
        AS produce_p99_ms,
    coalesce(max(CASE WHEN name = 'replication.fetch_p99_ms' THEN CAST(value AS DOUBLE) END), 5e2)
        AS fetch_p99_ms,
    coalesce(max(CASE WHEN name = 'replication.p99_rise_factor' THEN CAST(value AS DOUBLE) END), 2e0)
        AS p99_rise_factor,
    coalesce(max(CASE WHEN name = 'replication.lease_s' THEN CAST(value AS BIGINT) END), 3600)
        AS lease_s
FROM stored
GROUP BY cluster_id
