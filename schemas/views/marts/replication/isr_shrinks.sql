-- kind: mart
-- grain: one row per shrink of an ISR, and broker with a replica of the partition
-- area: replication
-- level: sampled_log
-- question: Shrunk partitions. When did partitions have fewer replicas in sync, and when again all?
-- description: When a leader requested fewer in-sync replicas (ALTER_PARTITION) than before and than
--   the partition should have. With fewer than min_in_sync, writes that are to reach all of them fail.
--   The number before comes from earlier requests and the last snapshot; without one the view shows no
--   shrink. A broker counts if it was in sync before or after, or had a replica by the snapshots of that
--   time or by the last move requested, unless a move had removed it.
-- history: reassignment_changes
-- columns:
--   from reassignment_changes: cluster_id
--   event_time: when the broker or controller completed the request
--   from reassignment_changes: topic_id
--   topic: name of the topic; null: not known
--   from reassignment_changes: partition
--   broker_id: broker with a replica of the partition
--   in_sync_before: replicas in sync before
--   in_sync: replicas in sync after the request
--   ended_at: when more replicas were in sync again, as the next report or the last snapshot has it; null:
--     not yet
--   replicas: replicas that the partition should have: by the last move requested, or else by the last
--     snapshot, or else in_sync_before
--   min_in_sync: min.insync.replicas of the topic, or else of the brokers, or else Kafka's default of 1
WITH leader_reports AS (
    SELECT
        *,
        replica_id + 0 AS node
    FROM reassignment_changes
    WHERE change = 'in_sync' AND error_code IN (0, 108)
),
moves AS (
    SELECT
        changes.cluster_id,
        coalesce(changes.topic_id, topic_ids.topic_id) AS topic_id,
        changes.partition,
        changes.event_time,
        -- Null where a move was called off.
        changes.replica_id + 0 AS node
    FROM reassignment_changes AS changes
    LEFT JOIN topic_ids USING (cluster_id, topic)
    WHERE changes.change IN ('requested', 'cancelled') AND changes.error_code = 0
),
targets AS (
    SELECT
        cluster_id, topic_id, partition, event_time, count(*) AS replicas, array_agg(node) AS nodes
    FROM moves
    WHERE node IS NOT NULL
    GROUP BY cluster_id, topic_id, partition, event_time
),
replicas_seen AS (
    SELECT
        cluster_id,
        topic_id,
        partition,
        broker_id + 0 AS node,
        min(valid_from) AS seen_from,
        CASE WHEN count(valid_to) = count(*) THEN max(valid_to) END AS seen_to
    FROM replica_history
    GROUP BY cluster_id, topic_id, partition, broker_id
),
states AS (
    SELECT
        cluster_id,
        topic_id,
        partition,
        event_time,
        'leader' AS source,
        count(DISTINCT node) AS in_sync,
        array_agg(DISTINCT node) AS nodes
    FROM leader_reports
    GROUP BY cluster_id, topic_id, partition, event_time
    UNION ALL
    SELECT
        cluster_id,
        topic_id,
        partition,
        max(valid_from) AS event_time,
        'snapshot' AS source,
        count(CASE WHEN is_in_sync THEN 1 END) AS in_sync,
        array_agg(CASE WHEN is_in_sync THEN broker_id + 0 END) AS nodes
    FROM current_replicas
    GROUP BY cluster_id, topic_id, partition
    UNION ALL
    SELECT
        cluster_id,
        topic_id,
        partition,
        event_time,
        'move' AS source,
        count(node) AS in_sync,
        array_agg(node) AS nodes
    FROM moves
    GROUP BY cluster_id, topic_id, partition, event_time
),
in_order AS (
    SELECT
        *,
        lag(in_sync) OVER of_source AS in_sync_before,
        lag(nodes) OVER of_source AS nodes_before,
        lead(in_sync) OVER of_source AS in_sync_after,
        lead(event_time) OVER of_source AS after,
        max(CASE WHEN source = 'move' THEN event_time END) OVER of_partition AS move_time,
        max(CASE WHEN source = 'snapshot' THEN event_time END) OVER of_partition AS seen_time
    FROM states
    WINDOW
        of_source AS (
            PARTITION BY cluster_id, topic_id, partition, source = 'move'
            ORDER BY event_time, source
        ),
        of_partition AS (PARTITION BY cluster_id, topic_id, partition ORDER BY event_time)
),
min_isr AS (
    SELECT
        cluster_id,
        entity_type,
        CASE WHEN entity_type = 'topic' THEN entity_name ELSE '' END AS topic,
        max(CAST(config_value AS BIGINT)) AS min_in_sync
    FROM current_configs
    WHERE config_key = 'min.insync.replicas' AND entity_type IN ('topic', 'broker')
    GROUP BY ALL
),
assigned AS (
    SELECT cluster_id, topic_id, partition, count(*) AS replicas
    FROM current_replicas
    GROUP BY cluster_id, topic_id, partition
),
shrunk AS (
    SELECT
        in_order.*,
        CASE WHEN in_order.in_sync_after > in_order.in_sync THEN in_order.after END AS ended_at,
        names.topic,
        targets.nodes AS targets,
        targets.event_time AS target_time,
        coalesce(targets.replicas, assigned.replicas, in_order.in_sync_before) AS replicas,
        coalesce(of_topic.min_in_sync, of_brokers.min_in_sync, 1) AS min_in_sync
    FROM in_order
    LEFT JOIN assigned USING (cluster_id, topic_id, partition)
    LEFT JOIN topic_ids AS names USING (cluster_id, topic_id)
    LEFT JOIN targets
        ON in_order.cluster_id = targets.cluster_id
            AND in_order.topic_id = targets.topic_id
            AND in_order.partition = targets.partition
            AND in_order.move_time = targets.event_time
    LEFT JOIN min_isr AS of_topic
        ON in_order.cluster_id = of_topic.cluster_id
            AND names.topic = of_topic.topic
            AND of_topic.entity_type = 'topic'
    LEFT JOIN min_isr AS of_brokers
        ON in_order.cluster_id = of_brokers.cluster_id AND of_brokers.entity_type = 'broker'
    WHERE
        -- When it came to what a snapshot saw is not known: a snapshot comes later.
        in_order.source = 'leader'
        AND in_order.in_sync < in_order.in_sync_before
        AND in_order.in_sync
            < coalesce(targets.replicas, assigned.replicas, in_order.in_sync_before)
),
candidates AS (
    SELECT cluster_id, topic_id, partition, node
    FROM leader_reports
    UNION
    SELECT cluster_id, topic_id, partition, node
    FROM moves
    UNION
    SELECT cluster_id, topic_id, partition, node
    FROM replicas_seen
)

SELECT
    *,
    candidates.node AS broker_id
FROM shrunk
INNER JOIN candidates USING (cluster_id, topic_id, partition)
LEFT JOIN replicas_seen USING (cluster_id, topic_id, partition, node)
WHERE
    array_contains(shrunk.nodes, candidates.node)
    -- Once all replicas of a move are in sync, the controller removes the others. No leader reports it.
    OR (
        array_contains(shrunk.nodes_before, candidates.node)
        AND coalesce(cardinality(array_except(shrunk.targets, shrunk.nodes_before)) > 0, true)
    )
    -- A request has the replicas until a later snapshot has them.
    OR (
        array_contains(shrunk.targets, candidates.node)
        AND (shrunk.seen_time IS NULL OR shrunk.seen_time < shrunk.target_time)
    )
    -- A replica that no snapshot saw arrive since the request of a move may have left by it.
    OR (
        replicas_seen.seen_from <= shrunk.event_time
        AND (replicas_seen.seen_to IS NULL OR replicas_seen.seen_to > shrunk.event_time)
        AND (
            shrunk.targets IS NULL
            OR array_contains(shrunk.targets, candidates.node)
            OR replicas_seen.seen_from > shrunk.target_time
        )
    )
