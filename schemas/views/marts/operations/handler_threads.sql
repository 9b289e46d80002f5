-- kind: mart
-- grain: one row per minute and broker
-- area: requests
-- level: sampled_log
-- question: Request handler threads. How busy are the handler threads (num.io.threads) of each broker, and by whom?
-- description: An estimate by the times of requests: a handler thread is busy for their local time.
--   Fetches of followers are left out, so a broker is at least so busy; other requests of brokers, such
--   as BROKER_HEARTBEAT, count.
--   A request counts in the minute in which it was answered, so a share can be somewhat above 1.
--   Requests queue once all threads are busy.
-- columns:
--   from request_times: cluster_id
--   minute: start of the minute
--   from request_times: broker_id
--   busy_share: local_time_ms by the time that all threads have in the minute: 1 is all of it; null:
--     handler_threads is
--   handler_threads: num.io.threads of the broker, by the last snapshot; null: no snapshot has it
--   request_count: requests but fetches of followers
--   local_time_ms: sum of the times in which handler threads served them, in ms
--   queue_mean_ms: mean time for which a request waited for a handler thread, in ms; null: no line has
--     a time
--   busiest_principal: principal whose requests took most of local_time_ms: a client's or a broker's
--   busiest_client_id: client.id of those requests: untrusted text
--   busiest_share: their part of local_time_ms; null: it is 0
WITH clients AS (
    SELECT
        cluster_id,
        event_time AS minute,
        broker_id,
        principal,
        client_id,
        sum(request_count) AS request_count,
        sum(timed_requests) AS timed_requests,
        sum(local_time_ms) AS local_time_ms,
        sum(request_queue_time_ms) AS queue_time_ms
    FROM request_times
    GROUP BY cluster_id, event_time, broker_id, principal, client_id
),
ranked AS (
    SELECT
        *,
        row_number() OVER (
            PARTITION BY cluster_id, minute, broker_id
            ORDER BY local_time_ms DESC, principal, client_id
        ) AS nth
    FROM clients
),
minutes AS (
    SELECT
        cluster_id,
        minute,
        broker_id,
        sum(request_count) AS request_count,
        sum(timed_requests) AS timed_requests,
        sum(local_time_ms) AS local_time_ms,
        sum(queue_time_ms) AS queue_time_ms,
        max(CASE WHEN nth = 1 THEN principal END) AS busiest_principal,
        max(CASE WHEN nth = 1 THEN client_id END) AS busiest_client_id,
        max(local_time_ms) AS busiest_ms
    FROM ranked
    GROUP BY cluster_id, minute, broker_id
),
threads AS (
    SELECT
        cluster_id,
        entity_name AS broker,
        max(CAST(config_value AS INT)) AS handler_threads
    FROM current_configs
    WHERE entity_type = 'broker' AND config_key = 'num.io.threads' AND entity_name <> ''
    GROUP BY cluster_id, entity_name
)

SELECT
    minutes.*,
    threads.handler_threads,
    local_time_ms / (6e4 * nullif(threads.handler_threads, 0)) AS busy_share,
    CAST(minutes.request_count AS BIGINT) AS request_count,
    queue_time_ms / nullif(timed_requests, 0) AS queue_mean_ms,
    busiest_ms / nullif(local_time_ms, 0e0) AS busiest_share
FROM minutes
LEFT JOIN threads
    ON minutes.cluster_id = threads.cluster_id
        AND CAST(minutes.broker_id AS STRING) = threads.broker
