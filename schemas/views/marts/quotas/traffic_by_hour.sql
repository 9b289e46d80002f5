-- kind: mart
-- grain: one row per hour, principal, program, topic and direction
-- area: quotas
-- level: sampled_log
-- question: Traffic. Who writes and reads each topic, and how many bytes?
-- description: Record bytes that clients produced and consumed, and their cost at the prices of conf
--   today. Racks are those of table traffic. Reads of share groups have no bytes in the log, and no
--   row: see share_fetches.
-- columns:
--   from traffic_of_clients: cluster_id
--   hour: start of the hour
--   from traffic_of_clients: principal
--   client_id: client.id, as the client gave it; of several ids of one program what they share, with *
--     for what varies: producer-*
--   client_ids: client ids of the program in the hour
--   topic: name of the topic; null: not known
--   unnamed_topic_id: id of the topic if its name is not known; null otherwise
--   from traffic_of_clients: direction, bytes
--   cross_rack_bytes: bytes known to have crossed racks: a least value where unknown_rack_bytes is more
--     than 0
--   unknown_rack_bytes: bytes for which one of the racks is not known
--   cross_rack_share: cross_rack_bytes / bytes with known racks, 0 to 1; null: there are none
--   moved_cost: cost of bytes by prices.produced_per_gib or prices.consumed_per_gib, in currency; null:
--     conf has no such price
--   cross_rack_cost: cost of cross_rack_bytes by prices.cross_rack_per_gib, in currency; null: conf has
--     no such price, or the racks of no byte are known (unknown_rack_bytes is bytes)
--   cost: moved_cost and cross_rack_cost; what is null of them adds nothing; null: both are
--   from current_prices: currency
WITH hours AS (
    SELECT
        cluster_id,
        hour,
        principal,
        CASE WHEN count(DISTINCT client_id) > 1 THEN client_pattern ELSE max(client_id) END
            AS client_id,
        count(DISTINCT client_id) AS client_ids,
        topic,
        unnamed_topic_id,
        direction,
        sum(bytes) AS bytes,
        sum(cross_rack_bytes) AS cross_rack_bytes,
        sum(unknown_rack_bytes) AS unknown_rack_bytes
    FROM (SELECT *, program_of(client_id) AS client_pattern FROM traffic_of_clients) AS clients
    GROUP BY
        cluster_id,
        hour,
        principal,
        client_pattern,
        topic,
        unnamed_topic_id,
        direction
),
priced AS (
    SELECT
        hours.*,
        hours.bytes * CASE
            WHEN hours.direction = 'produced' THEN prices.produced_per_gib
            ELSE prices.consumed_per_gib
        END / 1073741824e0 AS moved_cost,
        CASE
            WHEN hours.bytes > hours.unknown_rack_bytes
                THEN hours.cross_rack_bytes * prices.cross_rack_per_gib / 1073741824e0
        END AS cross_rack_cost,
        prices.currency
    FROM hours
    LEFT JOIN current_prices AS prices USING (cluster_id)
)

SELECT
    *,
    CAST(cross_rack_bytes AS DOUBLE) / nullif(bytes - unknown_rack_bytes, 0) AS cross_rack_share,
    CASE
        WHEN moved_cost IS NOT NULL OR cross_rack_cost IS NOT NULL
            THEN coalesce(moved_cost, 0e0) + coalesce(cross_rack_cost, 0e0)
    END AS cost
FROM priced
