-- kind: staging
-- grain: one row per request and config of a replication throttle that the request alters
-- area: replication
-- level: sampled_log
-- description: Alterations of the configs of replication throttles (KIP-73), accepted or refused: the
--   lists of topics, the rates of brokers, and the rate of moves between log dirs. A request that
--   deletes all configs of an entity has a row for each of these configs, unless it also sets the
--   config. A row without a config_key is a request that was too large to be stored.
-- history: config_alterations
-- columns:
--   from config_alterations: cluster_id, event_date, event_time, broker_id, api, principal, client_id,
--     client_address
--   entity_type: topic or broker; null: a request too large to be stored
--   from config_alterations: entity_name
--   config_key: name of the config; null: a request too large to be stored
--   from config_alterations: operation, config_value, error_code, error_message, source_topic,
--     source_partition, source_offset
WITH throttle_keys AS (
    SELECT 'topic' AS entity_type, 'leader.replication.throttled.replicas' AS config_key
    UNION ALL
    SELECT 'topic' AS entity_type, 'follower.replication.throttled.replicas' AS config_key
    UNION ALL
    SELECT 'broker' AS entity_type, 'leader.replication.throttled.rate' AS config_key
    UNION ALL
    SELECT 'broker' AS entity_type, 'follower.replication.throttled.rate' AS config_key
    UNION ALL
    SELECT
        'broker' AS entity_type,
        'replica.alter.log.dirs.io.max.bytes.per.second' AS config_key
),
meant AS (
    SELECT
        alterations.*,
        throttle_keys.config_key AS throttle_key,
        row_number() OVER (
            PARTITION BY
                alterations.cluster_id, alterations.source_topic, alterations.source_partition,
                alterations.source_offset, alterations.entity_type, alterations.entity_name,
                throttle_keys.config_key
            ORDER BY alterations.position DESC
        ) AS nth_last
    FROM config_alterations AS alterations
    INNER JOIN throttle_keys
        ON alterations.entity_type = throttle_keys.entity_type
            AND coalesce(alterations.config_key, throttle_keys.config_key) = throttle_keys.config_key
)

SELECT
    *,
    throttle_key AS config_key
FROM meant
WHERE nth_last = 1
UNION ALL
SELECT * FROM config_alterations
WHERE entity_type IS NULL AND api <> 'ALTER_CLIENT_QUOTAS'
