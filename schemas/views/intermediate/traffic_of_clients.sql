-- kind: intermediate
-- grain: one row per hour, principal, client id, topic and direction
-- area: quotas
-- level: sampled_log
-- description: Record bytes that each client id produced and consumed. Views by program and lists of
--   costs read it.
-- columns:
--   from traffic: cluster_id
--   hour: start of the hour
--   from traffic: principal, client_id
--   topic: name of the topic; null: not known
--   unnamed_topic_id: id of the topic if its name is not known; null otherwise
--   from traffic: direction, bytes
--   cross_rack_bytes: bytes known to have crossed racks: a least value where unknown_rack_bytes is more
--     than 0
--   unknown_rack_bytes: bytes for which one of the racks is not known
SELECT
    *,
    date_trunc('HOUR', event_time) AS hour,
    CASE WHEN topic IS NULL THEN topic_id END AS unnamed_topic_id,
    sum(bytes) AS bytes,
    sum(coalesce(cross_rack_bytes, 0)) AS cross_rack_bytes,
    sum(CASE WHEN cross_rack_bytes IS NULL THEN bytes ELSE 0 END) AS unknown_rack_bytes
FROM traffic
GROUP BY ALL
