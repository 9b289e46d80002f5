-- kind: mart
-- grain: one row per series and event_time
-- description: How much each counter of a client grew, and its running total (see sum_points for the
--   points that count), in order of event_time. The increase of a delta is its value. The increase of a
--   cumulative point is the difference to the point before: 0 at the first point, and the value itself
--   after a reset. A client that restarts is a new series.
-- columns:
--   from sum_points: cluster_id, event_time, start_time
--   last_event_time: time of the point before in the series; null at the first
--   from sum_points: series_id, client_instance_id, principal, client_id, client_software_name,
--     client_software_version, broker_id, metric, unit, temporality, topic, partition, node_id,
--     node_kind, group_id, attributes
--   increase: growth since the point before, in unit
--   total: sum of the increases of the series up to this point, in unit
--   is_gap: start_time is more than 1 ms after the point before: points are missing between them
--   gap_ms: length of that gap, in ms; null without one
--   is_overlap: a delta whose start_time is before the point before
--   is_reset: a cumulative series restarted: its start_time changed, or a monotonic value fell
--   is_negative: increase is below 0
--   from sum_points: is_recovered
WITH ordered AS (
    SELECT
        *,
        lag(event_time) OVER series AS last_event_time,
        lag(start_time) OVER series AS last_start_time,
        lag(value) OVER series AS last_value
    FROM sum_points
    WINDOW series AS (PARTITION BY cluster_id, series_id ORDER BY event_time)
),
compared AS (
    SELECT
        *,
        coalesce((unix_micros(start_time) - unix_micros(last_event_time)) / 1e3, 0) AS gap,
        coalesce(
            temporality = 'cumulative'
            AND (
                start_time <> last_start_time
                OR (coalesce(is_monotonic, TRUE) AND value < last_value)
            ),
            FALSE
        ) AS is_reset
    FROM ordered
),
increases AS (
    SELECT
        *,
        CASE
            WHEN temporality = 'delta' OR is_reset THEN value
            ELSE coalesce(value - last_value, 0)
        END AS increase
    FROM compared
)
SELECT
    cluster_id,
    event_time,
    start_time,
    last_event_time,
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
    topic,
    partition,
    node_id,
    node_kind,
    group_id,
    attributes,
    increase,
    sum(increase) OVER (
        PARTITION BY cluster_id, series_id ORDER BY event_time
        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS total,
    gap > 1 AS is_gap,
    CASE WHEN gap > 1 THEN gap END AS gap_ms,
    temporality = 'delta' AND gap < 0 AS is_overlap,
    is_reset,
    increase < 0 AS is_negative,
    is_recovered
FROM increases
