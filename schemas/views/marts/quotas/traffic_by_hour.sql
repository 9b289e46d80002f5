-- kind: mart
-- grain: one row per hour, principal, client, topic and direction
-- description: Record bytes that clients produced and consumed, and their cost at the prices of conf
--   today. Bytes cross racks if the consumer names its rack and the broker has another, by the snapshot
--   of that time or the first one after it.
-- columns:
--   from traffic: cluster_id
--   hour: start of the hour
--   from traffic: principal, client_id
--   topic: name of the topic; null: not known
--   unnamed_topic_id: id of the topic if its name is not known; null otherwise
--   from traffic: direction, bytes
--   cross_rack_bytes: bytes that crossed racks
--   unknown_rack_bytes: bytes for which one of the racks is not known, as for all producers
--   cross_rack_share: cross_rack_bytes / bytes with known racks, 0 to 1; null: there are none
--   cost: cost of the bytes and of those that crossed racks, in currency; null: conf has no prices
--   from current_prices: currency
WITH racks AS (
    SELECT
        cluster_id,
        broker_id,
        rack,
        valid_to,
        CASE
            WHEN
                lag(valid_from) OVER (
                    PARTITION BY cluster_id, broker_id ORDER BY valid_from
                ) IS NOT NULL
                THEN valid_from
        END AS valid_from
    FROM broker_history
),
with_racks AS (
    SELECT
        traffic.cluster_id,
        date_trunc('HOUR', traffic.event_time) AS hour,
        traffic.principal,
        traffic.client_id,
        coalesce(traffic.topic, topic_ids.topic) AS topic,
        traffic.topic_id,
        traffic.direction,
        traffic.bytes,
        CASE WHEN traffic.client_rack <> racks.rack THEN traffic.bytes ELSE 0 END AS cross_rack_bytes,
        CASE
            WHEN traffic.client_rack IS NULL OR racks.rack IS NULL THEN traffic.bytes ELSE 0
        END AS unknown_rack_bytes
    FROM traffic
    LEFT JOIN racks
        ON traffic.cluster_id = racks.cluster_id
            AND traffic.broker_id = racks.broker_id
            AND (racks.valid_from IS NULL OR traffic.event_time >= racks.valid_from)
            AND (racks.valid_to IS NULL OR traffic.event_time < racks.valid_to)
    LEFT JOIN topic_ids
        ON traffic.cluster_id = topic_ids.cluster_id AND traffic.topic_id = topic_ids.topic_id
),
hours AS (
    SELECT
        cluster_id,
        hour,
        principal,
        client_id,
        topic,
        CASE WHEN topic IS NULL THEN topic_id END AS unnamed_topic_id,
        direction,
        sum(bytes) AS bytes,
        sum(cross_rack_bytes) AS cross_rack_bytes,
        sum(unknown_rack_bytes) AS unknown_rack_bytes
    FROM with_racks
    GROUP BY
        cluster_id,
        hour,
        principal,
        client_id,
        topic,
        CASE WHEN topic IS NULL THEN topic_id END,
        direction
)

SELECT
    hours.cluster_id,
    hours.hour,
    hours.principal,
    hours.client_id,
    hours.topic,
    hours.unnamed_topic_id,
    hours.direction,
    hours.bytes,
    hours.cross_rack_bytes,
    hours.unknown_rack_bytes,
    CAST(hours.cross_rack_bytes AS DOUBLE) / nullif(hours.bytes - hours.unknown_rack_bytes, 0)
        AS cross_rack_share,
    (
        hours.bytes * CASE
            WHEN hours.direction = 'produced' THEN prices.produced_per_gib
            ELSE prices.consumed_per_gib
        END
        + hours.cross_rack_bytes * prices.cross_rack_per_gib
    ) / 1073741824.0 AS cost,
    prices.currency
FROM hours
LEFT JOIN current_prices AS prices ON hours.cluster_id = prices.cluster_id
