-- kind: mart
-- grain: one row per broker and bucket of a client quota
-- area: quotas
-- level: sampled_log
-- question: Headroom. Who comes near its quota?
-- description: How near to its quota those who share a bucket came, in the newest hour of quota_usage
--   of their cluster. A user whom no quota limits has no row: quota_advice has its peak_usage.
-- first: peak_share
-- columns:
--   from quota_usage: cluster_id, broker_id, quota_type, quota_level, quota_bucket_user,
--     quota_bucket_client_id, quota
--   peak_usage: greatest usage of the bucket in a window, in the unit of quota; at least the quota if this
--     quota throttled requests, because the broker then measured that much between two windows
--   headroom: least of quota - bucket usage over the windows, in the unit of quota; at most 0 if this
--     quota throttled requests
--   peak_share: peak_usage / quota; 1 is the whole quota
--   is_lower_bound: peak_usage and peak_share are lower bounds, and headroom an upper one: brokers
--     log no bytes of SHARE_FETCH, or windows have less than the quota that throttled requests
--   windows: windows with usage
--   windows_over: those of them with more usage than the quota
--   windows_throttled: those of them in which this quota likely throttled requests
--   state: throttled (windows_throttled is more than 0), over (windows_over is more than 0), near
--     (peak_share is 0.8 or more), unknown (is_lower_bound) or free; the first that is true
--   client_ids: number of client ids that share the bucket
--   is_estimated: the broker charges more than usage shows, in some window (see quota_usage)
--   from quota_usage: enforcement
WITH recent AS (
    SELECT
        *,
        max(event_time) OVER (PARTITION BY cluster_id) - INTERVAL '1' HOUR AS since
    FROM quota_usage
),
throttles AS (
    -- A quota of request time may throttle requests that count under their bytes.
    SELECT DISTINCT
        cluster_id, broker_id, event_time, principal, client_id, throttled_by AS quota_type
    FROM recent
    WHERE throttled_requests > 0 AND throttled_by IS NOT NULL AND event_time > since
),
buckets AS (
    SELECT
        recent.cluster_id,
        recent.broker_id,
        recent.quota_type,
        recent.quota_level,
        recent.quota_bucket_user,
        recent.quota_bucket_client_id,
        recent.quota,
        max(recent.quota_bucket_usage) AS logged_usage,
        -- Brokers measure 11 s that end at any time. A quota that changed, or a callback, proves nothing.
        max(
            CASE
                WHEN coalesce(recent.is_quota_changed, FALSE) THEN 0
                WHEN recent.enforcement IS DISTINCT FROM 'callback'
                    AND throttles.event_time IS NOT NULL THEN 1
                ELSE 0
            END
        ) = 1 AS was_reached,
        count(DISTINCT recent.event_time) AS windows,
        count(DISTINCT CASE WHEN recent.is_over THEN recent.event_time END) AS windows_over,
        count(DISTINCT throttles.event_time) AS windows_throttled,
        count(DISTINCT recent.client_id) AS client_ids,
        max(CASE WHEN recent.is_estimated THEN 1 ELSE 0 END) = 1 AS is_estimated,
        coalesce(max(recent.is_lower_bound), FALSE) AS has_unlogged,
        recent.enforcement
    FROM recent
    LEFT JOIN throttles USING (cluster_id, broker_id, event_time, principal, client_id, quota_type)
    WHERE recent.quota > 0 AND recent.event_time > recent.since
    GROUP BY
        recent.cluster_id,
        recent.broker_id,
        recent.quota_type,
        recent.quota_level,
        recent.quota_bucket_user,
        recent.quota_bucket_client_id,
        recent.quota,
        recent.enforcement
),
peaks AS (
    SELECT
        *,
        CASE WHEN was_reached AND logged_usage < quota THEN quota ELSE logged_usage END
            AS peak_usage,
        has_unlogged OR was_reached AND logged_usage < quota AS is_lower_bound
    FROM buckets
)

SELECT
    *,
    quota - peak_usage AS headroom,
    peak_usage / quota AS peak_share,
    CASE
        WHEN windows_throttled > 0 THEN 'throttled'
        WHEN windows_over > 0 THEN 'over'
        WHEN peak_usage / quota >= 8e-1 THEN 'near'
        WHEN is_lower_bound THEN 'unknown'
        ELSE 'free'
    END AS state
FROM peaks
