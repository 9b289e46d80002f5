-- One row per state a broker was in, and from when to when snapshots saw it: valid_to is null while
-- it stands.
WITH changes AS (
    SELECT
        *,
        lead(event_time) OVER (
            PARTITION BY cluster_id, broker_id ORDER BY event_time
        ) AS valid_to
    FROM brokers
)

SELECT
    cluster_id,
    broker_id,
    host,
    port,
    rack,
    is_controller,
    is_fenced,
    event_time AS valid_from,
    valid_to
FROM changes
WHERE NOT is_removed
