-- kind: mart
-- grain: one row per point of a push that the broker accepted
-- area: telemetry
-- level: telemetry
-- question: OpenTelemetry points. What do clients push, in the columns of OTLP tables?
-- description: Client metrics in the shape of Databricks' OTLP metrics tables (schema version v2), as
--   far as both engines have it: their VARIANT is MAP<STRING, STRING> here, and the struct of another
--   kind than metric_type is null. Exemplars have the fields of client_metrics.
-- columns:
--   from otel_points: record_id
--   time: time of the point, by the client's clock
--   date: UTC date of time
--   from otel_points: service_name, start_time_unix_nano, time_unix_nano
--   name: metric name as sent
--   description: description of the metric; not stored, always null
--   from otel_points: unit
--   metric_type: gauge, sum, histogram, exponential_histogram or summary
--   gauge: the point of a gauge, as OTLP has it
--   sum: the point of a sum, as OTLP has it
--   histogram: the point of a histogram, as OTLP has it
--   exponential_histogram: the point of an exponential histogram, as OTLP has it
--   summary: the point of a summary, as OTLP has it
--   from otel_points: metadata
--   resource: OTLP resource: its attributes and the number of attributes that were dropped
--   resource_schema_url: schema URL of the resource; not stored, always null
--   from otel_points: instrumentation_scope
--   metric_schema_url: schema URL of the metric; not stored, always null
SELECT
    *,
    event_time AS time,
    CAST(event_time AS DATE) AS date,
    metric AS name,
    CAST(NULL AS STRING) AS description,
    kind AS metric_type,
    CASE WHEN kind = 'gauge' THEN named_struct(
        'value', value, 'exemplars', exemplars, 'attributes', attributes, 'flags', flags
    ) END AS gauge,
    CASE WHEN kind = 'sum' THEN named_struct(
        'value', value, 'exemplars', exemplars, 'attributes', attributes, 'flags', flags,
        'aggregation_temporality', aggregation_temporality, 'is_monotonic', is_monotonic
    ) END AS sum,
    CASE WHEN kind = 'histogram' THEN named_struct(
        'count', histogram_count, 'sum', histogram_sum, 'bucket_counts', histogram_bucket_counts,
        'explicit_bounds', histogram_bounds, 'exemplars', exemplars, 'attributes', attributes,
        'flags', flags, 'min', histogram_min, 'max', histogram_max,
        'aggregation_temporality', aggregation_temporality
    ) END AS histogram,
    CASE WHEN kind = 'exponential_histogram' THEN named_struct(
        'attributes', attributes, 'count', histogram_count, 'sum', histogram_sum,
        'scale', exponential_scale, 'zero_count', exponential_zero_count,
        'positive_bucket', exponential_positive, 'negative_bucket', exponential_negative,
        'flags', flags, 'exemplars', exemplars, 'min', histogram_min, 'max', histogram_max,
        'zero_threshold', exponential_zero_threshold,
        'aggregation_temporality', aggregation_temporality
    ) END AS exponential_histogram,
    CASE WHEN kind = 'summary' THEN named_struct(
        'count', histogram_count, 'sum', histogram_sum, 'quantile_values', quantiles,
        'attributes', attributes, 'flags', flags
    ) END AS summary,
    otel_resource AS resource,
    CAST(NULL AS STRING) AS resource_schema_url,
    CAST(NULL AS STRING) AS metric_schema_url
FROM otel_points
