-- kind: intermediate
-- grain: one row per rule of conf with open alerts whose clients are still active
-- description: The client-metrics resource that requests more metrics from exactly these clients while
--   their alerts are open (KIP-714). If there are more clients than the value of one config can name,
--   the clients with the newest alerts are left out.
-- columns:
--   from metric_alerts: cluster_id, rule
--   entity_name: name of the client-metrics resource
--   metrics: prefixes to request
--   interval_ms: push interval to request, in ms
--   client_instance_ids: client instances that match, sorted, at most 1000
--   clients: client instances with open alerts of the rule
--   omitted_clients: those of them that the resource cannot name
--   pushes_per_s: pushes per second that the resource would cause
--   wire_bytes_per_s: bytes per second on the wire that it would cause, by the size of these clients'
--     pushes so far (fewer metrics make smaller ones); null: no push is known
--   since: when the first of the alerts opened
--   metric: metric of the alerts
--   bound: bound of the rule, in unit
--   unit: unit of the metric; null: not known
WITH clients AS (
    SELECT
        alerts.cluster_id,
        rule,
        alerts.client_instance_id,
        max(subscribe_metrics) AS subscribe_metrics,
        max(subscribe_interval_ms) AS subscribe_interval_ms,
        min(opened_at) AS since,
        max(metric) AS metric,
        max(bound) AS bound,
        max(unit) AS unit,
        max(avg_wire_bytes) AS avg_wire_bytes
    FROM metric_alerts AS alerts
    INNER JOIN client_instances AS instances
        ON alerts.cluster_id = instances.cluster_id
            AND alerts.client_instance_id = instances.client_instance_id
            AND instances.ended IS NULL
    LEFT JOIN push_sizes AS sizes
        ON alerts.cluster_id = sizes.cluster_id
            AND alerts.client_instance_id = sizes.client_instance_id
    WHERE is_open AND subscribe_metrics IS NOT NULL
    GROUP BY alerts.cluster_id, rule, alerts.client_instance_id
),
ordered AS (
    SELECT
        *,
        row_number() OVER (PARTITION BY cluster_id, rule ORDER BY since, client_instance_id) AS nth,
        count(*) OVER (PARTITION BY cluster_id, rule) AS clients
    FROM clients
)

SELECT
    cluster_id,
    rule,
    concat('quotaflow-alert-', rule) AS entity_name,
    max(subscribe_metrics) AS metrics,
    max(subscribe_interval_ms) AS interval_ms,
    array_sort(array_agg(client_instance_id)) AS client_instance_ids,
    max(clients) AS clients,
    max(clients) - count(*) AS omitted_clients,
    count(*) * 1e3 / max(subscribe_interval_ms) AS pushes_per_s,
    sum(avg_wire_bytes) * 1e3 / max(subscribe_interval_ms) AS wire_bytes_per_s,
    min(since) AS since,
    max(metric) AS metric,
    max(bound) AS bound,
    max(unit) AS unit
FROM ordered
WHERE nth <= 1000
GROUP BY cluster_id, rule
