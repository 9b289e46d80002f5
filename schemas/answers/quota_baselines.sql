-- kind: answer
-- grain: one row per user and kind of client quota, and one per user, client id and kind
-- area: quotas
-- level: sampled_log
-- description: The usage of the last 7 days at the broker where its p99 is greatest, and the quota
--   that applies: what a quota of it may start from. Days are measured to the newest window, not to
--   now. Usage in windows that are rolled up is within 4.4 % of the true one.
-- key: cluster_id, user, client_id, quota_type
-- time: until
-- clustering: until, user
-- lookbacks:
--   quota_usage: at most 8 d
-- columns:
--   from quota_usage: cluster_id
--   user STRING: name of the user, a principal without User:
--   client_id STRING: client.id as the client gave it: untrusted text; null: the user, over all
--     client ids but those with a quota of levels 1 and 2
--   from quota_usage: quota_type
--   broker_id INT: broker where the p99 of its usage is greatest
--   usage_p99 DOUBLE: 99th percentile of its usage in the windows with usage at that broker, in the
--     unit of the quota
--   usage_median DOUBLE: median of the same, in the same unit
--   windows BIGINT: number of these windows
--   history_s DOUBLE: seconds from its first known window, of the last 8 days, to the newest window
--     of the cluster
--   since TIMESTAMP: start of the first of these windows
--   until TIMESTAMP: start of its last window at any broker
--   quota DOUBLE: quota that applied in its last window, own or inherited, in the same unit; null:
--     none
--   from quota_usage: quota_level
--   is_estimated BOOLEAN: the broker charges more than the usage has: request time without network
--     threads, or bytes of a user with SHARE_FETCH

-- Usage of 7 days, to the newest window: a row is a group of windows with one usage.
WITH newest AS (
    SELECT cluster_id, max(event_time) AS event_time
    FROM quota_usage
    GROUP BY cluster_id
),
windows AS (
    -- A quota of the user and one of its client id count apart: without a client_id it is the user,
    -- over all client ids that no quota of levels 1 and 2 limits.
    SELECT
        cluster_id,
        principal,
        CAST(NULL AS STRING) AS client_id,
        quota_type,
        broker_id,
        event_time,
        last_window,
        usage,
        windows,
        quota,
        quota_level
    FROM user_usage_windows
    WHERE principal LIKE 'User:%'
    UNION ALL
    SELECT
        cluster_id,
        principal,
        client_id,
        quota_type,
        broker_id,
        event_time,
        event_time AS last_window,
        usage,
        windows,
        quota,
        quota_level
    FROM client_usage_windows
    WHERE principal LIKE 'User:%' AND usage > 0
),
by_usage AS (
    -- Summed before they are sorted: windows that are rolled up have few usages.
    SELECT
        cluster_id,
        principal,
        client_id,
        quota_type,
        broker_id,
        unix_millis(windows.event_time) > unix_millis(newest.event_time) - 604800000
            AS is_of_week,
        usage,
        sum(windows) AS windows,
        min(windows.event_time) AS since,
        max(last_window) AS until,
        max(unix_millis(newest.event_time) - unix_millis(windows.event_time)) AS age_ms,
        max(
            named_struct(
                'last_window', last_window, 'nearest', -coalesce(quota_level, 9),
                'broker', -broker_id, 'least', -usage, 'none', -coalesce(quota, -1e0),
                'quota', quota, 'quota_level', quota_level
            )
        ) AS last
    FROM windows
    INNER JOIN newest USING (cluster_id)
    GROUP BY 1, 2, 3, 4, 5, 6, 7
),
users AS (
    SELECT
        cluster_id,
        principal,
        client_id,
        quota_type,
        max(age_ms) / 1e3 AS history_s,
        max(until) AS until,
        max(CASE WHEN is_of_week THEN last END) AS last
    FROM by_usage
    GROUP BY cluster_id, principal, client_id, quota_type
),
ranked AS (
    SELECT
        *,
        sum(windows) OVER (
            PARTITION BY cluster_id, principal, client_id, quota_type, broker_id ORDER BY usage
        ) AS nth,
        sum(windows) OVER (
            PARTITION BY cluster_id, principal, client_id, quota_type, broker_id
        ) AS of_broker
    FROM by_usage
    WHERE is_of_week
),
of_brokers AS (
    SELECT
        cluster_id,
        principal,
        client_id,
        quota_type,
        broker_id,
        min(CASE WHEN nth >= 99e-2 * of_broker THEN usage END) AS usage_p99,
        min(CASE WHEN nth >= 5e-1 * of_broker THEN usage END) AS usage_median,
        sum(windows) AS windows,
        min(since) AS since
    FROM ranked
    GROUP BY cluster_id, principal, client_id, quota_type, broker_id
),
unlogged AS (
    SELECT DISTINCT cluster_id, principal, quota_type
    FROM quota_usage
    WHERE share_requests > 0
),
busiest AS (
    SELECT
        *,
        row_number() OVER (
            PARTITION BY cluster_id, principal, client_id, quota_type
            ORDER BY usage_p99 DESC, usage_median DESC, broker_id
        ) AS place
    FROM of_brokers
)

SELECT
    *,
    busiest.cluster_id,
    busiest.quota_type,
    substr(busiest.principal, 6) AS user,
    busiest.client_id,
    users.last.quota,
    users.last.quota_level,
    -- Network threads are charged too, and no log line has their time, nor bytes of SHARE_FETCH.
    busiest.quota_type = 'request_percentage' OR unlogged.principal IS NOT NULL AS is_estimated
FROM busiest
LEFT JOIN unlogged USING (cluster_id, principal, quota_type)
INNER JOIN users
    ON busiest.cluster_id = users.cluster_id
        AND busiest.principal = users.principal
        AND busiest.client_id IS NOT DISTINCT FROM users.client_id
        AND busiest.quota_type = users.quota_type
WHERE busiest.place = 1
