-- kind: mart
-- grain: one row per hour, flow, rack of the client and rack of the broker
-- area: racks
-- level: sampled_log
-- question: Traffic between racks. How many bytes cross racks, and which of them could be spared?
-- description: Record bytes between racks, and what they cost at the prices of conf today.
-- columns:
--   from rack_traffic: cluster_id
--   hour: start of the hour
--   from rack_traffic: flow, client_rack, is_rack_inferred, broker_rack, requests, bytes,
--     cross_rack_bytes
--   avoidable_bytes: those of cross_rack_bytes that consumers would read in their own rack from the
--     replica recommended to them (preferred_replicas). It is a least value: reads without a known
--     recommendation add nothing. Null for other flows, or not known
--   cross_rack_cost: cost of cross_rack_bytes, in currency; null: conf has no price, or bytes are not
--     known
--   avoidable_cost: cost of avoidable_bytes, in currency; null: conf has no price, or bytes are not
--     known
--   from current_prices: currency
WITH moved AS (
    SELECT
        cluster_id,
        date_trunc('HOUR', event_time) AS hour,
        flow,
        client_rack,
        is_rack_inferred,
        broker_rack,
        sum(requests) AS requests,
        sum(bytes) AS bytes,
        sum(cross_rack_bytes) AS cross_rack_bytes
    FROM rack_traffic
    GROUP BY cluster_id, date_trunc('HOUR', event_time), flow, client_rack, is_rack_inferred, broker_rack
),
avoidable AS (
    SELECT
        cluster_id,
        date_trunc('HOUR', event_time) AS hour,
        client_rack,
        is_rack_inferred,
        broker_rack,
        sum(avoidable_bytes) AS avoidable_bytes
    FROM preferred_replicas
    GROUP BY cluster_id, date_trunc('HOUR', event_time), client_rack, is_rack_inferred, broker_rack
)

SELECT
    *,
    moved.cluster_id,
    moved.hour,
    moved.client_rack,
    moved.is_rack_inferred,
    moved.broker_rack,
    moved.cross_rack_bytes * prices.cross_rack_per_gib / 1073741824.0 AS cross_rack_cost,
    avoidable.avoidable_bytes * prices.cross_rack_per_gib / 1073741824.0 AS avoidable_cost
FROM moved
LEFT JOIN avoidable
    ON moved.flow = 'consumed'
        AND moved.cluster_id = avoidable.cluster_id
        AND moved.hour = avoidable.hour
        AND moved.client_rack = avoidable.client_rack
        AND moved.is_rack_inferred = avoidable.is_rack_inferred
        AND moved.broker_rack = avoidable.broker_rack
LEFT JOIN current_prices AS prices ON moved.cluster_id = prices.cluster_id
