-- One row per client instance (KIP-714): how large its accepted pushes are on average, each counted
-- once. wire_bytes is known of the request log's rows only (see telemetry_cost); points are those of
-- client_metrics per push.
WITH sizes AS (
    SELECT
        cluster_id,
        client_instance_id,
        count(*) AS pushes,
        avg(CAST(CASE WHEN route = 'request_log' THEN wire_bytes END AS DOUBLE)) AS avg_wire_bytes,
        avg(CAST(decoded_bytes AS DOUBLE)) AS avg_decoded_bytes
    FROM unique_pushes
    WHERE accepted AND client_instance_id IS NOT NULL
    GROUP BY cluster_id, client_instance_id
),
points AS (
    SELECT cluster_id, client_instance_id, count(*) AS points
    FROM client_metrics
    WHERE accepted AND client_instance_id IS NOT NULL
    GROUP BY cluster_id, client_instance_id
)

SELECT
    sizes.cluster_id,
    sizes.client_instance_id,
    pushes,
    avg_wire_bytes,
    avg_decoded_bytes,
    CAST(points AS DOUBLE) / pushes AS avg_points
FROM sizes
LEFT JOIN points
    ON sizes.cluster_id = points.cluster_id AND sizes.client_instance_id = points.client_instance_id
