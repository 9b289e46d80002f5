-- kind: mart
-- grain: one row per hour, broker and API
-- area: requests
-- level: sampled_log
-- question: Percentiles by broker. What is the p50, p95 and p99 of request times at each broker, by API, as Produce?
-- description: How long clients waited at each broker for requests of an API, over all clients:
--   waits and percentiles are those of latency_by_hour.
-- first: hour, p99_ms
-- columns:
--   from waits_by_hour: cluster_id, hour, broker_id, api
--   request_count: requests
--   timed_requests: those of them whose line has a time: percentiles are of these
--   throttled_requests: those of them that were throttled
--   mean_ms: mean wait, in ms; null: no line has a time
--   p50_ms: wait that half of the requests do not exceed, in ms; null: no line has a time
--   p95_ms: 95th percentile, in ms; null: no line has a time
--   p99_ms: 99th percentile, in ms; null: no line has a time
--   local_time_ms: sum of their times in the broker itself, in ms: so long its handler threads served
--     clients
--   line_count: lines of the log that show these requests: a percentile rests on so many; null: the
--     rows are older
WITH ranked AS (
    SELECT
        *,
        sum(CASE WHEN upper_ms IS NULL THEN requests END) OVER alike AS timed,
        -- Requests that did not wait are in no bucket: they come first.
        sum(CASE WHEN upper_ms IS NULL THEN requests ELSE -requests END) OVER alike
        + sum(CASE WHEN upper_ms IS NULL THEN 0 ELSE requests END) OVER by_wait AS up_to
    FROM waits_by_hour
    WINDOW
        alike AS (PARTITION BY cluster_id, hour, broker_id, api),
        by_wait AS (PARTITION BY cluster_id, hour, broker_id, api ORDER BY coalesce(upper_ms, -1e0))
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
GROUP BY cluster_id, hour, broker_id, api
