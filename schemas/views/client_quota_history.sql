-- One row per client quota that was in force, and from when to when: from when the request log saw it
-- set, else from the snapshot that saw it first; valid_to is null while it stands.
WITH changes AS (
    SELECT
        *,
        lead(coalesce(set_at, event_time)) OVER (
            PARTITION BY
                cluster_id,
                user,
                is_default_user,
                client_id,
                is_default_client_id,
                ip,
                is_default_ip,
                config_key
            ORDER BY event_time
        ) AS valid_to
    FROM client_quotas
)

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
    coalesce(set_at, event_time) AS valid_from,
    valid_to
FROM changes
WHERE NOT is_removed
