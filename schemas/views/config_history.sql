-- One row per value a config had, and from when to when snapshots saw it: valid_to is null while it
-- stands. Times are those of snapshots, so a change between two of them counts from the later one.
WITH changes AS (
    SELECT
        *,
        lead(event_time) OVER (
            PARTITION BY cluster_id, entity_type, entity_name, config_key ORDER BY event_time
        ) AS valid_to
    FROM configs
)

SELECT
    cluster_id,
    entity_type,
    entity_name,
    config_key,
    config_value,
    config_source,
    is_sensitive,
    event_time AS valid_from,
    valid_to
FROM changes
WHERE NOT is_removed
