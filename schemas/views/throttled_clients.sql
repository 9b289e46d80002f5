-- One row per client, hour, kind of request and the quota that seems to have throttled it, over all
-- brokers: quota_type is whose requests they are (request_percentage: of no other), throttled_by
-- null where no known quota could have.
SELECT
    cluster_id,
    date_trunc('hour', event_time) AS hour,
    principal,
    client_id,
    quota_type,
    throttled_by,
    sum(throttled_requests) AS throttled_requests,
    sum(request_count) AS request_count,
    sum(throttle_time_ms) AS throttle_time_ms,
    min(event_time) AS first_window,
    max(event_time) AS last_window,
    count(DISTINCT broker_id) AS broker_count
FROM quota_usage
WHERE throttled_requests > 0
GROUP BY 1, 2, 3, 4, 5, 6
