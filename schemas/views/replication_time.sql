-- One row per cluster: the last minute of which replication is known.
SELECT cluster_id, max(event_time) AS event_time
FROM (
    SELECT cluster_id, event_time FROM replication_traffic
    UNION ALL
    SELECT cluster_id, event_time FROM replication_throttles
) AS seen
GROUP BY cluster_id
