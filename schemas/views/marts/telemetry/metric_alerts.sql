-- kind: mart
-- grain: one row per alert on client metrics
-- area: telemetry
-- level: telemetry
-- question: Alerts. Which metrics of clients were past the bound of a rule, and for how long?
-- description: Readings of one series past the bound of a rule of conf for longer than the rule's hold
--   time, by the client's clock. An alert ends when a reading is within the bound again (cleared) or
--   when the client sends no more readings (stale).
-- history: metric_alert_events
-- columns:
--   from metric_alert_events: cluster_id, alert_id, rule
--   is_open: the alert is neither cleared nor stale
--   from metric_alert_events: first_breach
--   opened_at: when the hold time had passed
--   closed_at: when it ended; null while it is open
--   from metric_alert_events: reason
--   duration_ms: time from first_breach to its end, in ms; while it is open, to its newest event
--   from metric_alert_events: metric, bound, value, peak_value, unit, points, client_instance_id,
--     principal, client_id, client_software_name, client_software_version, client_address, broker_id,
--     subscribe_metrics, subscribe_interval_ms, attributes, series_id
WITH ordered AS (
    SELECT
        *,
        row_number() OVER (PARTITION BY cluster_id, alert_id ORDER BY event_time DESC) AS from_end,
        min(event_time) OVER (PARTITION BY cluster_id, alert_id) AS opened_at
    FROM metric_alert_events
    WHERE state <> 'closed' OR event_time <= current_timestamp()
)

SELECT
    *,
    state <> 'closed' AS is_open,
    CASE WHEN state = 'closed' THEN event_time END AS closed_at,
    unix_millis(event_time) - unix_millis(first_breach) AS duration_ms
FROM ordered
WHERE from_end = 1
