-- kind: mart
-- grain: one row per shrink of an ISR to min.insync.replicas or below, and broker with a replica of the
--   partition
-- description: When a leader asked for fewer in-sync replicas (ALTER_PARTITION) than before and than
--   the partition should have, and no more than min.insync.replicas. The number before comes from
--   earlier requests and the last snapshot; without one the view shows no shrink. A broker counts if it
--   was in sync before or after, or had a replica by the snapshots of that time or by the last move
--   requested, unless a move had removed it.
-- columns:
--   from reassignment_changes: cluster_id
--   event_time: when the broker or controller completed the request
--   from reassignment_changes: topic_id
--   topic: name of the topic; null: not known
--   from reassignment_changes: partition
--   broker_id: broker with a replica of the partition
--   in_sync_before: replicas in sync before
--   in_sync: replicas in sync after the request
--   replicas: replicas that the partition should have: by the last move requested, or else by the last
--     snapshot, or else in_sync_before
--   min_in_sync: min.insync.replicas of the topic, or else of the brokers, or else Kafka's default of 1
WITH told AS (
    SELECT
        cluster_id,
        topic_id,
        partition,
        event_time,
        replica_id + 0 AS node
    FROM reassignment_changes
    WHERE change = 'in_sync' AND error_code IN (0, 108)
),
asked AS (
    SELECT
        changes.cluster_id,
        coalesce(changes.topic_id, topic_ids.topic_id) AS topic_id,
        changes.partition,
        changes.event_time,
        -- Null where a move was called off.
        changes.replica_id + 0 AS node
    FROM reassignment_changes AS changes
    LEFT JOIN topic_ids
        ON changes.cluster_id = topic_ids.cluster_id AND changes.topic = topic_ids.topic
    WHERE changes.change IN ('requested', 'cancelled') AND changes.error_code = 0
),
wanted AS (
    SELECT
        cluster_id, topic_id, partition, event_time, count(*) AS replicas, array_agg(node) AS nodes
    FROM asked
    WHERE node IS NOT NULL
    GROUP BY cluster_id, topic_id, partition, event_time
),
held AS (
    SELECT
        cluster_id,
        topic_id,
        partition,
        broker_id + 0 AS node,
        min(valid_from) AS held_from,
        CASE WHEN count(valid_to) = count(*) THEN max(valid_to) END AS held_to
    FROM replica_history
    GROUP BY cluster_id, topic_id, partition, broker_id
),
states AS (
    SELECT
        cluster_id,
        topic_id,
        partition,
        event_time,
        'leader' AS told_by,
        count(DISTINCT node) AS in_sync,
        array_agg(DISTINCT node) AS nodes
    FROM told
    GROUP BY cluster_id, topic_id, partition, event_time
    UNION ALL
    SELECT
        cluster_id,
        topic_id,
        partition,
        max(valid_from) AS event_time,
        'snapshot' AS told_by,
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
        'move' AS told_by,
        count(node) AS in_sync,
        array_agg(node) AS nodes
    FROM asked
    GROUP BY cluster_id, topic_id, partition, event_time
),
in_order AS (
    SELECT
        *,
        lag(in_sync) OVER (
            PARTITION BY cluster_id, topic_id, partition, told_by = 'move' ORDER BY event_time
        ) AS in_sync_before,
        lag(nodes) OVER (
            PARTITION BY cluster_id, topic_id, partition, told_by = 'move' ORDER BY event_time
        ) AS nodes_before,
        max(CASE WHEN told_by = 'move' THEN event_time END) OVER (
            PARTITION BY cluster_id, topic_id, partition ORDER BY event_time
        ) AS asked_time,
        max(CASE WHEN told_by = 'snapshot' THEN event_time END) OVER (
            PARTITION BY cluster_id, topic_id, partition ORDER BY event_time
        ) AS seen_time
    FROM states
),
least_of AS (
    SELECT
        cluster_id,
        entity_type,
        CASE WHEN entity_type = 'topic' THEN entity_name ELSE '' END AS topic,
        max(CAST(config_value AS BIGINT)) AS min_in_sync
    FROM current_configs
    WHERE config_key = 'min.insync.replicas' AND entity_type IN ('topic', 'broker')
    GROUP BY
        cluster_id, entity_type, CASE WHEN entity_type = 'topic' THEN entity_name ELSE '' END
),
assigned AS (
    SELECT cluster_id, topic_id, partition, count(*) AS replicas
    FROM current_replicas
    GROUP BY cluster_id, topic_id, partition
),
shrunk AS (
    SELECT
        in_order.*,
        names.topic,
        wanted.nodes AS wanted,
        wanted.event_time AS wanted_time,
        coalesce(wanted.replicas, assigned.replicas, in_order.in_sync_before) AS replicas,
        coalesce(of_topic.min_in_sync, of_brokers.min_in_sync, 1) AS min_in_sync
    FROM in_order
    LEFT JOIN wanted
        ON in_order.cluster_id = wanted.cluster_id
            AND in_order.topic_id = wanted.topic_id
            AND in_order.partition = wanted.partition
            AND in_order.asked_time = wanted.event_time
    LEFT JOIN assigned
        ON in_order.cluster_id = assigned.cluster_id
            AND in_order.topic_id = assigned.topic_id
            AND in_order.partition = assigned.partition
    LEFT JOIN topic_ids AS names
        ON in_order.cluster_id = names.cluster_id AND in_order.topic_id = names.topic_id
    LEFT JOIN least_of AS of_topic
        ON in_order.cluster_id = of_topic.cluster_id
            AND names.topic = of_topic.topic
            AND of_topic.entity_type = 'topic'
    LEFT JOIN least_of AS of_brokers
        ON in_order.cluster_id = of_brokers.cluster_id AND of_brokers.entity_type = 'broker'
    WHERE
        -- When it came to what a snapshot saw is not known: a snapshot comes later.
        in_order.told_by = 'leader'
        AND in_order.in_sync < in_order.in_sync_before
        AND in_order.in_sync
            < coalesce(wanted.replicas, assigned.replicas, in_order.in_sync_before)
        AND in_order.in_sync <= coalesce(of_topic.min_in_sync, of_brokers.min_in_sync, 1)
),
named AS (
    SELECT cluster_id, topic_id, partition, node
    FROM told
    UNION
    SELECT cluster_id, topic_id, partition, node
    FROM asked
    UNION
    SELECT cluster_id, topic_id, partition, node
    FROM held
)

