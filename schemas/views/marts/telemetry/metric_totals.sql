-- kind: mart
-- grain: one row per series and event_time
-- area: telemetry
-- level: telemetry
-- question: Counters. How much and how fast does a counter of a client grow?
-- description: How much and how fast each counter of a client grew, and its total, by event_time.
--   The increase of a delta is its value. The increase of a cumulative point is the difference to the
--   point before: 0 at the first point, and the value itself after a reset. A client that restarts is a
--   new series. Only finite values count, each series and time once. A delta that the broker rejected
--   counts only if no accepted point of its series covers its span and no later rejected one does.
--   What a client sends a second time under a topic with '_' in place of '.' is left out (is_topic_twin
--   of client_metrics).
-- columns:
--   from client_metrics: cluster_id, event_time, start_time
--   last_event_time: time of the point before in the series; null at the first
--   from client_metrics: series_id, client_instance_id, principal, client_id, client_software_name,
--     client_software_version, broker_id, metric, unit, temporality, topic, partition, node_id,
--     node_kind, group_id, attributes
--   increase: growth since the point before, in unit
--   elapsed_ms: time of the increase, in ms: of a delta from start_time to event_time, of a cumulative
--     point since the point before; null: not known
--   rate_per_s: increase per second, in unit per second; null: elapsed_ms is not known, 0 or negative
--     (the client's clock went back)
--   total: sum of the increases of the series up to this point, in unit
--   is_gap: start_time is more than 1 ms after the point before: points are missing between them
--   gap_ms: length of that gap, in ms; null without one
--   is_overlap: a delta whose start_time is before the point before
--   is_reset: a cumulative series restarted: its start_time changed, or a monotonic value fell
--   is_negative: increase is below 0
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
        AND NOT coalesce(is_topic_twin, FALSE)
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
),
points AS (
    SELECT
        *,
        NOT is_counted AS is_recovered
    FROM covered
    WHERE is_counted
        OR (
            start_time IS NOT NULL
            AND coalesce(covered_until <= start_time, TRUE)
            AND coalesce(covered_from >= event_time, TRUE)
        )
),
ordered AS (
    SELECT
        *,
        lag(event_time) OVER series AS last_event_time,
        lag(start_time) OVER series AS last_start_time,
        lag(value) OVER series AS last_value
    FROM points
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
        END AS increase,
        CASE temporality
            WHEN 'delta' THEN unix_micros(event_time) - unix_micros(start_time)
            ELSE unix_micros(event_time) - unix_micros(last_event_time)
        END / 1e3 AS elapsed_ms
    FROM compared
)
SELECT
    *,
    CASE WHEN elapsed_ms > 0 THEN increase / elapsed_ms * 1e3 END AS rate_per_s,
    sum(increase) OVER (
        PARTITION BY cluster_id, series_id ORDER BY event_time
        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS total,
    gap > 1 AS is_gap,
    CASE WHEN gap > 1 THEN gap END AS gap_ms,
    temporality = 'delta' AND gap < 0 AS is_overlap,
    increase < 0 AS is_negative
FROM increases
