-- kind: intermediate
-- grain: one row per partition that is being moved and whose preferred leader will be another broker
-- area: racks
-- level: sampled_log
-- description: What the first replica of a move sends once it is in sync and leads
--   (auto.leader.rebalance.enable). Today leader_id sends it.
-- history: reassignment_changes, replication_throttles
-- columns:
--   from replication_throttles: cluster_id
--   broker_id: broker that will lead: the first replica of the last move requested
--   from replication_throttles: topic, partition
--   leader_id: broker that leads now
--   read_bytes_per_s: record bytes that consumers read from leader_id, per second of the busiest of the
--     last ten minutes
--   replicated_bytes_per_s: record bytes that the other replicas will read, per second: what is written
--     times their number
WITH recent AS (
    SELECT
        throttles.*,
        CASE WHEN throttles.event_time = newest.event_time THEN 1 ELSE 0 END AS is_last,
        CASE WHEN throttles.side = 'leader' THEN throttles.broker_id ELSE throttles.peer_broker_id END
            AS leader_id
    FROM replication_throttles AS throttles
    INNER JOIN replication_time AS newest USING (cluster_id)
    WHERE
        throttles.is_moving
        AND unix_micros(throttles.event_time) >= unix_micros(newest.event_time) - 60000000
),
leads AS (
    -- A follower under a throttle can fetch nothing in the part of a minute that the newest one is.
    SELECT
        cluster_id,
        topic,
        partition,
        max_by(
            leader_id, named_struct('event_time', event_time, 'leader_id', leader_id)
        ) AS leader_id
    FROM (
        SELECT *, max(is_last) OVER (PARTITION BY cluster_id, topic, partition) AS is_moved_now
        FROM recent
    ) AS moved
    WHERE is_moved_now = 1 AND peer_broker_id IS NOT NULL
    GROUP BY cluster_id, topic, partition
),
requested AS (
    SELECT
        cluster_id,
        topic,
        partition,
        max(CASE WHEN place = 0 THEN replica_id END) AS first_replica,
        count(*) AS replicas,
        row_number() OVER (PARTITION BY cluster_id, topic, partition ORDER BY event_time DESC) AS age
    FROM reassignment_changes
    WHERE change = 'requested' AND error_code = 0
    GROUP BY cluster_id, topic, partition, event_time
),
consumed AS (
    SELECT
        choices.cluster_id,
        choices.topic,
        choices.partition,
        choices.broker_id,
        choices.event_time,
        sum(choices.bytes) AS bytes
    FROM preferred_replicas AS choices
    INNER JOIN replication_time AS newest USING (cluster_id)
    WHERE unix_micros(choices.event_time) > unix_micros(newest.event_time) - 600000000
    GROUP BY ALL
),
reads AS (
    SELECT cluster_id, topic, partition, broker_id, max(bytes) / 60e0 AS read_bytes_per_s
    FROM consumed
    GROUP BY cluster_id, topic, partition, broker_id
)

SELECT
    leads.*,
    requested.first_replica AS broker_id,
    coalesce(reads.read_bytes_per_s, 0e0) AS read_bytes_per_s,
    coalesce(writes.written_bytes_per_s, 0e0) * (requested.replicas - 1) AS replicated_bytes_per_s
FROM leads
LEFT JOIN partition_write_rates AS writes USING (cluster_id, topic, partition)
INNER JOIN requested USING (cluster_id, topic, partition)
LEFT JOIN reads
    ON leads.cluster_id = reads.cluster_id
        AND leads.topic = reads.topic
        AND leads.partition = reads.partition
        AND leads.leader_id = reads.broker_id
WHERE requested.age = 1 AND requested.first_replica <> leads.leader_id
