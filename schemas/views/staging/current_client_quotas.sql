-- kind: staging
-- grain: one row per client quota
-- area: cluster
-- level: admin_api
-- question: Client quotas. Which quotas are set, for whom?
-- description: The client quotas that the last snapshot found.
-- columns:
--   from client_quotas: cluster_id, user, is_default_user, client_id, is_default_client_id, ip,
--     is_default_ip, config_key
--   quota: limit that applies: bytes per second, percent of a thread, mutations or connections
--     per second, as config_key says
--   set_by: principal that set this value; null: the request log does not show it
--   valid_from: when the value was set by the request log, or else time of the snapshot that saw
--     it first
SELECT
    *,
    coalesce(set_at, event_time) AS valid_from
FROM (
    SELECT
        *,
        row_number() OVER (
            PARTITION BY
                cluster_id,
                user,
                is_default_user,
                client_id,
                is_default_client_id,
                ip,
                is_default_ip,
                config_key
            ORDER BY event_time DESC
        ) AS age
    FROM client_quotas
) AS aged
WHERE age = 1 AND NOT is_removed
