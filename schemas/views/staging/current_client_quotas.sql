-- kind: staging
-- grain: one row per client quota
-- description: The client quotas that the last snapshot found.
-- columns:
--   from client_quota_history: cluster_id, user, is_default_user, client_id, is_default_client_id, ip,
--     is_default_ip, config_key, quota, set_by, valid_from
SELECT
    cluster_id,
    user,
    is_default_user,
    client_id,
    is_default_client_id,
    ip,
    is_default_ip,
    config_key,
    quota,
    set_by,
    valid_from
FROM client_quota_history
WHERE valid_to IS NULL
