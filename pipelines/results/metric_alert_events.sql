-- Events of alerts on client metrics (KIP-714), as udfs/rules/alert.py finds them in the readings of
-- a series. The columns from conf are null if conf has the rule no longer.
SELECT
    cluster_id, CAST(from_millis(event_ms) AS DATE) AS event_date,
    from_millis(event_ms) AS event_time, alert_id, rule, state, reason,
    from_millis(first_breach_ms) AS first_breach, bound, value, peak_value, points,
    subscribe_metrics, subscribe_interval_ms, series_id, metric, unit, attributes,
    client_instance_id, principal, client_id, client_software_name, client_software_version,
    client_address, broker_id
FROM alert_events LEFT JOIN alert_rules USING (rule)
