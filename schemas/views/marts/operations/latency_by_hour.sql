-- kind: mart
-- grain: one row per hour, client and API
-- area: requests
-- level: sampled_log
-- question: Percentiles of latency. What is the p50, p95 and p99 of request times of each client and API, as Produce?
-- description: How long clients waited for requests of an API, over all brokers, by the log of
--   requests. A request waits from receive to sent, and for the throttle after it. Waits of FETCH and
--   JOIN_GROUP for records and members are left out (request_times.waited_time_ms). Percentiles are
--   upper bounds, from a histogram: the true one is at most 8.3 % less. The newest hour is not over:
--   its row has the requests so far. Of fewer than 100 lines the p99 is the longest wait.
-- first: hour, p99_ms
-- columns:
--   from waits_by_hour: cluster_id, hour, principal, client_id, api
--   request_count: requests
--   timed_requests: those of them whose line has a time: percentiles are of these
--   throttled_requests: those of them that were throttled
--   mean_ms: mean wait, in ms; null: no line has a time
--   p50_ms: wait that half of the requests do not exceed, in ms; null: no line has a time
--   p95_ms: 95th percentile: wait that 95 of 100 requests do not exceed, in ms; null: no line has a time
--   p99_ms: 99th percentile: wait that 99 of 100 requests do not exceed, in ms; null: no line has a time
--   local_time_ms: sum of their times in the brokers themselves, in ms: so long handler threads
--     served them
--   line_count: lines of the log that show these requests, fewer where ingest sampled: a percentile
--     rests on so many; null: the rows are older
WITH ranked AS (
    SELECT
        *,
        sum(CASE WHEN upper_ms IS NULL THEN requests END) OVER alike AS timed,
        -- Requests that did not wait are in no bucket: they come first.
        sum(CASE WHEN upper_ms IS NULL THEN requests ELSE -requests END) OVER alike
        + sum(CASE WHEN upper_ms IS NULL THEN 0 ELSE requests END) OVER by_wait AS up_to
    FROM waits_by_hour
    WINDOW
        alike AS (PARTITION BY cluster_id, hour, principal, client_id, api),
        by_wait AS (PARTITION BY cluster_id, hour, principal, client_id, api ORDER BY coalesce(upper_ms, -1e0))
)

SELECT
    *,
    CAST(sum(request_count) AS BIGINT) AS request_count,
    CAST(max(timed) AS BIGINT) AS timed_requests,
    CAST(sum(throttled_requests) AS BIGINT) AS throttled_requests,
    sum(waited_time_ms) / nullif(max(timed), 0) AS mean_ms,
    min(CASE WHEN timed > 0 AND 100 * up_to >= 50 * timed THEN coalesce(upper_ms, 0e0) END) AS p50_ms,
    min(CASE WHEN timed > 0 AND 100 * up_to >= 95 * timed THEN coalesce(upper_ms, 0e0) END) AS p95_ms,
    min(CASE WHEN timed > 0 AND 100 * up_to >= 99 * timed THEN coalesce(upper_ms, 0e0) END) AS p99_ms,
    sum(local_time_ms) AS local_time_ms,
    CAST(sum(line_count) AS BIGINT) AS line_count
FROM ranked
GROUP BY cluster_id, hour, principal, client_id, api