SELECT
    shrunk.cluster_id,
    shrunk.event_time,
    shrunk.topic_id,
    shrunk.topic,
    shrunk.partition,
    named.node AS broker_id,
    shrunk.in_sync_before,
    shrunk.in_sync,
    shrunk.replicas,
    shrunk.min_in_sync
FROM shrunk
INNER JOIN named
    ON shrunk.cluster_id = named.cluster_id
        AND shrunk.topic_id = named.topic_id
        AND shrunk.partition = named.partition
LEFT JOIN held
    ON named.cluster_id = held.cluster_id
        AND named.topic_id = held.topic_id
        AND named.partition = held.partition
        AND named.node = held.node
WHERE
    array_contains(shrunk.nodes, named.node)
    -- Once all that a move names are in sync, controllers take the others away. No leader tells it.
    OR (
        array_contains(shrunk.nodes_before, named.node)
        AND coalesce(cardinality(array_except(shrunk.wanted, shrunk.nodes_before)) > 0, true)
    )
    -- A request tells what it has until a snapshot of later does.
    OR (
        array_contains(shrunk.wanted, named.node)
        AND (shrunk.seen_time IS NULL OR shrunk.seen_time < shrunk.wanted_time)
    )
    -- What no snapshot saw arrive since a move was asked for may have left by it.
    OR (
        held.held_from <= shrunk.event_time
        AND (held.held_to IS NULL OR held.held_to > shrunk.event_time)
        AND (
            shrunk.wanted IS NULL
            OR array_contains(shrunk.wanted, named.node)
            OR held.held_from > shrunk.wanted_time
        )
    )
