-- What the walk over alerts reads, by series and time: readings, and the last events before them.
WITH
-- A row per reading and rule that names it.
readings AS (
    SELECT
        cluster_id, rule, series_id, epoch_millis(event_time) AS event_ms, false AS is_carried,
        value, metric, unit, attributes, client_instance_id, principal, client_id,
        client_software_name, client_software_version, client_address, broker_id
    FROM client_metrics JOIN alert_rules
    ON metric LIKE pattern ESCAPE '!'
        AND list_has_all(coalesce(map_entries(attributes), []), map_entries(labels))
    -- A point that a client sends under two names of a topic is one reading: that which a rule names.
    WHERE NOT coalesce(is_topic_twin, false) OR list_contains(map_keys(labels), 'topic')
),
-- A row per series and rule: the last event that the table has already.
carried AS (
    SELECT
        cluster_id, rule, series_id, epoch_millis(event_time) AS event_ms, true AS is_carried,
        value, metric, unit, attributes, client_instance_id, principal, client_id,
        client_software_name, client_software_version, client_address, broker_id,
        state, reason, epoch_millis(first_breach) AS first_breach_ms, peak_value, points
    FROM carried_rows
)
SELECT * FROM readings UNION ALL BY NAME SELECT * FROM carried
-- From left to right. An event follows the readings of its own time, because it includes them.
ORDER BY ALL
