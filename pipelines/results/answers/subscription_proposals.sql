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
