-- kind: mart
-- grain: one row per change of the value of a config or client quota
-- area: configs
-- level: admin_api
-- question: Changes of configs. What was each config or quota before and after a change, and who
--   made it?
-- description: Values before and after each change, by the request log, by records of what quotaflow
--   wrote, and by snapshots. The log has changes between two snapshots, snapshots have those that the
--   log does not show. A change that several have is one row: where the log does not show its value,
--   the value is that of the record, or of the snapshot that follows. Brokers whose clocks differ can
--   have changes in another order than they happened.
-- columns:
--   from accepted_alterations: cluster_id
--   changed_at: when the broker completed the request; by a snapshot: when it began. It reads values
--     later, so the change can be later by as long as the snapshot took
--   from accepted_alterations: entity_type, entity_name, entity_client_id
--   config_key: name of the config or quota
--   value_before: value before the change; null: it was not set, or is_before_known is false
--   value_after: value since the change; null: it is not set, or is_after_known is false
--   is_before_known: false: neither log nor snapshot has the value before. It is sensitive, or not
--     known to be harmless to show, or the request before only appended to it or took from it, or
--     nothing is older than this change
--   is_after_known: false: the value is not shown, or is the outcome of APPEND or SUBTRACT
--   known_by: request_log, quotaflow (it wrote the change, and read it back) or snapshot
--   from accepted_alterations: principal, client_id, client_address, operation
WITH observed AS (
    SELECT
        cluster_id,
        'configs' AS table_name,
        event_time AS snapshot_time,
        event_time,
        entity_type,
        entity_name,
        CAST(NULL AS STRING) AS entity_client_id,
        config_key,
        CASE WHEN NOT coalesce(is_removed, false) THEN config_value END AS config_value,
        coalesce(is_removed, false) OR config_value IS NOT NULL AS is_known
    FROM configs
    UNION ALL
    SELECT
        cluster_id,
        'client_quotas' AS table_name,
        event_time AS snapshot_time,
        coalesce(set_at, event_time) AS event_time,
        CASE
            WHEN user IS NOT NULL OR is_default_user THEN 'user'
            WHEN client_id IS NOT NULL OR is_default_client_id THEN 'client-id'
            ELSE 'ip'
        END AS entity_type,
        CASE
            WHEN user IS NOT NULL OR is_default_user THEN coalesce(user, '')
            WHEN client_id IS NOT NULL OR is_default_client_id THEN coalesce(client_id, '')
            ELSE coalesce(ip, '')
        END AS entity_name,
        CASE
            WHEN
                (user IS NOT NULL OR is_default_user)
                AND (client_id IS NOT NULL OR is_default_client_id)
                THEN coalesce(client_id, '')
        END AS entity_client_id,
        config_key,
        -- As the log has it, without needless digits.
        CASE
            WHEN coalesce(is_removed, false) THEN NULL
            WHEN quota = floor(quota) AND abs(quota) < 1e15
                THEN CAST(CAST(quota AS BIGINT) AS STRING)
            ELSE CAST(quota AS STRING)
        END AS config_value,
        coalesce(is_removed, false) OR quota IS NOT NULL AS is_known
    FROM client_quotas
),
first_snapshots AS (
    SELECT cluster_id, min(snapshot_time) AS first_snapshot
    FROM observed
    GROUP BY cluster_id
),
-- A snapshot has the time when it began, and reads values later: a change that the log has in
-- between, to the same value, is the one that it found. Nothing says when a snapshot ended. The
-- first snapshot finds values, no changes.
logged_later AS (
    SELECT
        observed.cluster_id,
        observed.snapshot_time,
        observed.entity_type,
        observed.entity_name,
        observed.entity_client_id,
        observed.config_key,
        min(logged.event_time) AS logged_at
    FROM observed
    INNER JOIN accepted_alterations AS logged
        ON observed.cluster_id = logged.cluster_id
            AND observed.entity_type = logged.entity_type
            AND observed.entity_name = logged.entity_name
            AND (observed.entity_client_id IS NOT DISTINCT FROM logged.entity_client_id)
            AND observed.config_key = logged.config_key
            AND logged.operation IN ('SET', 'DELETE')
            AND (logged.operation = 'DELETE' OR logged.config_value IS NOT NULL)
            AND (observed.config_value IS NOT DISTINCT FROM logged.config_value)
            AND logged.event_time > observed.event_time
    INNER JOIN first_snapshots
        ON observed.cluster_id = first_snapshots.cluster_id
            AND observed.snapshot_time > first_snapshots.first_snapshot
    LEFT JOIN snapshot_times AS next_snapshots
        ON observed.cluster_id = next_snapshots.cluster_id
            AND observed.table_name = next_snapshots.table_name
            AND observed.snapshot_time = next_snapshots.taken_before
    WHERE
        observed.is_known
        AND unix_micros(logged.event_time) - unix_micros(observed.snapshot_time) < 60000000
        AND coalesce(logged.event_time < next_snapshots.taken_at, true)
    GROUP BY 1, 2, 3, 4, 5, 6
),
snapshot_rows AS (
    SELECT
        observed.cluster_id,
        observed.snapshot_time,
        coalesce(logged_later.logged_at, observed.event_time) AS event_time,
        observed.entity_type,
        observed.entity_name,
        observed.entity_client_id,
        observed.config_key,
        observed.config_value,
        observed.is_known
    FROM observed
    LEFT JOIN logged_later
        ON observed.cluster_id = logged_later.cluster_id
            AND observed.snapshot_time = logged_later.snapshot_time
            AND observed.entity_type = logged_later.entity_type
            AND observed.entity_name = logged_later.entity_name
            AND (observed.entity_client_id IS NOT DISTINCT FROM logged_later.entity_client_id)
            AND observed.config_key = logged_later.config_key
),
seen AS (
    SELECT
        cluster_id,
        event_time,
        entity_type,
        entity_name,
        entity_client_id,
        config_key,
        CASE WHEN operation = 'SET' THEN config_value END AS config_value,
        operation = 'DELETE' OR (operation = 'SET' AND config_value IS NOT NULL) AS is_known,
        'request_log' AS known_by,
        principal,
        client_id,
        client_address,
        operation,
        api,
        event_time AS snapshot_time,
        source_partition,
        source_offset,
        position
    FROM accepted_alterations
    UNION ALL
    SELECT
        cluster_id,
        event_time,
        entity_type,
        entity_name,
        entity_client_id,
        config_key,
        config_value,
        is_known,
        'snapshot' AS known_by,
        CAST(NULL AS STRING) AS principal,
        CAST(NULL AS STRING) AS client_id,
        CAST(NULL AS STRING) AS client_address,
        CAST(NULL AS STRING) AS operation,
        CAST(NULL AS STRING) AS api,
        snapshot_time,
        0 AS source_partition,
        0 AS source_offset,
        0 AS position
    FROM snapshot_rows
    UNION ALL
    SELECT
        cluster_id,
        event_time,
        entity_type,
        coalesce(entity_name, '') AS entity_name,
        entity_client_id,
        config_key,
        config_value,
        true AS is_known,
        'quotaflow' AS known_by,
        CAST(NULL AS STRING) AS principal,
        CAST(NULL AS STRING) AS client_id,
        CAST(NULL AS STRING) AS client_address,
        operation,
        CAST(NULL AS STRING) AS api,
        event_time AS snapshot_time,
        0 AS source_partition,
        0 AS source_offset,
        0 AS position
    FROM config_changes
    WHERE step = 'done' AND purpose IN ('apply', 'restore')
),
followed AS (
    SELECT
        *,
        -- What follows a change that the log does not show whole. Quotaflow reads back at once.
        NOT coalesce(is_known, false)
        AND coalesce(lead(is_known) OVER in_order, false)
        AND (
            lead(known_by) OVER in_order = 'snapshot'
            OR (
                lead(known_by) OVER in_order = 'quotaflow'
                AND lead(operation) OVER in_order = operation
                AND unix_micros(lead(event_time) OVER in_order) - unix_micros(event_time) < 60000000
            )
        ) AS takes_next,
        lead(config_value) OVER in_order AS next_value
    FROM seen
    WINDOW in_order AS (
        PARTITION BY cluster_id, entity_type, entity_name, entity_client_id, config_key
        ORDER BY event_time, known_by, source_partition, source_offset, position
    )
),
values_over_time AS (
    SELECT
        *,
        CASE WHEN takes_next THEN next_value ELSE config_value END AS value_since,
        coalesce(is_known, false) OR coalesce(takes_next, false) AS is_value_known
    FROM followed
),
with_before AS (
    SELECT
        *,
        lag(value_since) OVER in_order AS value_before,
        lag(is_value_known) OVER in_order AS is_prior_known
    FROM values_over_time
    WINDOW in_order AS (
        PARTITION BY cluster_id, entity_type, entity_name, entity_client_id, config_key
        ORDER BY event_time, known_by, source_partition, source_offset, position
    )
),
changes AS (
    SELECT
        with_before.*,
        coalesce(
            with_before.is_prior_known,
            with_before.api = 'CREATE_TOPICS'
            -- What a snapshot before this change did not find was not set. Snapshots have neither
            -- the default of all brokers, nor loggers and groups.
            OR (
                with_before.snapshot_time > first_snapshots.first_snapshot
                AND with_before.entity_type NOT IN ('broker', 'broker-logger', 'group')
            ),
            false
        ) AS is_before_known
    FROM with_before
    LEFT JOIN first_snapshots USING (cluster_id)
    WHERE
        with_before.known_by <> 'snapshot'
        OR with_before.is_prior_known IS NOT NULL
        OR with_before.snapshot_time > first_snapshots.first_snapshot
)

SELECT
    *,
    event_time AS changed_at,
    value_since AS value_after,
    is_value_known AS is_after_known
FROM changes
WHERE NOT (is_before_known AND is_value_known AND (value_before IS NOT DISTINCT FROM value_since))
