-- kind: staging
-- grain: one row per point of a push that the broker accepted, without twins of topics (is_topic_twin)
-- area: telemetry
-- level: telemetry
-- description: Points of client metrics with the columns that both shapes of an OTLP metrics table
--   share (see otel_metrics). Times after the year 2262 do not fit a BIGINT of nanoseconds and are null
--   there.
-- columns:
--   from client_metrics: cluster_id, event_time, start_time, metric, kind, value, value_int, unit,
--     in_catalogue, temporality, is_monotonic, flags, histogram_count, histogram_sum, histogram_min,
--     histogram_max, histogram_bounds, histogram_bucket_counts, exponential_scale,
--     exponential_zero_count, exponential_zero_threshold, exponential_positive, exponential_negative,
--     quantiles, exemplars, attributes, resource, scope_name, scope_version, series_id,
--     client_instance_id, principal, client_id, client_software_name, client_software_version,
--     client_address, client_port, listener, broker_id, accepted, topic, partition, node_id, node_kind,
--     group_id, group_instance_id, member_id, transactional_id, application_id, client_rack,
--     payload_sha256, record_time
--   record_id: id of the point, made of its time and a hash of cluster, payload, series and start;
--     sorts by time and never changes
--   service_name: resource attribute service.name; Kafka clients send none: then the Streams
--     application id, the consumer group, or the client.id, the first that there is
--   start_time_unix_nano: start of the point's span, in nanoseconds since 1970 UTC; null: the client
--     sent none
--   time_unix_nano: time of the point, in nanoseconds since 1970 UTC
--   aggregation_temporality: temporality of sums and histograms, as OTLP's enum names it; null for
--     other kinds
--   otel_resource: OTLP resource: its attributes and the number of attributes that were dropped
--   instrumentation_scope: OTLP scope: its name and version; its attributes are not stored and are null
--   metadata: OTLP metadata of the metric; not stored, always null
SELECT
    *,
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
    coalesce(
        resource['service.name'], application_id, nullif(group_id, ''), nullif(client_id, '')
    ) AS service_name,
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
WHERE coalesce(accepted, TRUE) AND NOT coalesce(is_topic_twin, FALSE)
