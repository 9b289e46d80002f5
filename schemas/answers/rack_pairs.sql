-- kind: answer
-- grain: one row per flow, rack of the client and rack of the broker, over the last day
-- area: racks
-- level: sampled_log
-- description: Record bytes between racks, and what they cost at the prices of conf today (see
--   rack_traffic_by_hour).
-- key: cluster_id, flow, client_rack, broker_rack
-- time: until
-- clustering: until, flow
-- lookbacks:
--   rack_traffic: 2 d
--   preferred_replicas: 2 d
-- columns:
--   from requests: cluster_id
--   flow STRING: produced, consumed, or replicated (read by a follower from the leader)
--   client_rack STRING: rack of the other side: a consumer's client.rack, the broker.rack of a
--     follower, else the rack that conf gives the client's address or id; null: not known
--   broker_rack STRING: broker.rack of it
--   requests BIGINT: requests with records
--   bytes BIGINT: record bytes, as compressed by the producer
--   cross_rack_bytes BIGINT: bytes, where client_rack and broker_rack differ; null: one of them is
--     not known
--   avoidable_bytes BIGINT: those of cross_rack_bytes that consumers would read in their own rack
--     from the replica recommended to them (preferred_replicas); null for other flows, or not known
--   cross_rack_cost DOUBLE: cost of cross_rack_bytes, in currency; null: conf has no price, or
--     bytes are not known
--   avoidable_cost DOUBLE: cost of avoidable_bytes, in currency; null: conf has no price, or bytes
--     are not known
--   currency STRING: currency of the prices, as conf names it
--   since TIMESTAMP: first hour with such bytes
--   until TIMESTAMP: last hour with such bytes

WITH newest AS (
    SELECT cluster_id, max(hour) AS hour
    FROM rack_traffic_by_hour
    GROUP BY cluster_id
)

SELECT
    *,
    sum(moved.requests) AS requests,
    sum(moved.bytes) AS bytes,
    sum(moved.cross_rack_bytes) AS cross_rack_bytes,
    sum(moved.avoidable_bytes) AS avoidable_bytes,
    sum(moved.cross_rack_cost) AS cross_rack_cost,
    sum(moved.avoidable_cost) AS avoidable_cost,
    max(moved.currency) AS currency,
    min(moved.hour) AS since,
    max(moved.hour) AS until
FROM rack_traffic_by_hour AS moved
INNER JOIN newest USING (cluster_id)
WHERE unix_millis(moved.hour) > unix_millis(newest.hour) - 86400000
GROUP BY ALL
