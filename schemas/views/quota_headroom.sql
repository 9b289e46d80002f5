-- One row per broker and bucket of a client quota: how near its quota those who share it came, in
-- the last hour that quota_usage tells of their cluster. A null bucket_user is all users, a null
-- bucket_client_id all client ids; headroom is the least of all windows.
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
    bucket_user,
    bucket_client_id,
    quota,
    max(bucket_usage) AS peak_usage,
    min(headroom) AS headroom,
    max(bucket_usage) / quota AS peak_share,
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
    bucket_user,
    bucket_client_id,
    quota,
    enforcement
