-- kind: answer
-- grain: one row per broker whose producer ids will take more heap than their bound, and whose
--   producer.id.expiration.ms can be shorter without a cost to a producer that snapshots show (view
--   producer_id_heap)
-- area: producer_ids
-- level: admin_api
-- description: One row {per}.
-- key: cluster_id, broker_id
-- time: since
-- clustering: since
-- lookbacks:
--   active_producers: 14 d
--   producer_id_uses: 14 d
--   pipeline_progress: 14 d
-- columns:
--   from configs: cluster_id
--   broker_id INT: broker that leads the partitions
--   recommended_expiration_ms BIGINT: producer.id.expiration.ms that is asked for
--   prior_value STRING: the value that is set on the broker itself; null: none is set
--   expiration_ms BIGINT: its value now, from any source, in ms
--   least_expiration_ms BIGINT: the shortest that costs no live producer its id, in ms
--   forecast_bytes BIGINT: heap that ids will take, in bytes
--   bound_bytes DOUBLE: its bound by conf, in bytes
--   since TIMESTAMP: time of the last snapshot of producers
--   blocked_reason STRING: why no plan may set it, as a code; null: one may

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
