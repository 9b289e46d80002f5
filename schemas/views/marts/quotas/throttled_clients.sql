-- kind: mart
-- grain: one row per hour, principal, program, kind of request and quota that throttled it
-- area: quotas
-- level: sampled_log
-- question: Throttled clients. Who was throttled in each hour, by which quota, and for how long?
-- description: Which clients were throttled, how much, and by which quota, over all brokers.
-- columns:
--   from quota_usage: cluster_id
--   hour: start of the hour
--   from quota_usage: principal
--   client_id: client.id, as the client gave it; of several ids of one program what they share, with *
--     for what varies: producer-*
--   client_ids: client ids of the program that were throttled
--   quota_type: kind of the requests: producer_byte_rate is PRODUCE, consumer_byte_rate FETCH
--     and SHARE_FETCH, controller_mutation_rate changes of topics, request_percentage all others that brokers charge
--   throttled_by: quota that likely throttled them; null: no known quota can have
--   throttled_requests: requests that were throttled
--   request_count: requests in the windows with throttled ones
--   throttle_time_ms: sum of their throttle times, in ms
--   first_window: start of the first window with throttled requests
--   last_window: start of the last window with throttled requests
--   broker_count: brokers that throttled
--   share_requests: those of request_count that are SHARE_FETCH of share groups
WITH throttled AS (
    SELECT *, program_of(client_id) AS client_pattern FROM quota_usage WHERE throttled_requests > 0
)

SELECT
    *,
    date_trunc('hour', event_time) AS hour,
    CASE WHEN count(DISTINCT client_id) > 1 THEN client_pattern ELSE max(client_id) END AS client_id,
    count(DISTINCT client_id) AS client_ids,
    sum(throttled_requests) AS throttled_requests,
    sum(request_count) AS request_count,
    sum(throttle_time_ms) AS throttle_time_ms,
    min(event_time) AS first_window,
    max(event_time) AS last_window,
    count(DISTINCT broker_id) AS broker_count,
    sum(share_requests) AS share_requests
FROM throttled
GROUP BY
    cluster_id,
    date_trunc('hour', event_time),
    principal,
    client_pattern,
    quota_type,
    throttled_by
