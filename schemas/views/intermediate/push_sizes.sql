-- kind: intermediate
-- grain: one row per client instance
-- description: How large the accepted pushes of each client instance are on average, each counted once
--   (KIP-714).
-- columns:
--   from unique_pushes: cluster_id, client_instance_id
--   pushes: accepted pushes
--   avg_wire_bytes: mean size of a payload on the wire, in bytes; null: no push came by the request
--     log, which alone has it
--   avg_decoded_bytes: mean size of a payload decompressed, in bytes
--   avg_points: data points of client_metrics per push; null: there are none
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
