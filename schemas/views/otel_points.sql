-- One row per point of an accepted push, with what both shapes of an OTLP metrics table share (see
-- otel_metrics). Times past the year 2262 have no number of nanoseconds in a BIGINT: null.
SELECT
    cluster_id,
    event_time,
    start_time,
    metric,
    kind,
    value,
    value_int,
    unit,
    in_catalogue,
    temporality,
    is_monotonic,
    flags,
    histogram_count,
    histogram_sum,
    histogram_min,
    histogram_max,
    histogram_bounds,
    histogram_bucket_counts,
    exponential_scale,
    exponential_zero_count,
    exponential_zero_threshold,
    exponential_positive,
    exponential_negative,
    quantiles,
    exemplars,
    attributes,
    resource,
    scope_name,
    scope_version,
    series_id,
    client_instance_id,
    principal,
    client_id,
    client_software_name,
    client_software_version,
    client_address,
    client_port,
    listener,
    broker_id,
    accepted,
    topic,
    partition,
    node_id,
    node_kind,
    group_id,
    group_instance_id,
    member_id,
    transactional_id,
    application_id,
    client_rack,
    payload_sha256,
    record_time,
    concat(
        lpad(CAST(unix_micros(event_time) AS STRING), 17, '0'), '-',
        md5(
            concat_ws(
                ' ',
                coalesce(cluster_id, '-'),
                coalesce(payload_sha256, '-'),
                coalesce(CAST(series_id AS STRING), '-'),
                coalesce(CAST(unix_micros(start_time) AS STRING), '-')
            )
        )
    ) AS record_id,
    resource['service.name'] AS service_name,
    CASE WHEN unix_micros(start_time) < 9223372036854775 THEN unix_micros(start_time) * 1000 END
        AS start_time_unix_nano,
    CASE WHEN unix_micros(event_time) < 9223372036854775 THEN unix_micros(event_time) * 1000 END
        AS time_unix_nano,
    CASE WHEN kind IN ('sum', 'histogram', 'exponential_histogram') THEN
        CASE temporality
            WHEN 'delta' THEN 'AGGREGATION_TEMPORALITY_DELTA'
            WHEN 'cumulative' THEN 'AGGREGATION_TEMPORALITY_CUMULATIVE'
            ELSE 'AGGREGATION_TEMPORALITY_UNSPECIFIED'
        END
    END AS aggregation_temporality,
    named_struct(
        'attributes', resource,
        'dropped_attributes_count', CASE
            WHEN translate(resource['otel.dropped_attributes_count'], '0123456789', '') = ''
                AND length(resource['otel.dropped_attributes_count']) BETWEEN 1 AND 9
                THEN CAST(resource['otel.dropped_attributes_count'] AS INT)
            ELSE 0
        END
    ) AS otel_resource,
    named_struct(
        'name', scope_name,
        'version', scope_version,
        'attributes', CASE WHEN FALSE THEN attributes END,
        'dropped_attributes_count', CAST(NULL AS INT)
    ) AS instrumentation_scope,
    CASE WHEN FALSE THEN attributes END AS metadata
FROM client_metrics
WHERE coalesce(accepted, TRUE)
