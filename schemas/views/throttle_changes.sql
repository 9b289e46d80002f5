-- One row per config of a replication throttle (KIP-73) that a request was to change, taken or refused
-- (config_alterations): lists of topics, rates of brokers, and the rate of moves between log dirs. What
-- deletes all that an entity has, deletes each of these, unless the request sets it anew. A row without
-- a config_key is a request too large to be kept.
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
    cluster_id,
    event_date,
    event_time,
    broker_id,
    api,
    principal,
    client_id,
    client_address,
    entity_type,
    entity_name,
    throttle_key AS config_key,
    operation,
    config_value,
    error_code,
    error_message,
    source_topic,
    source_partition,
    source_offset
FROM meant
WHERE nth_last = 1
UNION ALL
SELECT
    cluster_id,
    event_date,
    event_time,
    broker_id,
    api,
    principal,
    client_id,
    client_address,
    entity_type,
    entity_name,
    config_key,
    operation,
    config_value,
    error_code,
    error_message,
    source_topic,
    source_partition,
    source_offset
FROM config_alterations
WHERE entity_type IS NULL AND api <> 'ALTER_CLIENT_QUOTAS'
