-- kind: intermediate
-- grain: one row per minute and side of a replication that the throttle of its other side limits
-- area: replication
-- level: sampled_log
-- description: Sides of replications that need no throttle of their own (KIP-73): the list of the other
--   side names the replica and a rate is set there, and the slower side sets the pace.
-- history: replication_throttles
-- columns:
--   from replication_throttles: cluster_id, event_time, topic, partition, side, broker_id, peer_broker_id
--   is_limited_there: true in all rows
SELECT
    cluster_id,
    event_time,
    topic,
    partition,
    CASE side WHEN 'leader' THEN 'follower' ELSE 'leader' END AS side,
    peer_broker_id AS broker_id,
    broker_id AS peer_broker_id,
    true AS is_limited_there
FROM replication_throttles
WHERE topic IS NOT NULL AND peer_broker_id IS NOT NULL
    AND listed <> 'unlisted' AND is_configured AND is_effective
