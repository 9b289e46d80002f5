WITH newest AS (
    SELECT cluster_id, max(hour) AS hour
    FROM rack_traffic_by_hour
    GROUP BY cluster_id
)

SELECT
    moved.cluster_id,
    moved.flow,
    moved.client_rack,
    moved.broker_rack,
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
INNER JOIN newest ON moved.cluster_id = newest.cluster_id
WHERE unix_millis(moved.hour) > unix_millis(newest.hour) - 86400000
GROUP BY moved.cluster_id, moved.flow, moved.client_rack, moved.broker_rack
