-- kind: staging
-- grain: one row per config
-- area: cluster
-- level: admin_api
-- question: Configs. Which configs of brokers and topics are set, and to what?
-- description: The value of each config in the last snapshot.
-- columns:
--   from configs: cluster_id, entity_type, entity_name, config_key
--   config_value: its value; null: it is sensitive or unset
--   from configs: config_source, is_sensitive
--   valid_from: time of the snapshot that saw this value first
SELECT
    *,
    event_time AS valid_from
FROM (
    SELECT
        *,
        row_number() OVER (
            PARTITION BY cluster_id, entity_type, entity_name, config_key ORDER BY event_time DESC
        ) AS age
    FROM configs
) AS aged
WHERE age = 1 AND NOT is_removed
