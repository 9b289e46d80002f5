-- One row per sum point that counts (see sum_points): increase since the point before it, and
-- total of its series up to it, in event-time order. A delta's value is its increase; a cumulative
-- value's increase is the difference, of the first point 0, after a reset the value itself. A
-- restarted client is a new series. is_gap: start_time is more than 1 ms after the last point, by
-- gap_ms; is_overlap (delta): before it; is_reset (cumulative): start_time changed or a monotonic
-- value fell.
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
