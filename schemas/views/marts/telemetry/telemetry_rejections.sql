-- kind: mart
-- grain: one row per principal, program and error code of rejected pushes
-- area: telemetry
-- level: telemetry
-- question: Rejected pushes. Whose metrics did brokers reject, and why?
-- description: How often each client's pushes were rejected, and whether their data is stored all the
--   same: the request log has the payloads of rejected pushes too, so client_metrics has their points
--   with accepted = false.
-- columns:
--   from unique_pushes: cluster_id, principal
--   client_id: client.id, as the client gave it; of several ids of one program what they share, with *
--     for what varies: producer-*
--   client_ids: client ids of the program whose pushes were rejected
--   client_instances: their client instances
--   error_code: error that the broker answered; null: not known
--   from error_names: error_name
--   pushes: rejected pushes
--   first_seen: first rejected push
--   last_seen: last rejected push
--   delta_points: deltas of sums in their payloads, in client_metrics
--   recovered_points: those of them whose span no accepted point of the series covers
WITH rejected AS (
    SELECT *
    FROM client_metrics
    WHERE NOT accepted AND kind = 'sum' AND temporality = 'delta'
),
covered AS (
    SELECT DISTINCT rejected.cluster_id, rejected.series_id, rejected.event_time
    FROM rejected
    INNER JOIN client_metrics USING (cluster_id, series_id)
    WHERE client_metrics.accepted
        AND client_metrics.start_time < rejected.event_time
        AND client_metrics.event_time > rejected.start_time
),
points AS (
    SELECT
        rejected.cluster_id,
        rejected.client_instance_id,
        rejected.payload_sha256,
        count(*) AS delta_points,
        sum(CASE WHEN covered.series_id IS NULL THEN 1 ELSE 0 END) AS recovered_points
    FROM rejected
    LEFT JOIN covered USING (cluster_id, series_id, event_time)
    GROUP BY rejected.cluster_id, rejected.client_instance_id, rejected.payload_sha256
),
refused AS (
    SELECT
        *,
        program_of(client_id) AS client_pattern,
        row_number() OVER (
            PARTITION BY cluster_id, client_instance_id, payload_sha256 ORDER BY event_time
        ) AS nth
    FROM unique_pushes
    WHERE NOT accepted
)
SELECT
    pushes.*,
    CASE WHEN count(DISTINCT pushes.client_id) > 1 THEN client_pattern ELSE max(pushes.client_id) END
        AS client_id,
    count(DISTINCT pushes.client_id) AS client_ids,
    count(DISTINCT pushes.client_instance_id) AS client_instances,
    max(names.error_name) AS error_name,
    count(*) AS pushes,
    min(pushes.event_time) AS first_seen,
    max(pushes.event_time) AS last_seen,
    coalesce(sum(points.delta_points), 0) AS delta_points,
    coalesce(sum(points.recovered_points), 0) AS recovered_points
FROM refused AS pushes
LEFT JOIN error_names AS names USING (error_code)
LEFT JOIN points
    -- The points of a payload are there once, however often it was sent.
    ON pushes.nth = 1
    AND pushes.cluster_id = points.cluster_id
    AND pushes.client_instance_id = points.client_instance_id
    AND pushes.payload_sha256 = points.payload_sha256
GROUP BY pushes.cluster_id, pushes.principal, client_pattern, pushes.error_code
