-- kind: mart
-- grain: one row per hour, broker and API
-- area: telemetry
-- level: telemetry
-- question: Latency by broker. Which brokers are slow, as clients see it?
-- description: How slow each broker is as clients see it (client_latency). Minutes of a client whose
--   latency may have a wait for a quota do not count. APIs are ranked apart, because a FETCH waits for
--   data. p50 and p95 are nearest-rank percentiles over clients, so that one slow or lying client moves
--   p50 little. Each client has the mean of its latency_avg_ms in the hour, which is no mean over requests.
-- columns:
--   from client_latency: cluster_id
--   hour: start of the hour
--   from client_latency: broker_id, api
--   clients: client instances with a latency
--   latency_p50_ms: median over the clients, in ms
--   latency_p95_ms: 95th percentile over the clients, in ms
--   latency_max_ms: greatest maximum that a client pushed in a minute without throttling, in ms; null:
--     there was no such minute
--   slowest_rank: rank among the brokers of the hour and API; 1 has the greatest p50
WITH unthrottled AS (
    SELECT *
    FROM client_latency
    -- A client of which brokers log nothing is not known to be throttled.
    WHERE coalesce(throttled_requests, 0) = 0 OR client_software_name = 'apache-kafka-java'
),
client_hours AS (
    SELECT
        cluster_id,
        date_trunc('hour', minute) AS hour,
        broker_id,
        api,
        principal,
        client_id,
        client_instance_id,
        avg(latency_avg_ms) AS latency_ms,
        max(CASE WHEN coalesce(throttled_requests, 0) = 0 THEN latency_max_ms END) AS latency_max_ms
    FROM unthrottled
    GROUP BY 1, 2, 3, 4, 5, 6, 7
),
ordered AS (
    SELECT
        *,
        row_number() OVER (
            PARTITION BY cluster_id, hour, broker_id, api
            ORDER BY latency_ms, principal, client_id, client_instance_id
        ) AS nth,
        count(*) OVER (PARTITION BY cluster_id, hour, broker_id, api) AS clients
    FROM client_hours
    WHERE latency_ms IS NOT NULL
),
broker_hours AS (
    SELECT
        cluster_id,
        hour,
        broker_id,
        api,
        max(clients) AS clients,
        min(CASE WHEN nth * 100 >= clients * 50 THEN latency_ms END) AS latency_p50_ms,
        min(CASE WHEN nth * 100 >= clients * 95 THEN latency_ms END) AS latency_p95_ms,
        max(latency_max_ms) AS latency_max_ms
    FROM ordered
    GROUP BY 1, 2, 3, 4
)
SELECT
    *,
    CAST(
        rank() OVER (
            PARTITION BY cluster_id, hour, api ORDER BY latency_p50_ms DESC, latency_p95_ms DESC
        ) AS BIGINT
    ) AS slowest_rank
FROM broker_hours
