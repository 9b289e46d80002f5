-- kind: mart
-- grain: one row per alert
-- area: pipeline
-- level: admin_api
-- question: All alerts. Which rules of conf were true, of what, and for how long?
-- description: Alerts of all rules of conf: on metrics of clients, and on rows of tables, views and
--   answers. An alert on a row ends when the row is gone (cleared), or its rule is (retired).
-- history: metric_alert_events
-- columns:
--   from metric_alert_events: cluster_id, alert_id, rule, severity, owner, watched
--   is_open: the alert has not ended
--   from metric_alert_events: first_breach
--   opened_at: when the rule's for_s had passed
--   closed_at: when it ended; null while it is open
--   from metric_alert_events: reason
--   duration_ms: time from first_breach to its end, in ms; if it is stale, to the last reading. While
--     it is open, to its newest event: its opening, and then one an hour (still_open)
--   points: readings in duration_ms: while it is open, those since its newest event are not counted
--   from metric_alert_events: attributes, shown, metric, bound, value, peak_value, unit,
--     client_instance_id, principal, client_id, client_software_name, client_software_version,
--     client_address, broker_id, subscribe_metrics, subscribe_interval_ms, series_id
WITH ordered AS (
    SELECT
        *,
        row_number() OVER (PARTITION BY cluster_id, alert_id ORDER BY event_time DESC) AS from_end,
        min(event_time) OVER (PARTITION BY cluster_id, alert_id) AS opened_at
    FROM metric_alert_events
    WHERE state <> 'pending'
        AND reason IS DISTINCT FROM 'brief'
        AND (state <> 'closed' OR event_time <= current_timestamp())
)

SELECT
    *,
    state <> 'closed' AS is_open,
    CASE WHEN state = 'closed' THEN event_time END AS closed_at,
    unix_millis(CASE WHEN reason = 'stale' THEN coalesce(last_reading, event_time) ELSE event_time END)
    - unix_millis(first_breach) AS duration_ms
FROM ordered
WHERE from_end = 1
