-- kind: mart
-- grain: one row per replication throttle that was set and not needed in all of its last time
-- area: replication
-- level: admin_api
-- question: Throttles left over. Which replication throttles are set that nothing needs any more?
-- description: Rates and lists of throttled replicas (KIP-73) that are left over, by snapshots: they
--   are as old as replication.stale_throttle_s, and in that time no snapshot found a reassignment, or
--   a replica out of sync, that they would slow down. What the request log, or a record of quotaflow,
--   shows to be altered after the last snapshot is left out. Who set them is not known without a
--   request log: throttle_checks has that, and what happens between two snapshots.
-- empty: where nothing is left over
-- columns:
--   from current_configs: cluster_id, entity_type, entity_name, config_key, config_value,
--     config_source
--   finding: stale_list or stale_rate, as in throttle_checks
--   first_seen_at: time of the first snapshot that found this value
--   snapshot_time: time of the last snapshot of configs: as of then the throttle was set
--   age_s: from first_seen_at to snapshot_time, in seconds
WITH taken AS (
    SELECT
        cluster_id,
        event_time,
        max(CASE WHEN target = 'configs' AND outcome = 'in' THEN 1 ELSE 0 END) AS has_configs,
        max(CASE WHEN target = 'moving_replicas' AND outcome = 'in' THEN 1 ELSE 0 END) AS has_moves,
        max(CASE WHEN target = 'moving_replicas' AND outcome = 'left_out' THEN 1 ELSE 0 END)
            AS is_refused
    FROM pipeline_progress
    WHERE job = 'snapshot' AND target IN ('configs', 'moving_replicas')
    GROUP BY cluster_id, event_time
),
snapshots AS (
    SELECT
        cluster_id,
        max(CASE WHEN has_configs = 1 THEN event_time END) AS snapshot_time,
        max(CASE WHEN has_moves = 1 AND is_refused = 0 THEN event_time END) AS last_moves_at,
        min(CASE WHEN has_moves = 1 AND is_refused = 0 THEN event_time END) AS first_moves_at
    FROM taken
    GROUP BY cluster_id
),
conf AS (
    SELECT cluster_id, max(CAST(setting_value AS BIGINT)) AS stale_after_s
    FROM current_settings
    WHERE setting = 'replication.stale_throttle_s'
    GROUP BY cluster_id
),
throttles AS (
    SELECT
        configs.*,
        snapshots.snapshot_time,
        (unix_millis(snapshots.snapshot_time) - unix_millis(configs.valid_from)) / 1e3 AS age_s,
        (unix_millis(snapshots.snapshot_time) - unix_millis(snapshots.first_moves_at)) / 1e3
            AS watched_s,
        coalesce(conf.stale_after_s, 600) AS stale_after_s
    FROM current_configs AS configs
    INNER JOIN snapshots USING (cluster_id)
    LEFT JOIN conf USING (cluster_id)
    WHERE
        configs.config_value <> ''
        AND snapshots.last_moves_at >= snapshots.snapshot_time
        AND (
            configs.entity_type = 'topic'
            AND configs.config_key LIKE '%.replication.throttled.replicas'
            OR configs.entity_type = 'broker'
            AND configs.config_key IN (
                'leader.replication.throttled.rate', 'follower.replication.throttled.rate'
            )
            AND configs.config_source IN (
                'DYNAMIC_BROKER_CONFIG', 'DYNAMIC_DEFAULT_BROKER_CONFIG'
            )
        )
),
-- Without a key: all configs of the entity.
later AS (
    SELECT cluster_id, entity_type, entity_name, config_key, event_time
    FROM config_alterations
    WHERE error_code = 0 AND entity_type IN ('topic', 'broker')
    UNION ALL
    SELECT cluster_id, entity_type, entity_name, config_key, event_time
    FROM config_changes
    WHERE step = 'done' AND purpose IN ('apply', 'restore') AND entity_type IN ('topic', 'broker')
),
altered AS (
    SELECT DISTINCT
        throttles.cluster_id,
        throttles.entity_type,
        throttles.entity_name,
        throttles.config_key
    FROM throttles
    INNER JOIN later
        ON throttles.cluster_id = later.cluster_id
            AND throttles.entity_type = later.entity_type
            AND throttles.entity_name = later.entity_name
            AND throttles.config_key = coalesce(later.config_key, throttles.config_key)
            AND later.event_time > throttles.snapshot_time
),
-- Periods in which something of a topic moved or was behind. Null: not over.
moves AS (
    SELECT
        *,
        event_time AS since,
        lead(event_time) OVER (
            PARTITION BY cluster_id, topic, partition, broker_id ORDER BY event_time
        ) AS until
    FROM moving_replicas
),
needed AS (
    SELECT cluster_id, topic, until FROM moves WHERE NOT is_removed
    UNION ALL
    SELECT cluster_id, topic, valid_to AS until FROM replica_history WHERE NOT is_in_sync
),
uses AS (
    SELECT
        cluster_id,
        topic,
        max(until) AS until,
        max(CASE WHEN until IS NULL THEN 1 ELSE 0 END) AS is_now
    FROM needed
    GROUP BY cluster_id, topic
),
cluster_uses AS (
    SELECT cluster_id, max(until) AS until, max(is_now) AS is_now
    FROM uses
    GROUP BY cluster_id
),
stale AS (
    SELECT
        throttles.*,
        CASE WHEN throttles.entity_type = 'topic' THEN 'stale_list' ELSE 'stale_rate' END
            AS finding
    FROM throttles
    LEFT JOIN uses
        ON throttles.cluster_id = uses.cluster_id
            AND throttles.entity_type = 'topic'
            AND throttles.entity_name = uses.topic
    LEFT JOIN cluster_uses
        ON throttles.cluster_id = cluster_uses.cluster_id AND throttles.entity_type = 'broker'
    LEFT JOIN altered
        ON throttles.cluster_id = altered.cluster_id
            AND throttles.entity_type = altered.entity_type
            AND throttles.entity_name = altered.entity_name
            AND throttles.config_key = altered.config_key
    WHERE
        altered.config_key IS NULL
        AND throttles.age_s >= throttles.stale_after_s
        AND throttles.watched_s >= throttles.stale_after_s
        AND coalesce(uses.is_now, cluster_uses.is_now, 0) = 0
        AND (
            coalesce(uses.until, cluster_uses.until) IS NULL
            OR (
                unix_millis(throttles.snapshot_time)
                - unix_millis(coalesce(uses.until, cluster_uses.until))
            ) / 1e3 >= throttles.stale_after_s
        )
)

SELECT
    *,
    valid_from AS first_seen_at
FROM stale
