-- kind: proposal
-- grain: one row per user and kind of client quota that conf lets a plan set
-- area: quotas
-- level: sampled_log
-- description: The advice of quota_advice for the users in conf's quotas.advised_users (* is all),
--   where the current quota is the user's own or there is none, because a new quota of the user
--   would replace those of its client ids. Raised quotas together stay within a part of the
--   capacity of the smallest broker (quotas.raise_budget_share). Advice keep and wait are included
--   so that the lease of a quota that this pipeline set goes on.
-- evidence:
--   usage (bytes/s or % of a thread): what the user uses most of the time (quota_advice)
--   quota (unit of usage): its quota in that time
--   throttled_windows (windows): windows in which it was throttled
--   windows_in_force (windows): windows with this quota
--   capacity (bytes/s): capacity of the smallest broker by conf; null: conf has none, or the quota
--     is not of bytes
--   raised_total (bytes/s): sum of all raised quotas of this kind up to this one, smaller ones
--     first; null: it is not raised
--   wait_share (share): part of the wait of a client of the user that is for this quota
--     (client_diagnoses), the greatest of any client; null: no client waits for it

WITH allowed AS (
    SELECT cluster_id, setting_value AS users
    FROM current_settings
    WHERE setting = 'quotas.advised_users'
),
rules AS (
    SELECT
        cluster_id,
        max(TRY_CAST(setting_value AS DOUBLE))
            FILTER (WHERE setting = 'replication.capacity_bytes_per_s') AS capacity,
        min(CASE WHEN setting LIKE 'replication.brokers.%' THEN CAST(setting_value AS DOUBLE) END)
            AS least_of_broker,
        coalesce(
            max(TRY_CAST(setting_value AS DOUBLE))
                FILTER (WHERE setting = 'quotas.raise_budget_share'),
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
        CASE advice.quota_type WHEN 'request_percentage' THEN '% of a thread' ELSE 'bytes/s' END
            AS unit,
        advice.advice = 'raise' OR own_raises.direction IS NOT NULL AS is_raised
    FROM quota_advice AS advice
    INNER JOIN allowed USING (cluster_id)
    LEFT JOIN rules USING (cluster_id)
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
                -- One that waits for its next raise has its current quota.
                THEN sum(
                    CASE WHEN is_raised AND advice = 'wait' THEN quota WHEN is_raised THEN recommended END
                ) OVER (
                    PARTITION BY cluster_id, quota_type
                    ORDER BY
                        CASE WHEN advice = 'raise' THEN 1 ELSE 0 END, recommended, user
                    ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
                )
        END AS raised_total
    FROM advised
),
diagnosed AS (
    SELECT
        cluster_id,
        substr(principal, 6) AS user,
        detail AS quota_type,
        max(share) AS share,
        max_by(client_id, share) AS client_id
    FROM client_diagnoses
    WHERE cause = 'quota' AND principal LIKE 'User:%'
    GROUP BY cluster_id, principal, detail
),
own_quotas AS (
    SELECT
        *,
        CASE
            -- Not BIGINT: Long.MAX, the usual way to say unlimited, is past it as a double.
            WHEN config_key LIKE '%byte_rate' THEN CAST(CAST(quota AS DECIMAL(38, 0)) AS STRING)
            ELSE CAST(quota AS STRING)
        END AS config_value
    FROM current_client_quotas
    WHERE user IS NOT NULL AND client_id IS NULL AND NOT is_default_client_id
)

SELECT
    advised.cluster_id,
    'user' AS entity_type,
    advised.user AS entity_name,
    advised.quota_type AS config_key,
    CASE
        WHEN advised.advice IN ('keep', 'wait') THEN own_quotas.config_value
        WHEN advised.quota_type LIKE '%byte_rate'
            THEN CAST(CAST(advised.recommended AS DECIMAL(38, 0)) AS STRING)
        ELSE CAST(advised.recommended AS STRING)
    END AS config_value,
    own_quotas.config_value AS prior_value,
    CASE advised.advice
        WHEN 'set' THEN 'no_quota'
        WHEN 'raise' THEN 'quota_throttles'
        WHEN 'keep' THEN 'quota_fits'
        WHEN 'wait' THEN 'quota_altered_today'
    END AS reason_code,
    advised.percentile_usage AS usage,
    advised.unit AS usage_unit,
    advised.quota,
    advised.unit AS quota_unit,
    advised.throttled_windows,
    advised.windows_in_force,
    advised.capacity,
    advised.raised_total,
    diagnosed.share AS wait_share,
    diagnosed.client_id AS subject,
    'quota_advice' AS evidence_table,
    concat('user=', advised.user, ' quota_type=', advised.quota_type) AS evidence_key,
    advised.since,
    30 AS priority,
    CASE
        WHEN advised.advice IN ('keep', 'wait') THEN NULL
        WHEN advised.is_estimated THEN 'usage_estimated'
        WHEN advised.recommended IS NULL THEN 'usage_sampled'
        WHEN advised.advice = 'set' THEN NULL
        WHEN advised.capacity IS NULL THEN 'no_capacity_for_raise'
        WHEN advised.raised_total > advised.budget_share * advised.capacity THEN 'raise_over_budget'
    END AS blocked_reason,
    advised.advice IN ('keep', 'wait') AS renew_only,
    advised.usage_p99,
    advised.history_s,
    advised.quota_in_force,
    CASE
        WHEN advised.advice = 'raise'
            THEN
                advised.throttled_windows * 1e0 / advised.windows_in_force
                / nullif(coalesce(advised.percentile_usage, advised.quota), 0)
    END AS offence,
    CASE WHEN advised.advice = 'raise' THEN 'raise' END AS direction
FROM budgeted AS advised
LEFT JOIN diagnosed USING (cluster_id, user, quota_type)
LEFT JOIN own_quotas
    ON advised.cluster_id = own_quotas.cluster_id
        AND advised.user = own_quotas.user
        AND advised.quota_type = own_quotas.config_key
WHERE
    -- What is estimated is not planned from, so its leases end, too.
    NOT (advised.is_estimated AND advised.advice IN ('keep', 'wait'))
    -- Only a quota that the user itself has can be renewed.
    AND (advised.advice IN ('set', 'raise') OR own_quotas.user IS NOT NULL)
