SELECT
    heap.cluster_id,
    heap.broker_id,
    heap.recommended_expiration_ms,
    configs.config_value AS prior_value,
    heap.expiration_ms,
    heap.least_expiration_ms,
    heap.forecast_bytes,
    heap.bound_bytes,
    heap.snapshot_time AS since,
    CASE
        WHEN coalesce(lower(settings.setting_value), 'false') <> 'true' THEN 'expiration_not_managed'
    END AS blocked_reason
FROM producer_id_heap AS heap
LEFT JOIN current_configs AS configs
    ON heap.cluster_id = configs.cluster_id
        AND configs.entity_type = 'broker'
        AND configs.entity_name = CAST(heap.broker_id AS STRING)
        AND configs.config_key = 'producer.id.expiration.ms'
        AND configs.config_source = 'DYNAMIC_BROKER_CONFIG'
LEFT JOIN current_settings AS settings
    ON heap.cluster_id = settings.cluster_id
        AND settings.setting = 'producer_ids.manage_expiration'
WHERE heap.recommended_expiration_ms IS NOT NULL
