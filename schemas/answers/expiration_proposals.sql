-- kind: proposal
-- grain: one row per broker whose producer ids will take more heap than their bound, and whose
--   producer.id.expiration.ms can be shorter without a cost to a producer that snapshots show (view
--   producer_id_heap)
-- area: producer_ids
-- level: admin_api
-- description: One row {per}.
-- lookbacks:
--   active_producers: at most 14 d
--   producer_id_uses: 14 d
--   pipeline_progress: 14 d
-- evidence:
--   forecast_bytes (bytes): heap that ids will take at the broker
--   bound_bytes (bytes): its bound by conf
--   expiration_ms (ms): producer.id.expiration.ms now, from any source
--   least_expiration_ms (ms): the shortest that costs no live producer its id

SELECT
    heap.cluster_id,
    'broker' AS entity_type,
    CAST(heap.broker_id AS STRING) AS entity_name,
    'producer.id.expiration.ms' AS config_key,
    CAST(heap.recommended_expiration_ms AS STRING) AS config_value,
    configs.config_value AS prior_value,
    'producer_ids_outlast_heap' AS reason_code,
    heap.forecast_bytes,
    heap.bound_bytes,
    heap.expiration_ms,
    heap.least_expiration_ms,
    'producer_id_heap' AS evidence_table,
    concat('broker_id=', CAST(heap.broker_id AS STRING)) AS evidence_key,
    heap.snapshot_time AS since,
    15 AS priority,
    CASE
        WHEN coalesce(lower(settings.setting_value), 'false') <> 'true' THEN 'expiration_not_managed'
    END AS blocked_reason,
    CAST(heap.expiration_ms AS DOUBLE) AS quota_in_force,
    CAST(heap.forecast_bytes AS DOUBLE) AS offence,
    CAST(heap.least_expiration_ms AS DOUBLE) AS least_value
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
