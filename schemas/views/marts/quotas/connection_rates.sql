-- kind: mart
-- grain: one row per minute, broker and address
-- area: quotas
-- level: sampled_log
-- question: New connections. How many connections does each address open, and how fast?
-- description: Connections by the first request that the log has of each: one that sends no request,
--   or whose requests ingest did not sample, is not counted, and one that was open before the first
--   request of the tables counts in its first minute there.
-- columns:
--   from requests: cluster_id
--   minute: start of the minute
--   from requests: broker_id, client_address
--   new_connections: connections whose first request came in the minute
--   new_connections_per_s: new_connections / 60
--   peak_per_s: most of them in one of the aligned windows of 11 s that begin in the minute, per
--     second: what a broker compares with connection_creation_rate (KIP-612)
WITH opened AS (
    SELECT cluster_id, broker_id, client_address, min(event_time) AS opened_at
    FROM requests
    WHERE client_address IS NOT NULL AND connection_id IS NOT NULL
    GROUP BY cluster_id, broker_id, client_address, connection_id
),
windows AS (
    SELECT
        cluster_id,
        broker_id,
        client_address,
        min(date_trunc('MINUTE', opened_at)) AS minute,
        count(*) AS connections
    FROM opened
    GROUP BY cluster_id, broker_id, client_address, floor(unix_micros(opened_at) / 11e6)
)

SELECT
    *,
    sum(connections) AS new_connections,
    sum(connections) / 6e1 AS new_connections_per_s,
    max(connections) / 1.1e1 AS peak_per_s
FROM windows
GROUP BY cluster_id, broker_id, client_address, minute
