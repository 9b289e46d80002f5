-- kind: staging
-- grain: one row per window of a user at a broker, or per group of its rolled-up windows
-- area: quotas
-- level: sampled_log
-- description: What each user used of a kind of quota at a broker, over all its client ids but those
--   with a quota of their own for this user (levels 1 and 2). Windows without usage have no row.
--   Usage of rolled-up windows is within 4.4 % of the true one.
-- columns:
--   from quota_usage: cluster_id, event_time, broker_id, principal, quota_type
--   usage: usage in each of these windows, in the unit of quota_usage
--   windows: number of windows
--   peak_usage: greatest usage in one of them
--   quota: quota of users that applied, in the same unit; null: none
--   quota_level: greatest level of a quota of its clients, as in quota_usage
--   is_throttled: this kind of quota throttled requests in these windows
--   last_window: start of the last one
WITH charged AS (
    SELECT
        cluster_id,
        event_time,
        broker_id,
        principal,
        client_id,
        quota_type,
        amount,
        period_s,
        usage,
        CAST(0 AS BIGINT) AS throttled_requests,
        CASE WHEN quota_level <= 6 THEN quota END AS quota,
        quota_level
    FROM quota_usage
    WHERE rolled_up_s IS NULL
    UNION ALL
    SELECT
        cluster_id,
        event_time,
        broker_id,
        principal,
        client_id,
        coalesce(throttled_by, quota_type),
        CAST(NULL AS BIGINT),
        CAST(NULL AS INT),
        0e0,
        throttled_requests,
        CAST(NULL AS DOUBLE),
        CAST(NULL AS INT)
    FROM quota_usage
    WHERE throttled_requests > 0 AND rolled_up_s IS NULL
),
clients AS (
    SELECT
        cluster_id,
        event_time,
        broker_id,
        principal,
        quota_type,
        sum(amount) AS amount,
        max(period_s) AS period_s,
        sum(usage) AS usage,
        sum(throttled_requests) AS throttled_requests,
        max(quota) AS quota,
        max(quota_level) AS quota_level
    FROM charged
    GROUP BY cluster_id, event_time, broker_id, principal, client_id, quota_type
    HAVING coalesce(max(quota_level), 3) > 2
),
users AS (
    SELECT
        cluster_id,
        event_time,
        broker_id,
        principal,
        quota_type,
        -- A sum of whole amounts is the same in any order.
        coalesce(
            sum(amount) / (
                max(period_s) * CASE WHEN quota_type = 'request_percentage' THEN 1e4 ELSE 1e0 END
            ),
            sum(usage)
        ) AS usage,
        sum(throttled_requests) > 0 AS is_throttled,
        max(quota) AS quota,
        max(quota_level) AS quota_level
    FROM clients
    GROUP BY cluster_id, event_time, broker_id, principal, quota_type
    HAVING sum(usage) > 0
)

SELECT
    *,
    CAST(1 AS BIGINT) AS windows,
    usage AS peak_usage,
    event_time AS last_window
FROM users
UNION ALL
SELECT
    *,
    least(
        exp((counted.bucket + 1) * 0.08664339756999316e0) * 0.9567053825006107e0,
        counted.peak_usage
    ) AS usage,
    counted.windows AS windows,
    counted.peak_usage AS peak_usage,
    counted.quota AS quota,
    counted.quota_level AS quota_level,
    counted.is_throttled AS is_throttled,
    counted.last_window AS last_window
FROM (
    SELECT cluster_id, event_time, broker_id, principal, quota_type, explode(user_windows) AS counted
    FROM quota_usage
) AS rolled_up
