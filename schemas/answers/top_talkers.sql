-- kind: answer
-- grain: one row per UTC day of the last week, principal and program
-- area: quotas
-- level: sampled_log
-- question: Largest clients. Who moves most bytes in a day, and what does that cost?
-- description: Who moves most bytes on a day, which part crosses racks, and what it costs at the
--   prices of conf today.
-- key: cluster_id, day, principal, client_id
-- time: day
-- clustering: day
-- lookbacks:
--   traffic: 8 d
--   fetch_sizes: 7 d
-- columns:
--   from topics: cluster_id
--   day TIMESTAMP: start of the UTC day
--   talker_rank BIGINT: rank by bytes on that day; 1 moved most
--   principal STRING: principal, as Kafka prints it
--   client_id STRING: client.id as the client gave it: untrusted text; of several ids of one
--     program what they share, with * for what varies: producer-*
--   client_ids BIGINT: client ids of the program on that day
--   is_internal BOOLEAN: a program of brokers or of this pipeline
--     (protected_principals.is_internal)
--   produced_bytes BIGINT: record bytes produced
--   consumed_bytes BIGINT: record bytes consumed
--   share DOUBLE: its part of all bytes of the cluster on that day, 0 to 1
--   cross_rack_bytes BIGINT: bytes known to have crossed racks
--   unknown_rack_bytes BIGINT: bytes for which the rack of the client or broker is not known
--   cross_rack_share DOUBLE: cross_rack_bytes / bytes with known racks, 0 to 1; null: there are
--     none
--   topics BIGINT: topics with a known name
--   cost DOUBLE: cost of the bytes and of those known to have crossed racks, in currency; what has
--     no price in conf adds nothing; null: conf has no price
--   currency STRING: currency of the prices, as conf names it

WITH newest AS (
    SELECT cluster_id, max(hour) AS newest_hour
    FROM traffic_by_hour
    GROUP BY cluster_id
),
moved AS (
    SELECT *, program_of(client_id) AS client_pattern FROM traffic_by_hour
),
days AS (
    SELECT
        moved.cluster_id,
        date_trunc('DAY', hour) AS day,
        principal,
        CASE WHEN count(DISTINCT client_id) > 1 THEN client_pattern ELSE max(client_id) END
            AS client_id,
        count(DISTINCT client_id) AS client_ids,
        sum(CASE WHEN direction = 'produced' THEN bytes ELSE 0 END) AS produced_bytes,
        sum(CASE WHEN direction = 'consumed' THEN bytes ELSE 0 END) AS consumed_bytes,
        sum(bytes) AS bytes,
        sum(cross_rack_bytes) AS cross_rack_bytes,
        sum(unknown_rack_bytes) AS unknown_rack_bytes,
        count(DISTINCT topic) AS topics,
        sum(cost) AS cost,
        max(currency) AS currency
    FROM moved
    INNER JOIN newest ON moved.cluster_id = newest.cluster_id
    -- Seven whole days and the newest one.
    WHERE unix_millis(hour) >= unix_millis(date_trunc('DAY', newest_hour)) - 604800000
    GROUP BY moved.cluster_id, date_trunc('DAY', hour), principal, client_pattern
)

SELECT
    days.cluster_id,
    day,
    rank() OVER (PARTITION BY days.cluster_id, day ORDER BY bytes DESC) AS talker_rank,
    days.principal,
    client_id,
    client_ids,
    coalesce(protected.is_internal, false) AS is_internal,
    produced_bytes,
    consumed_bytes,
    CAST(bytes AS DOUBLE) / sum(bytes) OVER (PARTITION BY days.cluster_id, day) AS share,
    cross_rack_bytes,
    unknown_rack_bytes,
    CAST(cross_rack_bytes AS DOUBLE) / nullif(bytes - unknown_rack_bytes, 0) AS cross_rack_share,
    topics,
    cost,
    currency
FROM days
LEFT JOIN protected_principals AS protected
    ON days.cluster_id = protected.cluster_id AND days.principal = protected.principal
