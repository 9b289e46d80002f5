-- One row per client quota as the last snapshot found it.
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
