-- kind: mart
-- grain: one row per broker and bucket of a client quota
-- description: How near to its quota those who share a bucket came, in the newest hour of quota_usage
--   of their cluster.
-- columns:
--   from quota_usage: cluster_id, broker_id, quota_type, quota_level, quota_bucket_user,
--     quota_bucket_client_id, quota
--   peak_usage: greatest usage of the bucket in a window, in the unit of quota
--   headroom: least of quota - bucket usage over the windows, in the unit of quota
--   peak_share: peak_usage / quota; 1 is the whole quota
--   windows: windows with usage
--   windows_over: those of them with more usage than the quota
--   client_ids: number of client ids that share the bucket
--   is_estimated: the broker charges more than usage shows, in some window (see quota_usage)
--   from quota_usage: enforcement
WITH recent AS (
    SELECT
        *,
        max(event_time) OVER (PARTITION BY cluster_id) - INTERVAL '1' HOUR AS since
    FROM quota_usage
)
SELECT
    cluster_id,
    broker_id,
    quota_type,
    quota_level,
    quota_bucket_user,
    quota_bucket_client_id,
    quota,
    max(quota_bucket_usage) AS peak_usage,
    min(headroom) AS headroom,
    max(quota_bucket_usage) / quota AS peak_share,
    count(DISTINCT event_time) AS windows,
    count(DISTINCT CASE WHEN is_over THEN event_time END) AS windows_over,
    count(DISTINCT client_id) AS client_ids,
    max(CASE WHEN is_estimated THEN 1 ELSE 0 END) = 1 AS is_estimated,
    enforcement
FROM recent
WHERE quota > 0 AND event_time > since
GROUP BY
    cluster_id,
    broker_id,
    quota_type,
    quota_level,
    quota_bucket_user,
    quota_bucket_client_id,
    quota,
    enforcement
