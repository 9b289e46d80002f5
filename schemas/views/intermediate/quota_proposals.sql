-- kind: intermediate
-- grain: one row per user and kind of client quota that conf lets a plan set
-- description: The advice of quota_advice for the users in conf's quotas.advised_users (* is all),
--   where the current quota is the user's own or there is none, because a new quota of the user would
--   replace those of its client ids. Advice keep and wait are included so that the lease of a quota
--   that this pipeline set goes on.
-- columns:
--   from quota_advice: cluster_id
--   entity_name: name of the user, a principal without User:
--   config_key: name of the client quota
--   from quota_advice: recommended, quota, advice, percentile_usage, windows_in_force,
--     throttled_windows, since
WITH allowed AS (
    SELECT cluster_id, setting_value AS users
    FROM current_settings
    WHERE setting = 'quotas.advised_users'
)

SELECT
    advice.cluster_id,
    advice.user AS entity_name,
    advice.quota_type AS config_key,
    advice.recommended,
    advice.quota,
    advice.advice,
    advice.percentile_usage,
    advice.windows_in_force,
    advice.throttled_windows,
    advice.since
FROM quota_advice AS advice
INNER JOIN allowed ON advice.cluster_id = allowed.cluster_id
WHERE
    coalesce(advice.quota_level, 3) = 3
    AND (
        allowed.users = '*'
        -- One name per line: the name of a certificate has commas.
        OR (
            position(chr(10) IN advice.user) = 0
            AND position(
                concat(chr(10), advice.user, chr(10)) IN concat(chr(10), allowed.users, chr(10))
            ) > 0
        )
    )
