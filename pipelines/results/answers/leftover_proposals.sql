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
