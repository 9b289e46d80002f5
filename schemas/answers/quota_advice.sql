-- kind: answer
-- grain: one row per user and kind of client quota
-- area: quotas
-- level: sampled_log
-- question: Fitting quotas. How much does each user use at its peak, and which quota fits that?
-- description: The quota that the use of the last days suggests for each user: conf's
--   quotas.percentile of its windows at the broker where it used most, plus quotas.headroom. Client
--   ids with a quota of their own for this user (levels 1 and 2) are left out, because no quota of
--   the user limits them. A user that its quota throttled in two windows or more, and in more than
--   one of ten, would use more than it shows, so its quota is raised, to twice the quota at most and
--   once a day at most. One throttled window says little, however few there are. A day is measured
--   to the newest window, not to now. Usage in windows that are rolled up is within 4.4 % of the
--   true one. A first quota is no lower than the p99 of the busiest broker, half of the median
--   there, and 65,536 bytes/s or 1 %. Principals that conf excludes (settings excluded.*) and those
--   that fetch as followers, the brokers, have no row.
--   Where ingest sampled lines of a user, one line can stand for hundreds of requests in its window,
--   so no usage is known: a first quota is not advised, and a raise is quotas.headroom.
-- key: cluster_id, user, quota_type
-- time: until
-- clustering: until, user
-- lookbacks:
--   quota_usage: 7 d, quotas.advice_days * 1 d
--   fetch_sizes: 7 d
-- columns:
--   from quota_usage: cluster_id
--   user STRING: name of the user, a principal without User:
--   quota_type STRING: producer_byte_rate, consumer_byte_rate or request_percentage
--   advice STRING: set (no quota of users limits it; one of client ids alone, level 7 or 8, can),
--     raise, wait (a raise is due 24 h after altered_at), or keep (it throttled in one window at
--     most, or in one of ten at most)
--   recommended DOUBLE: quota to set, in bytes per second or percent of one thread; for wait the one
--     that the raise will set, for keep the current one. A raise is one step: what a throttled user
--     would use is not known. quotaflow why replays its requests, and says what its step leaves.
--     Null: is_sampled, and no quota of users limits it
--   quota DOUBLE: current quota of users, in the same unit; null: none
--   from quota_usage: quota_level
--   percentile_usage DOUBLE: conf's percentile of its usage in the windows of a broker, at the
--     broker where that is greatest, in the same unit; null: is_sampled
--   peak_usage DOUBLE: its greatest usage in a window of a broker, in the same unit; null: is_sampled
--   is_sampled BOOLEAN: ingest sampled some of its PRODUCE or FETCH requests of this kind (of either for
--     request_percentage), or some lines have no size
--   windows BIGINT: windows with usage, counted per broker
--   windows_in_force BIGINT: those of them in which the current quota applied
--   throttled_windows BIGINT: those of windows_in_force in which this kind of quota throttled
--     requests
--   over_windows BIGINT: windows with more usage than recommended; null: is_sampled
--   altered_at TIMESTAMP: when the quota of the user was last altered, by anybody and in either
--     direction, as records of this pipeline, the request log and snapshots show; a quota that the
--     first snapshot finds counts as altered then; null: never seen
--   since TIMESTAMP: start of its first window, or of the minute or hour of it if that is rolled up
--   until TIMESTAMP: start of its last window

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
windows AS (
    SELECT
        used.*,
        coalesce(rules.percentile, 0.99) AS percentile,
        coalesce(rules.headroom, 0.25) AS headroom
    FROM user_usage_windows AS used
    INNER JOIN newest USING (cluster_id)
    LEFT JOIN rules USING (cluster_id)
    LEFT JOIN protected_principals AS protected USING (cluster_id, principal)
    WHERE
        protected.principal IS NULL
        AND used.principal LIKE 'User:%'
        AND used.quota_type <> 'controller_mutation_rate'
        AND unix_millis(used.event_time)
        > unix_millis(newest.event_time) - coalesce(rules.days, 7) * 86400000
),
by_usage AS (
    -- Summed before they are sorted: windows that are rolled up have few usages.
    SELECT
        cluster_id,
        principal,
        quota_type,
        broker_id,
        usage,
        quota,
        is_throttled,
        percentile,
        headroom,
        sum(windows) AS windows,
        max(peak_usage) AS peak_usage,
        max(quota_level) AS quota_level,
        min(event_time) AS since,
        max(last_window) AS until,
        max(
            named_struct(
                'last_window', last_window, 'broker', -broker_id, 'least', -usage,
                'none', -coalesce(quota, -1e0), 'quota', quota, 'quota_level', quota_level
            )
        ) AS last
    FROM windows
    GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9
),
ranked AS (
    SELECT
        *,
        sum(windows) OVER (
            PARTITION BY cluster_id, principal, quota_type, broker_id ORDER BY usage
        ) AS nth,
        sum(windows) OVER (PARTITION BY cluster_id, principal, quota_type, broker_id) AS of_broker
    FROM by_usage
),
of_brokers AS (
    SELECT
        cluster_id,
        principal,
        quota_type,
        broker_id,
        min(CASE WHEN nth >= percentile * of_broker THEN usage END) AS percentile_usage,
        min(CASE WHEN nth >= 99e-2 * of_broker THEN usage END) AS usage_p99,
        min(CASE WHEN nth >= 5e-1 * of_broker THEN usage END) AS usage_median
    FROM ranked
    GROUP BY cluster_id, principal, quota_type, broker_id
),
busiest AS (
    SELECT
        cluster_id,
        principal,
        quota_type,
        max(percentile_usage) AS percentile_usage,
        -- A first quota is no lower than this under any conf: it must not slow the user down.
        greatest(
            max(usage_p99),
            max(usage_median) / 2,
            CASE WHEN quota_type LIKE '%byte_rate' THEN 65536e0 ELSE 1e0 END
        ) AS least_first_quota
    FROM of_brokers
    GROUP BY cluster_id, principal, quota_type
),
in_force AS (
    SELECT cluster_id, principal, quota_type, max(last) AS last
    FROM by_usage
    GROUP BY cluster_id, principal, quota_type
),
users AS (
    SELECT
        used.cluster_id,
        used.principal,
        used.quota_type,
        busiest.percentile_usage,
        busiest.least_first_quota,
        max(used.headroom) AS headroom,
        max(used.peak_usage) AS peak_usage,
        sum(used.windows) AS windows,
        sum(
            CASE
                WHEN used.quota IS NOT DISTINCT FROM in_force.last.quota THEN used.windows
                ELSE 0
            END
        ) AS windows_in_force,
        sum(
            CASE
                WHEN used.quota IS NOT DISTINCT FROM in_force.last.quota AND used.is_throttled
                    THEN used.windows
                ELSE 0
            END
        ) AS throttled_windows,
        max(in_force.last.quota) AS quota,
        -- A quota of the user is for all its client ids, any other one for those of its level.
        CASE
            WHEN max(in_force.last.quota_level) = 3 THEN 3
            ELSE max(used.quota_level)
        END AS quota_level,
        min(used.since) AS since,
        max(used.until) AS until
    FROM by_usage AS used
    INNER JOIN in_force USING (cluster_id, principal, quota_type)
    INNER JOIN busiest USING (cluster_id, principal, quota_type)
    GROUP BY 1, 2, 3, 4, 5
),
unlogged AS (
    -- No line has the bytes of SHARE_FETCH, so a first quota from usage would be too low.
    SELECT DISTINCT cluster_id, principal, quota_type
    FROM quota_usage
    WHERE share_requests > 0
),
sampled AS (
    -- Bytes are estimated if lines are sampled, have no size, or are of SHARE_FETCH.
    SELECT
        used.cluster_id,
        used.principal,
        max(CASE WHEN used.quota_type = 'producer_byte_rate' THEN 1 ELSE 0 END) AS of_producer,
        max(CASE WHEN used.quota_type = 'consumer_byte_rate' THEN 1 ELSE 0 END) AS of_consumer
    FROM quota_usage AS used
    INNER JOIN newest USING (cluster_id)
    LEFT JOIN rules USING (cluster_id)
    WHERE
        used.is_estimated
        AND used.quota_type LIKE '%byte_rate'
        AND coalesce(used.share_requests, 0) = 0
        AND unix_millis(used.event_time)
        > unix_millis(newest.event_time) - coalesce(rules.days, 7) * 86400000
    GROUP BY used.cluster_id, used.principal
),
advised AS (
    SELECT
        users.*,
        CASE users.quota_type
            WHEN 'producer_byte_rate' THEN coalesce(sampled.of_producer, 0) = 1
            WHEN 'consumer_byte_rate' THEN coalesce(sampled.of_consumer, 0) = 1
            ELSE sampled.principal IS NOT NULL
        END AS is_sampled,
        altered.altered_at,
        CASE
            WHEN users.quota IS NULL THEN 'set'
            -- One window says little: it may be the first after a raise.
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
    INNER JOIN newest USING (cluster_id)
    LEFT JOIN unlogged USING (cluster_id, principal, quota_type)
    LEFT JOIN sampled USING (cluster_id, principal)
    LEFT JOIN altered
        ON users.cluster_id = altered.cluster_id
            AND substr(users.principal, 6) = altered.user
            AND users.quota_type = altered.config_key
    WHERE users.quota IS NOT NULL OR unlogged.principal IS NULL
),
recommended AS (
    SELECT
        *,
        CASE
            WHEN advice = 'keep' THEN quota
            WHEN is_sampled THEN quota * (1 + headroom)
            WHEN advice = 'set' THEN greatest(percentile_usage * (1 + headroom), least_first_quota)
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
    rounded.*,
    substr(rounded.principal, 6) AS user,
    CAST(rounded.recommended AS DOUBLE) AS recommended,
    CASE WHEN NOT rounded.is_sampled THEN rounded.percentile_usage END AS percentile_usage,
    CASE WHEN NOT rounded.is_sampled THEN rounded.peak_usage END AS peak_usage,
    sum(
        CASE
            WHEN rounded.is_sampled THEN NULL
            WHEN used.usage > rounded.recommended THEN used.windows
            ELSE 0
        END
    ) AS over_windows
FROM rounded
INNER JOIN by_usage AS used USING (cluster_id, principal, quota_type)
GROUP BY ALL
