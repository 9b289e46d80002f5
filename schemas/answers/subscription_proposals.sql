-- kind: answer
-- grain: one row per rule of conf with open alerts whose clients are still active
-- area: telemetry
-- level: sampled_log
-- description: The client- metrics resource that requests more metrics from exactly these clients
--   while their alerts are open (KIP-714). If there are more clients than the value of one config
--   can name, the clients with the newest alerts are left out.
-- key: cluster_id, rule
-- time: since
-- clustering: since, rule
-- lookbacks:
--   telemetry_pushes: 7 d
-- expiry: SELECT min(event_time) AS expires_at FROM metric_alert_events WHERE state = 'closed' AND
--   event_time > current_timestamp()
-- columns:
--   from client_coverage: cluster_id
--   rule STRING: name of the rule in conf
--   entity_name STRING: name of the client-metrics resource
--   metrics STRING: prefixes to request
--   interval_ms INT: push interval to request, in ms
--   client_instance_ids ARRAY<STRING>: client instances that match, sorted, at most 1000
--   clients BIGINT: client instances with open alerts of the rule
--   omitted_clients BIGINT: those of them that the resource cannot name
--   pushes_per_s DOUBLE: pushes per second that the resource would cause
--   wire_bytes_per_s DOUBLE: bytes per second on the wire that it would cause, by the size of these
--     clients' pushes so far (fewer metrics make smaller ones); null: of one of them no push is
--     known
--   since TIMESTAMP: when the first of the alerts opened
--   metric STRING: metric of the alerts
--   bound DOUBLE: bound of the rule, in unit
--   unit STRING: unit of the metric; null: not known

WITH sizes AS (
    SELECT
        pushes.cluster_id,
        pushes.client_instance_id,
        -- The request log alone has the size on the wire.
        avg(CAST(CASE WHEN route = 'request_log' THEN wire_bytes END AS DOUBLE)) AS avg_wire_bytes
    FROM unique_pushes AS pushes
    INNER JOIN client_coverage AS coverage
        ON pushes.cluster_id = coverage.cluster_id
            AND pushes.client_instance_id = coverage.client_instance_id
            AND coverage.state = 'active'
    WHERE
        pushes.accepted
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
    INNER JOIN client_coverage AS coverage
        ON alerts.cluster_id = coverage.cluster_id
            AND alerts.client_instance_id = coverage.client_instance_id
            AND coverage.state = 'active'
    LEFT JOIN sizes
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
