-- kind: staging
-- grain: one row per push of a client instance
-- area: telemetry
-- level: telemetry
-- description: Telemetry pushes (KIP-714), each once even if it came in by several routes. If one of
--   the routes is the request log, that row is kept, because it has the broker's answer. Batches of an
--   OpenTelemetry Collector are left out: they are not pushes of one client instance.
-- columns:
--   from telemetry_pushes: cluster_id, event_time, broker_id, client_instance_id, principal, client_id,
--     client_software_name, client_software_version, client_address, client_port, listener,
--     security_protocol, connection_id, accepted, error_code, terminating, compression, subscription_id
--   push_interval_ms: push interval of the subscription, by any of the routes of the push
--   from telemetry_pushes: wire_bytes, decoded_bytes, payload_sha256, unreadable_reason, route
WITH payloads AS (
    SELECT
        cluster_id,
        client_instance_id,
        payload_sha256,
        count(*) AS pushes,
        count(*) = 1 OR (count(*) = 2 AND min(route) <> max(route)) AS is_once_a_route,
        min(CASE route WHEN 'request_log' THEN '' ELSE route END) AS first_route,
        max(push_interval_ms) AS known_interval_ms
    FROM telemetry_pushes
    WHERE client_instance_id IS NOT NULL
    GROUP BY cluster_id, client_instance_id, payload_sha256
),
once AS (
    -- Nearly all, and to sort them takes longer than to join them.
    SELECT pushes.*, payloads.known_interval_ms
    FROM telemetry_pushes AS pushes
    INNER JOIN payloads
        ON pushes.cluster_id = payloads.cluster_id
        AND pushes.client_instance_id = payloads.client_instance_id
        AND pushes.payload_sha256 IS NOT DISTINCT FROM payloads.payload_sha256
    WHERE
        payloads.is_once_a_route
        AND (
            payloads.pushes = 1
            OR payloads.first_route
            = CASE pushes.route WHEN 'request_log' THEN '' ELSE pushes.route END
        )
),
counted AS (
    SELECT
        pushes.*,
        row_number() OVER (
            PARTITION BY
                pushes.cluster_id, pushes.client_instance_id, pushes.payload_sha256, pushes.route
            ORDER BY
                pushes.event_time, pushes.source_topic, pushes.source_partition,
                pushes.source_offset
        ) AS nth
    FROM telemetry_pushes AS pushes
    INNER JOIN payloads
        ON pushes.cluster_id = payloads.cluster_id
        AND pushes.client_instance_id = payloads.client_instance_id
        AND pushes.payload_sha256 IS NOT DISTINCT FROM payloads.payload_sha256
    WHERE NOT payloads.is_once_a_route
),
ranked AS (
    SELECT
        *,
        row_number() OVER (
            PARTITION BY cluster_id, client_instance_id, payload_sha256, nth
            ORDER BY CASE route WHEN 'request_log' THEN 0 ELSE 1 END, route,
                event_time, source_topic, source_partition, source_offset
        ) AS choice,
        max(push_interval_ms) OVER (
            PARTITION BY cluster_id, client_instance_id, payload_sha256, nth
        ) AS known_interval_ms
    FROM counted
)
SELECT
    *,
    known_interval_ms AS push_interval_ms
FROM once
UNION ALL
SELECT
    *,
    known_interval_ms AS push_interval_ms
FROM ranked
WHERE choice = 1
