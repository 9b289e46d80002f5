-- kind: intermediate
-- grain: one row per broker, side, partition and (on the leader's side) follower
-- area: replication
-- level: sampled_log
-- description: Replication in the last ten minutes that a list of throttled replicas still covers
--   (KIP-73), and how much is written into each partition. Brokers charge all replication that a list
--   covers, in sync or not, so a rate must be at least this high.
-- history: replication_throttles
-- columns:
--   from replication_throttles: cluster_id, broker_id, side, topic, partition
--   follower_id: follower that reads from the broker; null on the follower's side, which takes each
--     write once, from any leader
--   from partition_write_rates: written_bytes_per_s
--   is_behind: the follower was out of sync at some time in the ten minutes
--   is_added: the follower was out of sync while a move adds it
WITH recent AS (
    SELECT
        throttles.*,
        CASE
            WHEN throttles.event_time = newest.event_time AND throttles.is_configured THEN 1 ELSE 0
        END AS is_listed_now,
        CASE WHEN throttles.listed = 'wildcard' THEN -1 ELSE throttles.partition END AS entry_partition,
        CASE WHEN throttles.listed = 'wildcard' THEN -1 ELSE throttles.broker_id END AS entry_broker
    FROM replication_throttles AS throttles
    INNER JOIN replication_time AS newest USING (cluster_id)
    WHERE
        throttles.topic IS NOT NULL
        AND throttles.listed <> 'unlisted'
        AND unix_micros(throttles.event_time) > unix_micros(newest.event_time) - 600000000
),
entries AS (
    SELECT
        *,
        max(is_listed_now) OVER (
            PARTITION BY cluster_id, topic, side, entry_partition, entry_broker
        ) AS is_in_list
    FROM recent
),
pairs AS (
    SELECT
        cluster_id,
        broker_id,
        side,
        topic,
        partition,
        -- The leader may change, but a follower takes each write only once.
        CASE WHEN side = 'leader' THEN peer_broker_id END AS follower_id,
        max(CASE WHEN NOT in_isr THEN 1 ELSE 0 END) = 1 AS is_behind,
        max(CASE WHEN is_moving AND NOT in_isr THEN 1 ELSE 0 END) = 1 AS is_added
    FROM entries
    WHERE is_in_list = 1 AND peer_broker_id IS NOT NULL
    GROUP BY ALL
)

SELECT
    *,
    coalesce(writes.written_bytes_per_s, 0e0) AS written_bytes_per_s
FROM pairs
LEFT JOIN partition_write_rates AS writes USING (cluster_id, topic, partition)
