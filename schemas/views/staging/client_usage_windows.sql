-- kind: staging
-- grain: one row per row of quota_usage, and of a rolled-up row one per histogram bucket
-- area: quotas
-- level: sampled_log
-- description: Windows of clients by their usage, for percentiles over any time. Usage of rolled-up
--   windows is within 4.4 % of the true one.
-- columns:
--   from quota_usage: cluster_id, event_time, broker_id, principal, client_id, quota_type,
--     quota_level, quota, quota_bucket_user, quota_bucket_client_id, enforcement, throttled_by
--   is_throttled: requests were throttled in these windows
--   usage: usage of the client in each of these windows, in the unit of quota_usage
--   windows: number of windows with this usage
SELECT
    *,
    throttled_requests > 0 AS is_throttled,
    CAST(1 AS BIGINT) AS windows
FROM quota_usage
WHERE rolled_up_s IS NULL
UNION ALL
SELECT
    *,
    throttled_requests > 0 AS is_throttled,
    CASE
        WHEN counted.bucket IS NULL THEN 0e0
        ELSE least(exp((counted.bucket + 1) * 0.08664339756999316e0) * 0.9567053825006107e0, peak_usage)
    END AS usage,
    counted.windows AS windows
FROM (SELECT *, explode(usage_histogram) AS counted FROM quota_usage) AS rolled_up
