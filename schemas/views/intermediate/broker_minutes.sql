-- kind: intermediate
-- grain: one row per minute, broker and side
-- area: replication
-- level: sampled_log
-- description: Record bytes that a broker sends (side leader: to consumers and followers) or takes
--   (side follower: from producers and leaders), and which part of them no list of throttled replicas
--   covers (KIP-73).
-- columns:
--   from replication_traffic: cluster_id, event_time
--   broker_id: broker that sent or took the bytes
--   side: leader: the broker is read from; follower: it is written to, or reads as a follower
--   bytes: record bytes in the minute
--   other_bytes: those of them that no list of throttled replicas covers
WITH moved AS (
    SELECT
        cluster_id,
        event_time,
        broker_id + 0 AS node,
        CASE WHEN flow = 'produced' THEN 'follower' ELSE 'leader' END AS side,
        bytes + 0 AS bytes,
        bytes + 0 AS other_bytes
    FROM rack_traffic
    WHERE flow <> 'replicated'
    UNION ALL
    SELECT
        cluster_id,
        event_time,
        leader_id + 0 AS node,
        'leader' AS side,
        bytes + 0 AS bytes,
        bytes - coalesce(leader_throttled_bytes, 0) AS other_bytes
    FROM replication_traffic
    WHERE follower_id IS NOT NULL
    UNION ALL
    SELECT
        cluster_id,
        event_time,
        follower_id + 0 AS node,
        'follower' AS side,
        bytes + 0 AS bytes,
        bytes - coalesce(follower_throttled_bytes, 0) AS other_bytes
    FROM replication_traffic
    WHERE follower_id IS NOT NULL
)

SELECT
    *,
    node AS broker_id,
    sum(bytes) AS bytes,
    sum(other_bytes) AS other_bytes
FROM moved
GROUP BY ALL
