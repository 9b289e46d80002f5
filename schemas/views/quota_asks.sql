-- One row per client quota that conf lets quota_advice ask for: of the users in quotas.advised_users
-- (* is all), and where the quota in force is the user's own, or none is: one of a user would take the
-- place of that of its client ids. advice keep: what stands is
-- asked for, so that its lease goes on where this pipeline set it.
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
        -- One name a line: a certificate's holds commas.
        OR (
            position(chr(10) IN advice.user) = 0
            AND position(
                concat(chr(10), advice.user, chr(10)) IN concat(chr(10), allowed.users, chr(10))
            ) > 0
        )
    )
