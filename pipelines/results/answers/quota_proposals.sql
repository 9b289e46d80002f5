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
