-- kind: staging
-- grain: one row per broker and period in which its state did not change
-- area: cluster
-- level: admin_api
-- description: The states of each broker over time, as snapshots saw them. A change between two
--   snapshots counts from the later one.
-- columns:
--   from brokers: cluster_id, broker_id, host, port, rack, is_controller, is_fenced
--   valid_from: time of the snapshot that saw this state first
--   valid_to: time of the snapshot that saw the next state; null: the last snapshot still found this
--     one
WITH changes AS (
    SELECT
        *,
        lead(event_time) OVER (
            PARTITION BY cluster_id, broker_id ORDER BY event_time
        ) AS valid_to
    FROM brokers
)

SELECT
    *,
    event_time AS valid_from
FROM changes
WHERE NOT is_removed
