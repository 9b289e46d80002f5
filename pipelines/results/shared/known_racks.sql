-- Racks that brokers have, each from when one had it. A row without a rack: from then on some broker
-- names none, so that any rack may be one of the cluster.
SELECT cluster_id, rack, min(since) AS since
FROM broker_racks
WHERE is_known OR rack IS NOT NULL
GROUP BY ALL
