-- kind: mart
-- grain: one row per configured client-metrics resource
-- area: telemetry
-- level: admin_api
-- question: Subscriptions. Which metrics does the cluster ask of which clients?
-- description: The client-metrics subscriptions of the cluster (KIP-714) and how many clients each
--   matches, of those that requested a subscription within a day of the last snapshot.
-- columns:
--   from current_configs: cluster_id
--   subscription: name of the client-metrics resource
--   metrics: prefixes of the metrics it requests, comma-separated, as configured; null: not set
--   interval_ms: its push interval as configured, in ms; null: not set
--   effective_interval_ms: the most that its interval can be in effect, in ms: Kafka takes the least
--     interval of all matching resources and its default of 300000
--   match: selectors of the clients it applies to, as configured; null: not set
--   valid_from: time of the snapshot that saw its newest config first
--   matched_clients: client instances that it matches; 0: none
--   pending: those that were answered before the resources changed and sent no request since
--   mispredicted_clients: those that a broker answered with another subscription than predicted
WITH resources AS (
    SELECT
        cluster_id,
        entity_name AS subscription,
        max(CASE WHEN config_key = 'metrics' THEN config_value END) AS metrics,
        CAST(max(CASE WHEN config_key = 'interval.ms' THEN config_value END) AS INT) AS interval_ms,
        max(CASE WHEN config_key = 'match' THEN config_value END) AS match,
        max(valid_from) AS valid_from
    FROM current_configs
    WHERE entity_type = 'client-metrics'
    GROUP BY cluster_id, entity_name
)

SELECT
    *,
    resources.cluster_id,
    resources.subscription,
    CASE WHEN interval_ms > 300000 THEN 300000 ELSE interval_ms END AS effective_interval_ms,
    count(client_instance_id) AS matched_clients,
    sum(CASE WHEN state = 'pending' THEN 1 ELSE 0 END) AS pending,
    sum(CASE WHEN state = 'differs' THEN 1 ELSE 0 END) AS mispredicted_clients
FROM resources
LEFT JOIN client_subscriptions AS clients
    ON resources.cluster_id = clients.cluster_id
        AND array_contains(clients.subscriptions, resources.subscription)
GROUP BY 1, 2, 3, 4, 5, 6, 7
