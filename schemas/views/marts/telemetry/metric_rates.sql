-- kind: mart
-- grain: one row per series and event_time
-- area: telemetry
-- level: telemetry
-- description: The rate at which each counter of a client grows, from metric_totals.
-- columns:
--   from metric_totals: cluster_id, event_time, series_id, client_instance_id, principal, client_id,
--     client_software_name, client_software_version, broker_id, metric, unit, temporality, topic,
--     partition, node_id, node_kind, group_id, attributes, increase
--   elapsed_ms: time of the increase, in ms: of a delta from start_time to event_time, of a cumulative
--     point since the point before; null: not known
--   rate_per_s: increase per second, in unit per second; null: elapsed_ms is not known, 0 or negative
--     (the client's clock went back)
--   from metric_totals: is_gap, is_overlap, is_reset, is_negative, is_recovered
WITH timed AS (
    SELECT
        *,
        CASE temporality
            WHEN 'delta' THEN unix_micros(event_time) - unix_micros(start_time)
            ELSE unix_micros(event_time) - unix_micros(last_event_time)
        END / 1e3 AS elapsed_ms
    FROM metric_totals
)
SELECT
    cluster_id,
    event_time,
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
    elapsed_ms,
    CASE WHEN elapsed_ms > 0 THEN increase / elapsed_ms * 1e3 END AS rate_per_s,
    is_gap,
    is_overlap,
    is_reset,
    is_negative,
    is_recovered
FROM timed
