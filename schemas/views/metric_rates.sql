-- One row per sum point that counts (see metric_totals): its increase, the time it took and so its
-- rate. span_ms: of a delta from start_time to event_time, of a cumulative value from the point
-- before. rate_per_s is null where span_ms is unknown, 0 or negative (a client's clock went back).
WITH spans AS (
    SELECT
        *,
        CASE temporality
            WHEN 'delta' THEN unix_micros(event_time) - unix_micros(start_time)
            ELSE unix_micros(event_time) - unix_micros(last_event_time)
        END / 1e3 AS span_ms
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
    span_ms,
    CASE WHEN span_ms > 0 THEN increase / span_ms * 1e3 END AS rate_per_s,
    is_gap,
    is_overlap,
    is_reset,
    is_negative,
    is_recovered
FROM spans
