-- kind: intermediate
-- grain: one row per entry of a list of throttled replicas that is set now
-- area: replication
-- level: sampled_log
-- description: Who added each entry (partition:broker, or *) to a list (KIP-73): the first request that
--   named it since the list was last set or removed or the entry was taken away.
-- history: replication_throttles
-- columns:
--   from replication_throttles: cluster_id, topic, side
--   entry: partition:broker, or *
--   set_at: when it was added; null: the request log does not show it
--   set_by: principal that added it; null: the request log does not show it
--   set_by_client_id: its client.id: untrusted text; null: the request log does not show it
WITH entries AS (
    SELECT
        throttles.cluster_id,
        throttles.topic,
        throttles.side,
        concat(throttles.side, '.replication.throttled.replicas') AS config_key,
        CASE
            WHEN throttles.listed = 'wildcard' THEN '*'
            ELSE concat(
                CAST(throttles.partition AS STRING), ':', CAST(throttles.broker_id AS STRING)
            )
        END AS entry
    FROM replication_throttles AS throttles
    INNER JOIN replication_time AS newest USING (cluster_id, event_time)
    WHERE
        throttles.topic IS NOT NULL
        AND throttles.is_configured
        AND (
            throttles.listed = 'wildcard'
            OR (throttles.listed = 'entry' AND throttles.broker_id IS NOT NULL)
        )
    GROUP BY ALL
),
changed AS (
    SELECT
        entries.*,
        changes.event_time,
        changes.operation,
        changes.principal,
        changes.client_id,
        changes.source_partition,
        changes.source_offset,
        changes.operation IN ('SET', 'APPEND') AND array_contains(
            split(replace(coalesce(changes.config_value, ''), ' ', ''), ','), entries.entry
        ) AS is_naming,
        changes.operation IN ('SET', 'DELETE')
        OR changes.operation = 'SUBTRACT' AND array_contains(
            split(replace(coalesce(changes.config_value, ''), ' ', ''), ','), entries.entry
        ) AS is_reset
    FROM entries
    INNER JOIN throttle_changes AS changes
        ON entries.cluster_id = changes.cluster_id
            AND entries.topic = changes.entity_name
            AND entries.config_key = changes.config_key
    WHERE changes.entity_type = 'topic' AND changes.error_code = 0
),
since_reset AS (
    SELECT
        *,
        max(CASE WHEN is_reset THEN event_time END) OVER (
            PARTITION BY cluster_id, topic, side, entry
        ) AS reset_time
    FROM changed
),
setters AS (
    SELECT
        *,
        row_number() OVER (
            PARTITION BY cluster_id, topic, side, entry
            ORDER BY event_time, source_partition, source_offset
        ) AS nth
    FROM since_reset
    WHERE is_naming AND (reset_time IS NULL OR event_time >= reset_time)
)

SELECT
    entries.*,
    setters.event_time AS set_at,
    setters.principal AS set_by,
    setters.client_id AS set_by_client_id
FROM entries
LEFT JOIN setters
    ON entries.cluster_id = setters.cluster_id
        AND entries.topic = setters.topic
        AND entries.side = setters.side
        AND entries.entry = setters.entry
        AND setters.nth = 1
