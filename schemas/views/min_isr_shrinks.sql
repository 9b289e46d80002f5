-- One row per time that a leader asked for fewer replicas in sync than the partition should have, no more
-- than min.insync.replicas, and fewer than before (ALTER_PARTITION), and broker that has, or had then, a
-- replica of it. Before is by such requests and the last snapshot; where neither tells, nothing shrank.
-- replicas: how many it was last asked to have, else has, else had in sync. min_in_sync is the topic's,
-- else the brokers', else 1 as Kafka ships it.
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
sizes AS (
    SELECT
        cluster_id,
        topic_id,
        partition,
        event_time,
        true AS is_told,
        count(DISTINCT node) AS in_sync
    FROM told
    GROUP BY cluster_id, topic_id, partition, event_time
    UNION ALL
    SELECT
        cluster_id,
        topic_id,
        partition,
        max(valid_from) AS event_time,
        -- When that was is not known: a snapshot comes later.
        false AS is_told,
        count(CASE WHEN is_in_sync THEN 1 END) AS in_sync
    FROM current_replicas
    GROUP BY cluster_id, topic_id, partition
),
in_order AS (
    SELECT
        *,
        lag(in_sync) OVER (
            PARTITION BY cluster_id, topic_id, partition ORDER BY event_time
        ) AS in_sync_before
    FROM sizes
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
wanted AS (
    SELECT
        changes.cluster_id,
        coalesce(changes.topic_id, topic_ids.topic_id) AS topic_id,
        changes.partition,
        changes.event_time,
        row_number() OVER (
            PARTITION BY
                changes.cluster_id, coalesce(changes.topic_id, topic_ids.topic_id), changes.partition
            ORDER BY changes.event_time DESC
        ) AS age,
        count(*) AS replicas
    FROM reassignment_changes AS changes
    LEFT JOIN topic_ids
        ON changes.cluster_id = topic_ids.cluster_id AND changes.topic = topic_ids.topic
    WHERE changes.change = 'requested' AND changes.error_code = 0
    GROUP BY
        changes.cluster_id,
        coalesce(changes.topic_id, topic_ids.topic_id),
        changes.partition,
        changes.event_time
),
assigned AS (
    SELECT cluster_id, topic_id, partition, count(*) AS replicas
    FROM current_replicas
    GROUP BY cluster_id, topic_id, partition
),
holders AS (
    SELECT cluster_id, topic_id, partition, node
    FROM told
    UNION
    SELECT cluster_id, topic_id, partition, broker_id + 0 AS node
    FROM current_replicas
)

SELECT
    shrunk.cluster_id,
    shrunk.event_time,
    shrunk.topic_id,
    names.topic,
    shrunk.partition,
    holders.node AS broker_id,
    shrunk.in_sync_before,
    shrunk.in_sync,
    coalesce(wanted.replicas, assigned.replicas, shrunk.in_sync_before) AS replicas,
    coalesce(of_topic.min_in_sync, of_brokers.min_in_sync, 1) AS min_in_sync
FROM in_order AS shrunk
INNER JOIN holders
    ON shrunk.cluster_id = holders.cluster_id
        AND shrunk.topic_id = holders.topic_id
        AND shrunk.partition = holders.partition
LEFT JOIN wanted
    ON shrunk.cluster_id = wanted.cluster_id
        AND shrunk.topic_id = wanted.topic_id
        AND shrunk.partition = wanted.partition
        AND wanted.age = 1
LEFT JOIN assigned
    ON shrunk.cluster_id = assigned.cluster_id
        AND shrunk.topic_id = assigned.topic_id
        AND shrunk.partition = assigned.partition
LEFT JOIN topic_ids AS names
    ON shrunk.cluster_id = names.cluster_id AND shrunk.topic_id = names.topic_id
LEFT JOIN least_of AS of_topic
    ON shrunk.cluster_id = of_topic.cluster_id
        AND names.topic = of_topic.topic
        AND of_topic.entity_type = 'topic'
LEFT JOIN least_of AS of_brokers
    ON shrunk.cluster_id = of_brokers.cluster_id AND of_brokers.entity_type = 'broker'
WHERE
    shrunk.is_told
    AND shrunk.in_sync < shrunk.in_sync_before
    AND shrunk.in_sync < coalesce(wanted.replicas, assigned.replicas, shrunk.in_sync_before)
    AND shrunk.in_sync <= coalesce(of_topic.min_in_sync, of_brokers.min_in_sync, 1)
