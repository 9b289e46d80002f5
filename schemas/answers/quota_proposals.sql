-- kind: answer
-- grain: one row per user and kind of client quota that conf lets a plan set
-- area: quotas
-- level: sampled_log
-- description: The advice of quota_advice for the users in conf's quotas.advised_users (* is all),
--   where the current quota is the user's own or there is none, because a new quota of the user
--   would replace those of its client ids. Raised quotas together stay within a part of the
--   capacity of the smallest broker (quotas.raise_budget_share). Advice keep and wait are included
--   so that the lease of a quota that this pipeline set goes on.
-- key: cluster_id, entity_name, config_key
-- time: since
-- clustering: since, entity_name
-- columns:
--   from quota_advice: cluster_id
--   entity_name STRING: name of the user, a principal without User:
--   config_key STRING: name of the client quota
--   from quota_advice: recommended, quota, advice, percentile_usage, windows_in_force,
--     throttled_windows
--   since TIMESTAMP: start of its first window
--   from quota_baselines: usage_p99, history_s
--   quota_in_force DOUBLE: quota that applied in its last window, own or inherited
--   direction STRING: raise; null: a first quota, or none to change
--   blocked_reason STRING: why a plan must not set or raise it, as a reason code; null: it can
--   capacity DOUBLE: capacity of the smallest broker by conf, in bytes per second; null: conf has
--     none, or the quota is not of bytes
--   raised_total DOUBLE: sum of all raised quotas of this kind up to this one, smaller ones first,
--     in bytes per second; null: it is not raised

WITH allowed AS (
    SELECT cluster_id, setting_value AS users
    FROM current_settings
    WHERE setting = 'quotas.advised_users'
),
rules AS (
    SELECT
        cluster_id,
        max(
            CASE
                WHEN setting = 'replication.capacity_bytes_per_s'
                    THEN TRY_CAST(setting_value AS DOUBLE)
            END
        ) AS capacity,
        min(CASE WHEN setting LIKE 'replication.brokers.%' THEN CAST(setting_value AS DOUBLE) END)
            AS least_of_broker,
        coalesce(
            max(
                CASE
                    WHEN setting = 'quotas.raise_budget_share' THEN CAST(setting_value AS DOUBLE)
                END
            ),
            5e-1
        ) AS budget_share
    FROM current_settings
    GROUP BY cluster_id
),
own_raises AS (
    -- What plans raised and did not change since.
    SELECT cluster_id, entity_name, config_key, direction
    FROM (
        SELECT
            *,
            row_number() OVER (
                PARTITION BY cluster_id, entity_name, config_key ORDER BY event_time DESC, number DESC
            ) AS age
        FROM config_changes
        WHERE
            entity_type = 'user'
            AND entity_client_id IS NULL
            AND step = 'done'
            AND operation <> 'RENEW'
    ) AS written
    WHERE age = 1 AND direction = 'raise'
),
advised AS (
    SELECT
        advice.*,
        baselines.usage_p99,
        baselines.history_s,
        baselines.quota AS quota_in_force,
        coalesce(baselines.is_estimated, advice.quota_type = 'request_percentage') AS is_estimated,
        -- A quota holds at each broker, so the smallest one must carry it.
        CASE
            WHEN advice.quota_type LIKE '%byte_rate' AND rules.capacity IS NOT NULL
                THEN least(rules.capacity, coalesce(rules.least_of_broker, rules.capacity))
        END AS capacity,
        rules.budget_share,
        advice.advice = 'raise' OR own_raises.direction IS NOT NULL AS is_raised
    FROM quota_advice AS advice
    INNER JOIN allowed ON advice.cluster_id = allowed.cluster_id
    LEFT JOIN rules ON advice.cluster_id = rules.cluster_id
    LEFT JOIN quota_baselines AS baselines
        ON advice.cluster_id = baselines.cluster_id
            AND advice.user = baselines.user
            AND baselines.client_id IS NULL
            AND advice.quota_type = baselines.quota_type
    LEFT JOIN own_raises
        ON advice.cluster_id = own_raises.cluster_id
            AND advice.user = own_raises.entity_name
            AND advice.quota_type = own_raises.config_key
    WHERE
        coalesce(advice.quota_level, 3) = 3
        AND (
            allowed.users = '*'
            -- One name per line: the name of a certificate has commas.
            OR (
                position(chr(10) IN advice.user) = 0
                AND position(
                    concat(chr(10), advice.user, chr(10))
                    IN concat(chr(10), allowed.users, chr(10))
                ) > 0
            )
        )
),
budgeted AS (
    -- What was raised before takes its part of the budget first, so that no raise displaces it.
    SELECT
        *,
        CASE
            WHEN is_raised
                THEN sum(CASE WHEN is_raised THEN recommended END) OVER (
                    PARTITION BY cluster_id, quota_type
                    ORDER BY
                        CASE WHEN advice = 'raise' THEN 1 ELSE 0 END, recommended, user
                    ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
                )
        END AS raised_total
    FROM advised
)

SELECT
    cluster_id,
    user AS entity_name,
    quota_type AS config_key,
    recommended,
    quota,
    advice,
    percentile_usage,
    windows_in_force,
    throttled_windows,
    since,
    usage_p99,
    history_s,
    quota_in_force,
    CASE WHEN advice = 'raise' THEN 'raise' END AS direction,
    CASE
        WHEN advice IN ('keep', 'wait') THEN NULL
        WHEN is_estimated THEN 'usage_estimated'
        WHEN advice = 'set' THEN NULL
        WHEN capacity IS NULL THEN 'no_capacity_for_raise'
        WHEN raised_total > budget_share * capacity THEN 'raise_over_budget'
    END AS blocked_reason,
    capacity,
    raised_total
FROM budgeted
-- What is estimated is not planned from, so its leases end, too.
WHERE NOT (is_estimated AND advice IN ('keep', 'wait'))
