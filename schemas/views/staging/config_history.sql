-- kind: staging
-- grain: one row per config and period in which its value did not change
-- area: cluster
-- level: admin_api
-- description: The values of each config over time, as snapshots saw them. A change between two
--   snapshots counts from the later one.
-- columns:
--   from configs: cluster_id, entity_type, entity_name, config_key
--   config_value: its value; null: it is sensitive or unset
--   previous_value: value before valid_from, by the snapshot that saw it last; null: it was not set,
--     it is sensitive, or the first snapshot found this one. config_value_changes also has what the
--     request log shows between two snapshots
--   from configs: config_source, is_sensitive
--   valid_from: time of the snapshot that saw this value first
--   valid_to: time of the snapshot that saw the next value or no such config; null: the last snapshot
--     still found this one
WITH changes AS (
    SELECT
        *,
        lead(event_time) OVER of_config AS valid_to,
        lag(CASE WHEN NOT is_removed THEN config_value END) OVER of_config AS previous_value
    FROM configs
    WINDOW of_config AS (
        PARTITION BY cluster_id, entity_type, entity_name, config_key ORDER BY event_time
    )
)

SELECT
    *,
    event_time AS valid_from
FROM changes
WHERE NOT is_removed
