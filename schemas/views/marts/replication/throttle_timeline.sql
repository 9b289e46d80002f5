-- kind: mart
-- grain: one row per change of a replication throttle or of a move
-- area: replication
-- level: sampled_log
-- question: History of throttles. Who set and removed replication throttles, and when?
-- description: The life of replication throttles (KIP-73) and moves, step by step: what was to change,
--   by whom, and whether the broker took it. A list that DELETE_TOPICS deletes has a row only if the
--   topic had a list.
-- history: reassignment_changes
-- columns:
--   from throttle_changes: cluster_id
--   event_time: when the broker completed the request
--   entity_type: topic or broker; null: a request too large to be stored
--   entity_name: name of the topic, or node id of the broker; empty: the default of all brokers
--   partition: partition of a move; null for configs
--   config_key: name of the config; reassignment for a move
--   change: SET, DELETE, APPEND or SUBTRACT; requested, cancelled or capped for a move
--   value: operand of the change, or brokers of the requested replicas, comma-separated; null: none
--   from throttle_changes: principal, client_id
--   is_done: the broker took it
--   from throttle_changes: error_code
--   from error_names: error_name
--   is_order_known: false: the same config was changed through another broker less than 5 s before or
--     after, so by their clocks it is not known which change is the last
WITH listed AS (
    SELECT DISTINCT
        cluster_id,
        entity_name,
        config_key
    FROM throttle_changes
    WHERE entity_type = 'topic' AND operation <> 'DELETE' AND coalesce(error_code, -1) = 0
),
changed AS (
    SELECT
        changes.*,
        lag(changes.event_time) OVER in_order AS prior_time,
        lag(changes.broker_id) OVER in_order AS prior_broker_id,
        lead(changes.event_time) OVER in_order AS next_time,
        lead(changes.broker_id) OVER in_order AS next_broker_id
    FROM throttle_changes AS changes
    LEFT JOIN listed USING (cluster_id, entity_name, config_key)
    WHERE changes.api NOT IN ('DELETE_TOPICS', 'ALTER_CONFIGS')
        OR changes.operation <> 'DELETE'
        OR listed.entity_name IS NOT NULL
        OR changes.entity_type = 'broker'
    WINDOW in_order AS (
        PARTITION BY changes.cluster_id, changes.entity_type, changes.entity_name,
            changes.config_key, coalesce(changes.error_code, -1) = 0
        ORDER BY changes.event_time, changes.source_partition, changes.source_offset
    )
),
placed AS (
    SELECT
        cluster_id,
        event_time,
        change,
        topic,
        partition,
        principal,
        client_id,
        max(error_code) AS error_code,
        CASE
            WHEN change = 'requested'
                THEN array_join(array_sort(array_agg(CAST(replica_id AS STRING))), ',')
        END AS replicas
    FROM reassignment_changes
    WHERE change <> 'in_sync'
    GROUP BY cluster_id, event_time, change, topic, partition, principal, client_id
),
steps AS (
    SELECT
        cluster_id,
        event_time,
        entity_type,
        entity_name,
        CAST(NULL AS INT) AS partition,
        config_key,
        operation AS change,
        config_value AS value,
        principal,
        client_id,
        coalesce(error_code, -1) = 0 AS is_done,
        error_code,
        NOT (
            coalesce(
                prior_broker_id <> broker_id
                AND unix_millis(event_time) - unix_millis(prior_time) < 5000,
                false
            )
            OR coalesce(
                next_broker_id <> broker_id
                AND unix_millis(next_time) - unix_millis(event_time) < 5000,
                false
            )
        ) AS is_order_known
    FROM changed
    UNION ALL
    SELECT
        cluster_id,
        event_time,
        'topic' AS entity_type,
        topic AS entity_name,
        partition,
        'reassignment' AS config_key,
        change,
        replicas AS value,
        principal,
        client_id,
        coalesce(error_code, -1) = 0 AS is_done,
        error_code,
        true AS is_order_known
    FROM placed
)
SELECT * FROM steps
LEFT JOIN error_names AS names USING (error_code)
