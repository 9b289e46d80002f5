-- kind: result
-- grain: one row per event of an alert
-- area: telemetry
-- level: admin_api
-- description: One row {per}: a reading of a client past the bound of a rule of conf for longer than its
--   for_s (KIP-714), by the client's clock; or a row of a table, view or answer that a rule names
-- key: cluster_id, alert_id, event_time
-- time: event_time
-- partitioning: event_date
-- facts: client_metrics
-- relevant: $alert_readings
-- scope: watched IS NULL
-- bucket: 1 min
-- lookback: $alert_memory_s
-- carry: $alert_memory_s
-- carry_key: cluster_id, rule, series_id
-- split_by: cluster_id, series_id
-- columns:
--   from client_metrics: cluster_id
--   event_date DATE: UTC date of event_time
--   event_time TIMESTAMP: when it happened, by the client's clock; of a row when a job or a snapshot
--     saw it. Ahead of now: when the alert will be closed as stale if no reading comes; alerts
--     leaves it out until then
--   alert_id STRING: hash of cluster, rule, series or key, and first_breach
--   rule STRING: name of the rule in conf
--   severity STRING: severity of the rule: critical, warning or info; null: conf has the rule no
--     longer
--   owner STRING: team that the rule names; null: none
--   watched STRING: table, view or answer whose rows the rule watches; null: it watches a metric
--   state STRING: pending (a row is there, for_s has not passed), opened, still_open (of a reading,
--     once an hour while open) or closed
--   reason STRING: why it was closed: cleared, stale (no reading for stale_s), brief (the row was gone
--     before for_s) or retired (conf has the rule no longer)
--   first_breach TIMESTAMP: first reading past the bound, or when the row was first seen
--   last_reading TIMESTAMP: last reading by then, by which the client was still there; null: a row
--   bound DOUBLE: bound of the rule
--   value DOUBLE: last reading by then, in the metric's unit
--   peak_value DOUBLE: worst reading from first_breach to then
--   points BIGINT: readings from first_breach to then
--   subscribe_metrics STRING: prefixes that the rule subscribes to while open; null: none
--   subscribe_interval_ms INT: push interval of that subscription, in ms
--   series_id BIGINT: series of client_metrics; null: a row
--   from client_metrics: metric, unit
--   attributes MAP<STRING, STRING>: attributes of the point; of a row the values of the rule's key
--   shown MAP<STRING, STRING>: further values of the row, as the rule names them; null: a reading
--   from client_metrics: client_instance_id, principal, client_id, client_software_name,
--     client_software_version, client_address, broker_id

-- Events of alerts on client metrics (KIP-714), as udfs/rules/alert.py finds them in the readings of
-- a series. The columns from conf are null if conf has the rule no longer.
SELECT
    cluster_id, CAST(from_millis(event_ms) AS DATE) AS event_date,
    from_millis(event_ms) AS event_time, alert_id, rule, severity, owner, NULL AS watched,
    state, reason, from_millis(first_breach_ms) AS first_breach,
    from_millis(last_reading_ms) AS last_reading, bound, value, peak_value, points,
    subscribe_metrics, subscribe_interval_ms, series_id, metric, unit, attributes, NULL AS shown,
    client_instance_id, principal, client_id, client_software_name, client_software_version,
    client_address, broker_id
FROM alert_events LEFT JOIN alert_rules USING (rule)
