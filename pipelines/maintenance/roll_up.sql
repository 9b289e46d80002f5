-- Rows of quota_usage that replace those of one time: one per minute or hour ({unit}) and client,
-- apart by quota and by the cause of a throttle. Spark runs it, and DuckDB after a translation.
-- Sums are over whole bytes, microseconds and windows, so they are the same in any order. Windows
-- are counted by histogram bucket when they are rolled up first. Later these counts are added. So
-- hours of minutes are the hours of windows.
WITH quota_usage AS (
    SELECT * FROM {source}
),
client_usage_windows AS (
    {client_usage_windows}
),
user_usage_windows AS (
    {user_usage_windows}
),
pieces AS (
    -- A row is a row of quota_usage without its histogram, or a histogram bucket.
    SELECT
        cluster_id, date_trunc('{unit}', event_time) AS start, broker_id, principal, client_id,
        quota_type, quota_level, quota, quota_bucket_user, quota_bucket_client_id, enforcement,
        throttled_by, throttled_requests > 0 AS is_throttled,
        amount, windows, peak_usage, request_count, throttled_requests,
        CAST(round(throttle_time_ms * 1e3) AS BIGINT) AS throttle_time_us,
        is_estimated, is_quota_changed, quota_bucket_usage, share_requests, is_lower_bound,
        CAST(NULL AS INT) AS bucket, CAST(NULL AS BIGINT) AS bucket_windows
    FROM quota_usage
    UNION ALL
    SELECT
        cluster_id, date_trunc('{unit}', event_time) AS start, broker_id, principal, client_id,
        quota_type, quota_level, quota, quota_bucket_user, quota_bucket_client_id, enforcement,
        throttled_by, is_throttled, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
        CASE WHEN usage > 0 THEN CAST(ceil(ln(usage) * {per_ln}) AS INT) - 1 END,
        windows
    FROM client_usage_windows
),
by_bucket AS (
    SELECT
        cluster_id, start, broker_id, principal, client_id, quota_type, quota_level, quota,
        quota_bucket_user, quota_bucket_client_id, enforcement, throttled_by, is_throttled, bucket,
        sum(amount) AS amount, sum(windows) AS windows, max(peak_usage) AS peak_usage,
        sum(request_count) AS request_count, sum(throttled_requests) AS throttled_requests,
        sum(throttle_time_us) AS throttle_time_us, bool_or(is_estimated) AS is_estimated,
        bool_or(is_quota_changed) AS is_quota_changed,
        max(quota_bucket_usage) AS quota_bucket_usage, sum(share_requests) AS share_requests,
        bool_or(is_lower_bound) AS is_lower_bound, sum(bucket_windows) AS bucket_windows
    FROM pieces
    GROUP BY
        cluster_id, start, broker_id, principal, client_id, quota_type, quota_level, quota,
        quota_bucket_user, quota_bucket_client_id, enforcement, throttled_by, is_throttled, bucket
),
summed AS (
    SELECT
        cluster_id, start, broker_id, principal, client_id, quota_type, quota_level, quota,
        quota_bucket_user, quota_bucket_client_id, enforcement, throttled_by, is_throttled,
        sum(amount) AS amount, sum(windows) AS windows, max(peak_usage) AS peak_usage,
        sum(request_count) AS request_count, sum(throttled_requests) AS throttled_requests,
        sum(throttle_time_us) AS throttle_time_us, bool_or(is_estimated) AS is_estimated,
        bool_or(is_quota_changed) AS is_quota_changed,
        max(quota_bucket_usage) AS quota_bucket_usage, sum(share_requests) AS share_requests,
        bool_or(is_lower_bound) AS is_lower_bound,
        array_sort(collect_list(
            CASE
                WHEN bucket_windows > 0
                    THEN named_struct('bucket', bucket, 'windows', bucket_windows)
            END
        )) AS usage_histogram
    FROM by_bucket
    GROUP BY
        cluster_id, start, broker_id, principal, client_id, quota_type, quota_level, quota,
        quota_bucket_user, quota_bucket_client_id, enforcement, throttled_by, is_throttled
),
numbered AS (
    -- The first row of a user, broker, kind of quota and period gets the windows of the user.
    SELECT
        *, row_number() OVER (
            PARTITION BY cluster_id, start, broker_id, principal, quota_type
            ORDER BY
                client_id, quota_level, quota, quota_bucket_user, quota_bucket_client_id,
                enforcement, throttled_by, is_throttled
        ) AS nth,
        -- All windows that start in the period, also those in which the client did nothing.
        {rate_period_s} * greatest(
            (unix_seconds(start) + {length_s} - 1) div {rate_period_s}
                - (unix_seconds(start) - 1) div {rate_period_s},
            1
        ) AS period_s
    FROM summed
),
by_user_bucket AS (
    SELECT
        cluster_id, date_trunc('{unit}', event_time) AS start, broker_id, principal, quota_type,
        quota, quota_level, is_throttled, CAST(ceil(ln(usage) * {per_ln}) AS INT) - 1 AS bucket,
        sum(windows) AS windows, max(peak_usage) AS peak_usage, max(last_window) AS last_window
    FROM user_usage_windows
    GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9
),
users AS (
    SELECT
        cluster_id, start, broker_id, principal, quota_type,
        array_sort(collect_list(named_struct(
            'quota', quota, 'quota_level', quota_level, 'is_throttled', is_throttled,
            'bucket', bucket, 'windows', windows, 'peak_usage', peak_usage,
            'last_window', last_window
        ))) AS user_windows
    FROM by_user_bucket
    GROUP BY cluster_id, start, broker_id, principal, quota_type
)

SELECT
    n.cluster_id, CAST(n.start AS DATE) AS event_date, n.start AS event_time, n.broker_id,
    n.principal, n.client_id, n.quota_type,
    n.amount / (n.period_s * CASE WHEN n.quota_type = 'request_percentage' THEN 1e4 ELSE 1e0 END)
        AS usage,
    n.is_estimated, n.request_count, n.throttled_requests,
    n.throttle_time_us / 1e3 AS throttle_time_ms,
    n.throttled_by, n.quota_level, n.quota, n.is_quota_changed, n.quota_bucket_user,
    n.quota_bucket_client_id, n.quota_bucket_usage, n.quota - n.quota_bucket_usage AS headroom,
    coalesce(n.quota_bucket_usage > n.quota, false) AS is_over, n.enforcement, n.amount,
    CAST(n.period_s AS INT) AS period_s, {length_s} AS rolled_up_s, n.windows, n.peak_usage,
    n.usage_histogram, u.user_windows, n.share_requests, n.is_lower_bound
FROM numbered AS n
LEFT JOIN users AS u
    ON n.nth = 1
        AND u.start = n.start
        AND u.cluster_id = n.cluster_id
        AND u.broker_id IS NOT DISTINCT FROM n.broker_id
        AND u.principal = n.principal
        AND u.quota_type = n.quota_type
ORDER BY event_time, n.broker_id, n.principal, n.client_id, n.quota_type, n.nth
