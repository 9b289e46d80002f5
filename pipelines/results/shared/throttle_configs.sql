-- The configs of replication throttles (KIP-73) over time: one row per value of a config, which it
-- has from `since` to `until` (null: still). The request log has the time and the principal of a
-- change. Snapshots have changes that the log missed, and those from before it started.
-- `n` numbers the values of one config. `value` is null while the config is not set.
WITH RECURSIVE throttle_keys(entity_type, side, config_key) AS (
    VALUES
        ('topic', 'leader', 'leader.replication.throttled.replicas'),
        ('topic', 'follower', 'follower.replication.throttled.replicas'),
        ('broker', 'leader', 'leader.replication.throttled.rate'),
        ('broker', 'follower', 'follower.replication.throttled.rate')
),
-- One row per change in the log. An alteration without a key deletes all configs of its entity.
logged AS (
    SELECT
        cluster_id, entity_type, entity_name, side, event_time, false AS is_snapshot,
        operation, config_value AS operand,
        CASE
            WHEN entity_type = 'broker' AND entity_name = '' THEN 'dynamic_default'
            WHEN entity_type = 'broker' THEN 'dynamic_broker'
        END AS source,
        {set_at: event_time, set_by: principal, set_by_client_id: client_id} AS setter
    FROM config_alterations a
    JOIN throttle_keys k USING (entity_type)
    WHERE error_code = 0 AND (a.config_key IS NULL OR a.config_key = k.config_key)
),
-- One row per change that a snapshot found.
found AS (
    SELECT
        cluster_id, entity_type, entity_name, side, event_time, first_snapshot,
        true AS is_snapshot,
        if(NOT is_removed AND config_source IS DISTINCT FROM 'DEFAULT_CONFIG', 'SET', 'DELETE')
            AS operation,
        if(operation = 'SET', config_value, NULL) AS operand,
        CASE
            WHEN entity_type = 'topic' THEN NULL
            WHEN config_source = 'DYNAMIC_BROKER_CONFIG' THEN 'dynamic_broker'
            WHEN config_source = 'DYNAMIC_DEFAULT_BROKER_CONFIG' THEN 'dynamic_default'
            WHEN config_source = 'DEFAULT_CONFIG' THEN 'unset'
            ELSE 'static'
        END AS source
    FROM (
        SELECT *, min(event_time) OVER (PARTITION BY cluster_id) AS first_snapshot FROM configs
    )
    JOIN throttle_keys USING (entity_type, config_key)
),
-- All changes. What the first snapshot found is older than it, unless the log has a change that is.
changes AS (
    SELECT
        *,
        min(event_time) FILTER (NOT is_snapshot)
            OVER (PARTITION BY cluster_id, entity_type, entity_name, side) AS first_logged,
        if(first_logged <= first_snapshot, event_time, since_of(event_time, first_snapshot))
            AS since
    FROM (FROM logged UNION ALL BY NAME FROM found)
),
-- Changes in order. ALTER_CONFIGS deletes all and sets some at one time: DELETE sorts before SET.
numbered AS (
    SELECT
        cluster_id, entity_type, entity_name, side, since, is_snapshot, operation, operand, source,
        setter,
        row_number() OVER (
            PARTITION BY cluster_id, entity_type, entity_name, side
            ORDER BY since, is_snapshot, operation NULLS FIRST, operand NULLS FIRST,
                source NULLS FIRST, setter.set_by NULLS FIRST, setter.set_by_client_id NULLS FIRST
        ) AS n
    FROM changes
),
-- The value after each change. An APPEND or SUBTRACT needs the value before it; before the first
-- change no value is known.
walked AS (
    SELECT *, altered_value(NULL, operation, operand) AS value
    FROM numbered
    WHERE n = 1 OR coalesce(operation, '') NOT IN ('APPEND', 'SUBTRACT')
    UNION ALL
    SELECT c.*, altered_value(w.value, c.operation, c.operand) AS value
    FROM walked w
    JOIN numbered c ON c.cluster_id = w.cluster_id AND c.entity_type = w.entity_type
        AND c.entity_name = w.entity_name AND c.side = w.side AND c.n = w.n + 1
    WHERE c.operation IN ('APPEND', 'SUBTRACT')
),
-- A snapshot that finds the value known already does not change who set it.
confirmed AS (
    SELECT
        *, lead(since) OVER in_order AS until,
        is_snapshot AND value IS NOT DISTINCT FROM lag(value) OVER in_order AS is_confirmed
    FROM walked
    WINDOW in_order AS (PARTITION BY cluster_id, entity_type, entity_name, side ORDER BY n)
)
SELECT
    * EXCLUDE (is_snapshot, operation, operand, setter, is_confirmed),
    unnest(arg_max_null(setter, n) FILTER (NOT is_confirmed) OVER (
        PARTITION BY cluster_id, entity_type, entity_name, side ORDER BY n
    ))
FROM confirmed
