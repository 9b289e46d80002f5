-- One row per configured client-metrics resource (KIP-714) and the clients it matches, of those that
-- asked within a day of the last snapshot. matched_clients 0: it matches nobody. interval_in_effect_ms:
-- Kafka takes the least of all matching intervals and its default of 300000, so a longer one never
-- takes effect. unlike_predicted: matched clients whose broker answered otherwise.
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
    resources.cluster_id,
    resources.subscription,
    metrics,
    interval_ms,
    CASE WHEN interval_ms > 300000 THEN 300000 ELSE interval_ms END AS interval_in_effect_ms,
    match,
    valid_from,
    count(client_instance_id) AS matched_clients,
    sum(CASE WHEN state = 'pending' THEN 1 ELSE 0 END) AS pending,
    sum(CASE WHEN state = 'differs' THEN 1 ELSE 0 END) AS unlike_predicted
FROM resources
LEFT JOIN client_subscriptions AS clients
    ON resources.cluster_id = clients.cluster_id
        AND array_contains(clients.subscriptions, resources.subscription)
GROUP BY 1, 2, 3, 4, 5, 6, 7
