-- One row per minute, broker and side: record bytes that it sent (leader: to consumers and followers)
-- or took (follower: from producers and leaders), and other_bytes, those of them that no list of
-- throttled replicas held (KIP-73).
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
    cluster_id,
    event_time,
    node AS broker_id,
    side,
    sum(bytes) AS bytes,
    sum(other_bytes) AS other_bytes
FROM moved
GROUP BY cluster_id, event_time, node, side
