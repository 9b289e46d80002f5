-- kind: answer
-- grain: one row per replication throttle that is left over by snapshots alone (view
--   throttle_leftovers), in a cluster without a request log of the last day
-- area: replication
-- level: admin_api
-- description: Nobody knows there who set it, so a plan removes it only if conf's
--   replication.remove_leftovers allows it.
-- empty: where nothing is left over, or a request log shows who set it
-- key: cluster_id, entity_type, entity_name, config_key
-- time: since
-- clustering: since, entity_name
-- lookbacks:
--   pipeline_progress: 7 d
-- columns:
--   from settings: cluster_id
--   entity_type STRING: broker or topic
--   entity_name STRING: node id of the broker, or name of the topic
--   config_key STRING: config of a rate or of a list of throttled replicas
--   prior_value STRING: value in the last snapshot, which is to be removed
--   reason_code STRING: leftover_list or leftover_rate
--   age_s DOUBLE: since how long snapshots show this value, in seconds
--   since TIMESTAMP: time of the last snapshot of configs
--   blocked_reason STRING: why no plan may remove it, as a code; null: one may

WITH logged AS (
    -- Where a request log comes, it shows who set a throttle, and throttle_checks decides.
    SELECT cluster_id, max(event_time) AS logged_at
    FROM pipeline_progress
    WHERE job = 'ingest_request_log' AND outcome = 'in'
    GROUP BY cluster_id
)

SELECT
    left_over.cluster_id,
    left_over.entity_type,
    left_over.entity_name,
    left_over.config_key,
    left_over.config_value AS prior_value,
    CASE left_over.finding WHEN 'stale_list' THEN 'leftover_list' ELSE 'leftover_rate' END
        AS reason_code,
    left_over.age_s,
    left_over.snapshot_time AS since,
    CASE
        WHEN left_over.config_source = 'DYNAMIC_DEFAULT_BROKER_CONFIG' THEN 'default_of_all_brokers'
        WHEN coalesce(lower(settings.setting_value), 'false') <> 'true' THEN 'leftovers_not_managed'
    END AS blocked_reason
FROM throttle_leftovers AS left_over
LEFT JOIN logged ON left_over.cluster_id = logged.cluster_id
LEFT JOIN current_settings AS settings
    ON left_over.cluster_id = settings.cluster_id
        AND settings.setting = 'replication.remove_leftovers'
WHERE
    logged.logged_at IS NULL
    OR unix_millis(left_over.snapshot_time) - unix_millis(logged.logged_at) > 86400000
