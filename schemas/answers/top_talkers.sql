-- kind: answer
-- grain: one row per UTC day of the last week, principal and program
-- area: quotas
-- level: sampled_log
-- question: Largest clients. Who writes and who reads most bytes in a day, and what does that cost?
-- description: Who produces and who consumes most bytes on a day, which part crosses racks, and what
--   it costs at the prices of conf today. traffic_of_clients has each client id of a program, with
--   all its topics. Reads of share groups have no bytes in the log, and no row: see share_fetches.
-- key: cluster_id, day, principal, client_id
-- time: day
-- clustering: day
-- lookbacks:
--   traffic: 8 d
--   fetch_sizes: 7 d
-- columns:
--   from topics: cluster_id
--   day TIMESTAMP: start of the UTC day
--   produced_rank BIGINT: rank by produced_bytes on that day; 1 produced most
--   consumed_rank BIGINT: rank by consumed_bytes on that day; 1 consumed most
--   talker_rank BIGINT: rank by both together
--   principal STRING: principal, as Kafka prints it
--   client_id STRING: client.id as the client gave it: untrusted text; of several ids of one
--     program what they share, with * for what varies: producer-*
--   client_ids BIGINT: client ids of the program on that day
--   is_internal BOOLEAN: a program of brokers or of this pipeline
--     (protected_principals.is_internal)
--   produced_bytes BIGINT: record bytes produced
--   produced_topic STRING: topic with a known name that got most of produced_bytes; null: none
--   consumed_bytes BIGINT: record bytes consumed
--   consumed_topic STRING: topic with a known name that most of consumed_bytes came from; null: none
--   share DOUBLE: its part of all bytes of the cluster on that day, 0 to 1
--   cross_rack_bytes BIGINT: bytes known to have crossed racks
--   unknown_rack_bytes BIGINT: bytes for which the rack of the client or broker is not known
--   cross_rack_share DOUBLE: cross_rack_bytes / bytes with known racks, 0 to 1; null: there are
--     none
--   topics BIGINT: topics with a known name
--   cost DOUBLE: cost of the bytes and of those known to have crossed racks, in currency; what has
--     no price in conf adds nothing; null: conf has no price, or a price of bytes across racks alone
--     and the racks of no byte are known (unknown_rack_bytes is all bytes)
--   currency STRING: currency of the prices, as conf names it

WITH newest AS (
    SELECT cluster_id, max(hour) AS newest_hour
    FROM traffic_of_clients
    GROUP BY cluster_id
),
moved AS (
    SELECT
        *,
        dense_rank() OVER (
            PARTITION BY cluster_id, day, principal, client_pattern, direction, topic IS NULL
            ORDER BY topic_bytes DESC, topic
        ) AS topic_rank
    FROM (
        SELECT
            *,
            sum(bytes) OVER (
                PARTITION BY cluster_id, day, principal, client_pattern, direction, topic
            ) AS topic_bytes
        FROM (
            SELECT
                *,
                date_trunc('DAY', hour) AS day,
                program_of(client_id) AS client_pattern
            FROM traffic_of_clients
        ) AS each_client
    ) AS of_topics
),
days AS (
    SELECT
        moved.cluster_id,
        day,
        principal,
        CASE WHEN count(DISTINCT client_id) > 1 THEN client_pattern ELSE max(client_id) END
            AS client_id,
        count(DISTINCT client_id) AS client_ids,
        sum(CASE WHEN direction = 'produced' THEN bytes END) AS produced_bytes,
        sum(CASE WHEN direction = 'consumed' THEN bytes END) AS consumed_bytes,
        max(CASE WHEN direction = 'produced' AND topic_rank = 1 THEN topic END) AS produced_topic,
        max(CASE WHEN direction = 'consumed' AND topic_rank = 1 THEN topic END) AS consumed_topic,
        sum(bytes) AS bytes,
        sum(cross_rack_bytes) AS cross_rack_bytes,
        sum(unknown_rack_bytes) AS unknown_rack_bytes,
        count(DISTINCT topic) AS topics
    FROM moved
    INNER JOIN newest USING (cluster_id)
    -- Seven whole days and the newest one.
    WHERE unix_millis(hour) >= unix_millis(date_trunc('DAY', newest_hour)) - 604800000
    GROUP BY moved.cluster_id, day, principal, client_pattern
),
priced AS (
    SELECT
        days.*,
        produced_bytes * produced_per_gib / 1073741824e0 AS produced_cost,
        consumed_bytes * consumed_per_gib / 1073741824e0 AS consumed_cost,
        CASE
            WHEN bytes > unknown_rack_bytes
                THEN cross_rack_bytes * cross_rack_per_gib / 1073741824e0
        END AS cross_rack_cost,
        currency
    FROM days
    LEFT JOIN current_prices AS prices USING (cluster_id)
)

SELECT
    *,
    rank() OVER (
        PARTITION BY priced.cluster_id, day ORDER BY coalesce(produced_bytes, 0) DESC
    ) AS produced_rank,
    rank() OVER (
        PARTITION BY priced.cluster_id, day ORDER BY coalesce(consumed_bytes, 0) DESC
    ) AS consumed_rank,
    rank() OVER (PARTITION BY priced.cluster_id, day ORDER BY bytes DESC) AS talker_rank,
    coalesce(protected.is_internal, false) AS is_internal,
    coalesce(produced_bytes, 0) AS produced_bytes,
    coalesce(consumed_bytes, 0) AS consumed_bytes,
    CAST(bytes AS DOUBLE) / sum(bytes) OVER (PARTITION BY priced.cluster_id, day) AS share,
    CAST(cross_rack_bytes AS DOUBLE) / nullif(bytes - unknown_rack_bytes, 0) AS cross_rack_share,
    CASE
        WHEN coalesce(produced_cost, consumed_cost, cross_rack_cost) IS NOT NULL
            THEN coalesce(produced_cost, 0e0) + coalesce(consumed_cost, 0e0)
                + coalesce(cross_rack_cost, 0e0)
    END AS cost
FROM priced
LEFT JOIN protected_principals AS protected USING (cluster_id, principal)
