-- kind: proposal
-- grain: one row per config of a client-metrics resource that open alerts need, or that nothing
--   needs any more
-- area: telemetry
-- level: sampled_log
-- description: For each rule of conf with open alerts whose clients are still active, the resource
--   that requests more metrics from exactly these clients (KIP-714). If there are more clients than
--   the value of one config can name, the clients with the newest alerts are left out. Resources of
--   alerts that are closed, and those that `quotaflow troubleshoot` left behind, are to be removed.
-- lookbacks:
--   telemetry_pushes: 7 d
-- expiry: SELECT min(event_time) AS expires_at FROM metric_alert_events WHERE state = 'closed' AND
--   event_time > current_timestamp()
-- evidence:
--   bound (unit of the metric): bound of the rule
--   clients (clients): active client instances with open alerts of the rule
--   omitted_clients (clients): those of them that the resource cannot name
--   pushes_per_s (pushes/s): pushes that the resource would cause
--   wire_bytes_per_s (bytes/s): bytes on the wire that it would cause, by the size of these clients'
--     pushes so far (fewer metrics make smaller ones); of one of them no push may be known

WITH sizes AS (
    SELECT
        pushes.cluster_id,
        pushes.client_instance_id,
        -- The request log alone has the size on the wire.
        avg(CAST(CASE WHEN route = 'request_log' THEN wire_bytes END AS DOUBLE)) AS avg_wire_bytes
    FROM unique_pushes AS pushes
    INNER JOIN client_coverage AS coverage USING (cluster_id, client_instance_id)
    WHERE
        coverage.state = 'active'
        AND pushes.accepted
        AND unix_millis(pushes.event_time) >= unix_millis(coverage.as_of) - 604800000
    GROUP BY pushes.cluster_id, pushes.client_instance_id
),
clients AS (
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
    LEFT JOIN sizes USING (cluster_id, client_instance_id)
    INNER JOIN client_coverage AS coverage USING (cluster_id, client_instance_id)
    WHERE coverage.state = 'active' AND is_open AND subscribe_metrics IS NOT NULL
    GROUP BY alerts.cluster_id, rule, alerts.client_instance_id
),
ordered AS (
    SELECT
        *,
        row_number() OVER (PARTITION BY cluster_id, rule ORDER BY since, client_instance_id) AS nth,
        count(*) OVER (PARTITION BY cluster_id, rule) AS clients
    FROM clients
),
proposed AS (
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
        CASE
            WHEN count(avg_wire_bytes) = count(*)
                THEN sum(avg_wire_bytes) * 1e3 / max(subscribe_interval_ms)
        END AS wire_bytes_per_s,
        min(since) AS since,
        max(metric) AS metric,
        max(bound) AS bound,
        max(unit) AS unit
    FROM ordered
    WHERE nth <= 1000
    GROUP BY cluster_id, rule
),
resources AS (
    SELECT * FROM current_configs WHERE entity_type = 'client-metrics'
)

SELECT
    proposed.cluster_id,
    'client-metrics' AS entity_type,
    proposed.entity_name,
    keys.config_key,
    CASE keys.config_key
        WHEN 'metrics' THEN proposed.metrics
        WHEN 'interval.ms' THEN CAST(proposed.interval_ms AS STRING)
        ELSE concat('client_instance_id=', array_join(proposed.client_instance_ids, '|'))
    END AS config_value,
    resources.config_value AS prior_value,
    'alert_open' AS reason_code,
    proposed.bound,
    proposed.unit AS bound_unit,
    proposed.clients,
    proposed.omitted_clients,
    proposed.pushes_per_s,
    proposed.wire_bytes_per_s,
    proposed.rule AS reason_detail,
    proposed.metric AS subject,
    'metric_alerts' AS evidence_table,
    concat('rule=', proposed.rule, ' is_open') AS evidence_key,
    proposed.since,
    20 AS priority
FROM proposed
CROSS JOIN (VALUES ('metrics'), ('interval.ms'), ('match')) AS keys (config_key)
LEFT JOIN resources USING (cluster_id, entity_name, config_key)
UNION ALL
SELECT
    resources.cluster_id,
    'client-metrics' AS entity_type,
    resources.entity_name,
    resources.config_key,
    resources.config_value AS prior_value,
    CASE
        WHEN resources.entity_name LIKE 'quotaflow-alert-%' THEN 'alerts_closed'
        ELSE 'troubleshoot_ended'
    END AS reason_code,
    'current_configs' AS evidence_table,
    concat('entity_name=', resources.entity_name) AS evidence_key,
    resources.valid_from AS since,
    20 AS priority
FROM resources
LEFT JOIN proposed USING (cluster_id, entity_name)
WHERE proposed.entity_name IS NULL AND (
    resources.entity_name LIKE 'quotaflow-alert-%'
    OR resources.entity_name LIKE 'quotaflow-troubleshoot-%-until-%'
)
