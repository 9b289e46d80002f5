-- One row per config as the last snapshot found it.
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
