-- kind: staging
-- grain: one row per client quota and period in which its value did not change
-- area: cluster
-- level: admin_api
-- description: The client quotas over time. A value counts from the time the request log saw
--   it set, or else from the first snapshot that saw it. A part of the entity with a null name is its
--   default if the flag beside it is true, and otherwise is not in the entity.
-- columns:
--   from client_quotas: cluster_id, user, is_default_user, client_id, is_default_client_id, ip,
--     is_default_ip, config_key
--   quota: limit that applies: bytes per second, percent of a thread, mutations or connections per second,
--     as config_key says
--   previous_quota: limit before valid_from; null: none was set, or the first snapshot found this one
--   set_by: principal that set this value; null: the request log does not show it
--   valid_from: when the value was set by the request log, or else time of the snapshot that saw it
--     first
--   valid_to: when the next value was set or the quota was removed; null: the last snapshot still found
--     this one
WITH changes AS (
    SELECT
        *,
        lead(coalesce(set_at, event_time)) OVER of_quota AS valid_to,
        lag(CASE WHEN NOT is_removed THEN quota END) OVER of_quota AS previous_quota
    FROM client_quotas
    WINDOW of_quota AS (
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
    )
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
    previous_quota,
    set_by,
    coalesce(set_at, event_time) AS valid_from,
    valid_to
FROM changes
WHERE NOT is_removed
