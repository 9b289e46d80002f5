-- kind: intermediate
-- grain: one row per hour, broker, client, API and length of wait
-- area: requests
-- level: sampled_log
-- description: Waits of clients for requests, in buckets of length, for percentiles over clients or
--   brokers. One more row of each hour, broker, client and API counts all its requests.
-- columns:
--   from request_times: cluster_id
--   hour: start of the hour
--   from request_times: broker_id, principal, client_id, api
--   upper_ms: upper end of the bucket of request_times.waited_histogram, in ms; null: the row counts
--     all requests
--   requests: requests with a wait of the bucket; in the row of all those whose line has a time
--   request_count: requests; 0 in the row of a bucket, as all that follows
--   throttled_requests: those of them that were throttled
--   waited_time_ms: sum of their waits, in ms
--   local_time_ms: sum of their times in the broker itself, in ms
--   line_count: lines of the log that show them; null: the rows are older
SELECT
    *,
    date_trunc('hour', event_time) AS hour,
    CAST(NULL AS DOUBLE) AS upper_ms,
    sum(timed_requests) AS requests,
    sum(request_count) AS request_count,
    sum(throttled_requests) AS throttled_requests,
    sum(waited_time_ms) AS waited_time_ms,
    sum(local_time_ms) AS local_time_ms,
    sum(line_count) AS line_count
FROM request_times
GROUP BY cluster_id, date_trunc('hour', event_time), broker_id, principal, client_id, api
UNION ALL
SELECT
    cluster_id,
    date_trunc('hour', event_time) AS hour,
    broker_id,
    principal,
    client_id,
    api,
    round(power(2e0, (waited.bucket + 1) / 8e0), 4) AS upper_ms,
    sum(waited.requests) AS requests,
    0 AS request_count,
    0 AS throttled_requests,
    0e0 AS waited_time_ms,
    0e0 AS local_time_ms,
    0 AS line_count
FROM (SELECT *, explode(waited_histogram) AS waited FROM request_times) AS exploded
GROUP BY
    cluster_id,
    date_trunc('hour', event_time),
    broker_id,
    principal,
    client_id,
    api,
    waited.bucket
