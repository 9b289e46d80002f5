-- kind: staging
-- grain: one row per series and event_time
-- description: The points of client metrics of kind sum that count towards totals: finite values only,
--   each series and time once. A delta that the broker rejected counts only if no accepted point of its
--   series covers its span and no later rejected one does.
-- columns:
--   from client_metrics: cluster_id, event_time, start_time, series_id, client_instance_id, principal,
--     client_id, client_software_name, client_software_version, broker_id, metric, unit, temporality,
--     is_monotonic
--   value: value of the sum, in unit: the increase since start_time of a delta, the total of a
--     cumulative point
--   from client_metrics: topic, partition, node_id, node_kind, group_id, attributes
--   is_recovered: the broker rejected the push, and the point counts because no other one covers its
--     span
WITH unique_points AS (
    SELECT
        *,
        coalesce(accepted, TRUE) OR temporality = 'cumulative' AS is_counted,
        row_number() OVER (
            PARTITION BY cluster_id, series_id, event_time
            ORDER BY accepted DESC NULLS LAST, start_time, value DESC, payload_sha256
        ) AS choice
    FROM client_metrics
    WHERE kind = 'sum' AND temporality IN ('delta', 'cumulative') AND abs(value) < 1e300
),
covered AS (
    SELECT
        *,
        max(CASE WHEN is_counted THEN event_time END) OVER (
            PARTITION BY cluster_id, series_id ORDER BY event_time
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS covered_until,
        min(start_time) OVER (
            PARTITION BY cluster_id, series_id ORDER BY event_time DESC
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS covered_from
    FROM unique_points
    WHERE choice = 1
)
SELECT
    cluster_id,
    event_time,
    start_time,
    series_id,
    client_instance_id,
    principal,
    client_id,
    client_software_name,
    client_software_version,
    broker_id,
    metric,
    unit,
    temporality,
    is_monotonic,
    value,
    topic,
    partition,
    node_id,
    node_kind,
    group_id,
    attributes,
    NOT is_counted AS is_recovered
FROM covered
WHERE is_counted
    OR (
        start_time IS NOT NULL
        AND coalesce(covered_until <= start_time, TRUE)
        AND coalesce(covered_from >= event_time, TRUE)
    )
