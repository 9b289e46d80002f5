-- kind: mart
-- grain: one row per UTC day, principal and client
-- description: Who moves most bytes on a day, which part crosses racks, and what it costs at the prices
--   of conf today.
-- columns:
--   from traffic_by_hour: cluster_id
--   day: start of the UTC day
--   talker_rank: rank by bytes on that day; 1 moved most
--   from traffic_by_hour: principal, client_id
--   produced_bytes: record bytes produced
--   consumed_bytes: record bytes consumed
--   share: its part of all bytes of the cluster on that day, 0 to 1
--   from traffic_by_hour: cross_rack_bytes, cross_rack_share
--   topics: topics with a known name
--   from traffic_by_hour: cost, currency
WITH days AS (
    SELECT
        cluster_id,
        date_trunc('DAY', hour) AS day,
        principal,
        client_id,
        sum(CASE WHEN direction = 'produced' THEN bytes ELSE 0 END) AS produced_bytes,
        sum(CASE WHEN direction = 'consumed' THEN bytes ELSE 0 END) AS consumed_bytes,
        sum(bytes) AS bytes,
        sum(cross_rack_bytes) AS cross_rack_bytes,
        sum(unknown_rack_bytes) AS unknown_rack_bytes,
        count(DISTINCT topic) AS topics,
        sum(cost) AS cost,
        max(currency) AS currency
    FROM traffic_by_hour
    GROUP BY cluster_id, date_trunc('DAY', hour), principal, client_id
)

SELECT
    cluster_id,
    day,
    rank() OVER (PARTITION BY cluster_id, day ORDER BY bytes DESC) AS talker_rank,
    principal,
    client_id,
    produced_bytes,
    consumed_bytes,
    CAST(bytes AS DOUBLE) / sum(bytes) OVER (PARTITION BY cluster_id, day) AS share,
    cross_rack_bytes,
    CAST(cross_rack_bytes AS DOUBLE) / nullif(bytes - unknown_rack_bytes, 0) AS cross_rack_share,
    topics,
    cost,
    currency
FROM days
