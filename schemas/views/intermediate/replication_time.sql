-- kind: intermediate
-- grain: one row per cluster
-- area: replication
-- level: sampled_log
-- description: The newest minute with data about replication. Other views count back from it.
-- history: replication_throttles
-- columns:
--   from replication_traffic: cluster_id
--   event_time: start of the newest minute
SELECT cluster_id, max(event_time) AS event_time
FROM (
    SELECT cluster_id, event_time FROM replication_traffic
    UNION ALL
    SELECT cluster_id, event_time FROM replication_throttles
) AS minutes
GROUP BY cluster_id
