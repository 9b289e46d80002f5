-- kind: staging
-- grain: one row per broker
-- description: The state of each broker in the last snapshot.
-- columns:
--   from broker_history: cluster_id, broker_id, host, port, rack, is_controller, is_fenced, valid_from
SELECT
    cluster_id,
    broker_id,
    host,
    port,
    rack,
    is_controller,
    is_fenced,
    valid_from
FROM broker_history
WHERE valid_to IS NULL
