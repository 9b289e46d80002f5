-- kind: mart
-- grain: one row per minute, broker and address
-- area: quotas
-- level: sampled_log
-- question: New connections. How many connections does each address open, how fast, and who most?
-- description: Connections by the first request that the log has of each: one that sends no request,
--   or whose requests ingest did not sample, is not counted, and one that was open before the first
--   request of the tables counts in its first minute there.
-- first: minute, new_connections
-- columns:
--   from requests: cluster_id
--   minute: start of the minute
--   from requests: broker_id, client_address
--   new_connections: connections whose first request came in the aligned windows of 11 s whose first
--     connection came in the minute: the last window can end in the next minute
--   new_connections_per_s: new_connections / 60
--   peak_per_s: most of them in one of the aligned windows of 11 s of the minute, per
--     second: what a broker compares with connection_creation_rate (KIP-612)
--   busiest_principal: principal that opened most of them; null: a broker logged none
--   busiest_client_id: client.id of those connections: untrusted text
--   busiest_connections: how many of new_connections those are
WITH opened AS (
    SELECT
        cluster_id,
        broker_id,
        client_address,
        min(event_time) AS opened_at,
        -- All requests of a connection are of one principal, and nearly always of one client id.
        max(principal) AS principal,
        max(client_id) AS client_id
    FROM requests
    WHERE client_address IS NOT NULL AND connection_id IS NOT NULL
    GROUP BY cluster_id, broker_id, client_address, connection_id
),
windowed AS (
    SELECT
        *,
        floor(unix_micros(opened_at) / 11e6) AS window_number,
        min(date_trunc('MINUTE', opened_at)) OVER (
            PARTITION BY cluster_id, broker_id, client_address, floor(unix_micros(opened_at) / 11e6)
        ) AS minute
    FROM opened
),
counted AS (
    SELECT
        *,
        count(*) OVER (
            PARTITION BY cluster_id, broker_id, client_address, minute, principal, client_id
        ) AS of_client,
        count(*) OVER (
            PARTITION BY cluster_id, broker_id, client_address, minute, window_number
        ) AS of_window
    FROM windowed
),
ranked AS (
    SELECT
        *,
        row_number() OVER (
            PARTITION BY cluster_id, broker_id, client_address, minute
            ORDER BY of_client DESC, principal, client_id
        ) AS nth
    FROM counted
)

SELECT
    *,
    count(*) AS new_connections,
    count(*) / 6e1 AS new_connections_per_s,
    max(of_window) / 1.1e1 AS peak_per_s,
    max(CASE WHEN nth = 1 THEN principal END) AS busiest_principal,
    max(CASE WHEN nth = 1 THEN client_id END) AS busiest_client_id,
    max(of_client) AS busiest_connections
FROM ranked
GROUP BY cluster_id, broker_id, client_address, minute
