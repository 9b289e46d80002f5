-- kind: staging
-- grain: one row per broker
-- area: cluster
-- level: admin_api
-- question: Brokers. Which brokers are there, in which racks, and for how long?
-- description: The state of each broker in the last snapshot.
-- columns:
--   from brokers: cluster_id, broker_id, host, port, rack, is_controller, is_fenced
--   valid_from: time of the snapshot that saw this state first
SELECT
    *,
    event_time AS valid_from
FROM (
    SELECT
        *,
        row_number() OVER (
            PARTITION BY cluster_id, broker_id ORDER BY event_time DESC
        ) AS age
    FROM brokers
) AS aged
WHERE age = 1 AND NOT is_removed
