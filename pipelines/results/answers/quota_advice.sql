WITH rules AS (
    SELECT
        cluster_id,
        coalesce(
            max(CASE WHEN setting = 'quotas.percentile' THEN CAST(setting_value AS DOUBLE) END),
            0.99
        ) AS percentile,
        coalesce(
            max(CASE WHEN setting = 'quotas.headroom' THEN CAST(setting_value AS DOUBLE) END), 0.25
        ) AS headroom,
        coalesce(
            max(CASE WHEN setting = 'quotas.advice_days' THEN CAST(setting_value AS DOUBLE) END), 7
        ) AS days
    FROM current_settings
    GROUP BY cluster_id
),
newest AS (
    SELECT cluster_id, max(event_time) AS event_time
    FROM quota_usage
    GROUP BY cluster_id
),
excluded AS (
    SELECT cluster_id, substr(setting, 10) AS principal
    FROM current_settings
    WHERE setting LIKE 'excluded.%'
    UNION
    SELECT cluster_id, principal
    FROM fetch_sizes
    WHERE replica_id IS NOT NULL AND principal IS NOT NULL
),
alterations AS (
    -- Also open records: whether such a write was made is not known yet.
    SELECT
        cluster_id,
        entity_name AS user,
        config_key,
        event_time
    FROM config_changes
    WHERE
        entity_type = 'user'
        AND entity_client_id IS NULL
        AND step IN ('begun', 'done')
        AND operation <> 'RENEW'
    UNION ALL
    SELECT
        cluster_id,
        entity_name,
        config_key,
        event_time
    FROM config_alterations
    WHERE entity_type = 'user' AND entity_client_id IS NULL AND error_code = 0
    UNION ALL
    SELECT
        cluster_id,
        user,
        config_key,
        coalesce(set_at, event_time)
    FROM client_quotas
    WHERE user IS NOT NULL AND client_id IS NULL AND NOT is_default_client_id
),
altered AS (
    SELECT cluster_id, user, config_key, max(event_time) AS altered_at
    FROM alterations
    GROUP BY cluster_id, user, config_key
),
charged AS (
    SELECT
        cluster_id,
        event_time,
        broker_id,
        principal,
        client_id,
        quota_type,
        usage + 0 AS usage, -- without a column's comment, on which DataFusion's unions break
        CAST(0 AS BIGINT) AS throttled_requests,
        CASE WHEN quota_level <= 6 THEN quota END AS quota,
        quota_level + 0 AS quota_level
    FROM quota_usage
    UNION ALL
    SELECT
        cluster_id,
        event_time,
        broker_id,
        principal,
        client_id,
        coalesce(throttled_by, quota_type),
        0e0,
        throttled_requests + 0,
        CAST(NULL AS DOUBLE),
        CAST(NULL AS INT)
    FROM quota_usage
    WHERE throttled_requests > 0
),
clients AS (
    SELECT
        cluster_id,
        event_time,
        broker_id,
        principal,
        quota_type,
        sum(usage) AS usage,
        sum(throttled_requests) AS throttled_requests,
        max(quota) AS quota,
        max(quota_level) AS quota_level
    FROM charged
    GROUP BY cluster_id, event_time, broker_id, principal, client_id, quota_type
    HAVING coalesce(max(quota_level), 3) > 2
),
windows AS (
    SELECT
        used.cluster_id,
        used.principal,
        used.quota_type,
        used.broker_id,
        used.event_time,
        coalesce(rules.percentile, 0.99) AS percentile,
        coalesce(rules.headroom, 0.25) AS headroom,
        sum(used.usage) AS usage,
        sum(used.throttled_requests) AS throttled_requests,
        max(used.quota) AS quota,
        max(used.quota_level) AS quota_level
    FROM clients AS used
    INNER JOIN newest ON used.cluster_id = newest.cluster_id
    LEFT JOIN rules ON used.cluster_id = rules.cluster_id
    LEFT JOIN excluded
        ON used.cluster_id = excluded.cluster_id AND used.principal = excluded.principal
    WHERE
        excluded.principal IS NULL
        AND used.principal LIKE 'User:%'
        AND used.quota_type <> 'controller_mutation_rate'
        AND unix_millis(used.event_time)
        > unix_millis(newest.event_time) - coalesce(rules.days, 7) * 86400000
    GROUP BY
        used.cluster_id,
        used.principal,
        used.quota_type,
        used.broker_id,
        used.event_time,
        coalesce(rules.percentile, 0.99),
        coalesce(rules.headroom, 0.25)
    HAVING sum(used.usage) > 0
),
ranked AS (
    SELECT
        *,
        row_number() OVER (
            PARTITION BY cluster_id, principal, quota_type, broker_id ORDER BY usage
        ) AS nth,
        count(*) OVER (PARTITION BY cluster_id, principal, quota_type, broker_id) AS of_broker,
        row_number() OVER (
            PARTITION BY cluster_id, principal, quota_type ORDER BY event_time DESC, broker_id
        ) AS age,
        first_value(quota) OVER (
            PARTITION BY cluster_id, principal, quota_type ORDER BY event_time DESC, broker_id
        ) AS quota_in_force
    FROM windows
),
of_brokers AS (
    SELECT
        cluster_id,
        principal,
        quota_type,
        broker_id,
        min(CASE WHEN nth >= percentile * of_broker THEN usage END) AS percentile_usage
    FROM ranked
    GROUP BY cluster_id, principal, quota_type, broker_id
),
busiest AS (
    SELECT cluster_id, principal, quota_type, max(percentile_usage) AS percentile_usage
    FROM of_brokers
    GROUP BY cluster_id, principal, quota_type
),
users AS (
    SELECT
        ranked.cluster_id,
        ranked.principal,
        ranked.quota_type,
        busiest.percentile_usage,
        max(ranked.headroom) AS headroom,
        max(ranked.usage) AS peak_usage,
        count(*) AS windows,
        count(
            CASE WHEN (ranked.quota IS NOT DISTINCT FROM ranked.quota_in_force) THEN 1 END
        ) AS windows_in_force,
        count(
            CASE
                WHEN
                    (ranked.quota IS NOT DISTINCT FROM ranked.quota_in_force)
                    AND ranked.throttled_requests > 0
                    THEN 1
            END
        ) AS throttled_windows,
        max(CASE WHEN ranked.age = 1 THEN ranked.quota END) AS quota,
        -- A quota of the user is for all its client ids, any other one for those of its level.
        CASE
            WHEN max(CASE WHEN ranked.age = 1 THEN ranked.quota_level END) = 3 THEN 3
            ELSE max(ranked.quota_level)
        END AS quota_level,
        min(ranked.event_time) AS since,
        max(ranked.event_time) AS until
    FROM ranked
    INNER JOIN busiest
        ON ranked.cluster_id = busiest.cluster_id
            AND ranked.principal = busiest.principal
            AND ranked.quota_type = busiest.quota_type
    GROUP BY
        ranked.cluster_id, ranked.principal, ranked.quota_type, busiest.percentile_usage
),
advised AS (
    SELECT
        users.*,
        altered.altered_at,
        CASE
            WHEN users.quota IS NULL THEN 'set'
            -- Fewer than ten windows say little: they may be the first after a raise.
            WHEN
                users.throttled_windows <= 1
                OR users.throttled_windows * 10 <= users.windows_in_force
                THEN 'keep'
            WHEN
                unix_millis(newest.event_time) - unix_millis(altered.altered_at) < 86400000
                THEN 'wait'
            ELSE 'raise'
        END AS advice
    FROM users
    INNER JOIN newest ON users.cluster_id = newest.cluster_id
    LEFT JOIN altered
        ON users.cluster_id = altered.cluster_id
            AND substr(users.principal, 6) = altered.user
            AND users.quota_type = altered.config_key
),
recommended AS (
    SELECT
        *,
        CASE
            WHEN advice = 'set' THEN percentile_usage * (1 + headroom)
            WHEN advice IN ('keep', 'wait') THEN quota
            WHEN percentile_usage < quota THEN quota * (1 + headroom)
            WHEN percentile_usage * (1 + headroom) > quota * 2 THEN quota * 2
            ELSE percentile_usage * (1 + headroom)
        END AS needed
    FROM advised
),
rounded AS (
    SELECT
        *,
        CASE WHEN quota_type LIKE '%byte_rate' THEN ceil(needed) ELSE ceil(needed * 1e2) / 1e2 END
            AS recommended
    FROM recommended
)

SELECT
    rounded.cluster_id,
    substr(rounded.principal, 6) AS user,
    rounded.quota_type,
    rounded.advice,
    CAST(rounded.recommended AS DOUBLE) AS recommended,
    rounded.quota,
    rounded.quota_level,
    rounded.percentile_usage,
    rounded.peak_usage,
    rounded.windows,
    rounded.windows_in_force,
    rounded.throttled_windows,
    count(CASE WHEN windows.usage > rounded.recommended THEN 1 END) AS over_windows,
    rounded.altered_at,
    rounded.since,
    rounded.until
FROM rounded
INNER JOIN windows
    ON rounded.cluster_id = windows.cluster_id
        AND rounded.principal = windows.principal
        AND rounded.quota_type = windows.quota_type
GROUP BY
    rounded.cluster_id,
    rounded.principal,
    rounded.quota_type,
    rounded.advice,
    rounded.recommended,
    rounded.quota,
    rounded.quota_level,
    rounded.percentile_usage,
    rounded.peak_usage,
    rounded.windows,
    rounded.windows_in_force,
    rounded.throttled_windows,
    rounded.altered_at,
    rounded.since,
    rounded.until
