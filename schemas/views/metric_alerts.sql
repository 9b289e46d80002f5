-- One row per alert on client metrics: readings of one series past the bound of a rule of conf for
-- longer than its hold time, by the client's clock. is_open: neither cleared nor stale by now.
-- closed_at, reason: when and why it ended (cleared, or stale: the client said nothing more);
-- duration_ms: from the first breach to the end, while open to the last event told of it.
WITH ordered AS (
    SELECT
        *,
        row_number() OVER (PARTITION BY cluster_id, alert_id ORDER BY event_time DESC) AS from_end,
        min(event_time) OVER (PARTITION BY cluster_id, alert_id) AS opened_at
    FROM metric_alert_events
    WHERE state <> 'closed' OR event_time <= current_timestamp()
)

SELECT
    cluster_id,
    alert_id,
    rule,
    state <> 'closed' AS is_open,
    first_breach,
    opened_at,
    CASE WHEN state = 'closed' THEN event_time END AS closed_at,
    reason,
    unix_millis(event_time) - unix_millis(first_breach) AS duration_ms,
    metric,
    bound,
    value,
    peak_value,
    unit,
    points,
    client_instance_id,
    principal,
    client_id,
    client_software_name,
    client_software_version,
    client_address,
    broker_id,
    ask_metrics,
    ask_interval_ms,
    attributes,
    series_id
FROM ordered
WHERE from_end = 1
