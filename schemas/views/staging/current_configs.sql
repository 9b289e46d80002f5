-- kind: staging
-- grain: one row per config
-- description: The value of each config in the last snapshot.
-- columns:
--   from config_history: cluster_id, entity_type, entity_name, config_key, config_value, config_source,
--     is_sensitive, valid_from
SELECT
    cluster_id,
    entity_type,
    entity_name,
    config_key,
    config_value,
    config_source,
    is_sensitive,
    valid_from
FROM config_history
WHERE valid_to IS NULL
