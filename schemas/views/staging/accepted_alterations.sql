-- kind: staging
-- grain: one row per accepted request and config or quota that it altered
-- area: configs
-- level: sampled_log
-- description: Alterations that a broker accepted. A request that deletes all configs of an entity, or
--   a topic, has a row for each config of the entity that the log names, unless it also sets the config.
-- history: config_alterations
-- columns:
--   from config_alterations: cluster_id, event_time, broker_id, api, principal, client_id,
--     client_software_name, client_address, entity_type, entity_name, entity_client_id
--   config_key: name of the config or quota
--   from config_alterations: operation, config_value, position, source_partition, source_offset
WITH taken AS (
    SELECT *
    FROM config_alterations
    WHERE error_code = 0 AND entity_type IS NOT NULL
),
named_keys AS (
    SELECT DISTINCT
        cluster_id,
        entity_type,
        entity_name,
        entity_client_id,
        config_key
    FROM taken
    WHERE config_key IS NOT NULL
),
altered AS (
    SELECT
        named_keys.config_key AS altered_key,
        taken.*,
        count(taken.config_key) OVER (
            PARTITION BY
                taken.cluster_id,
                taken.source_topic,
                taken.source_partition,
                taken.source_offset,
                taken.entity_type,
                taken.entity_name,
                named_keys.config_key
        ) AS naming_rows
    FROM named_keys
    INNER JOIN taken
        ON named_keys.cluster_id = taken.cluster_id
            AND named_keys.entity_type = taken.entity_type
            AND named_keys.entity_name = taken.entity_name
            AND (named_keys.entity_client_id IS NOT DISTINCT FROM taken.entity_client_id)
            AND coalesce(taken.config_key, named_keys.config_key) = named_keys.config_key
)

SELECT
    *,
    altered_key AS config_key
FROM altered
WHERE config_key IS NOT NULL OR naming_rows = 0
