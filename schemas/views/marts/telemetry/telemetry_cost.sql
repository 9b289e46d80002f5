-- kind: mart
-- grain: one row per hour, broker and codec
-- area: telemetry
-- level: telemetry
-- question: Cost of telemetry. How much do pushes of metrics cost?
-- description: What telemetry pushes cost, each push counted once for all its routes
--   (unique_pushes). Only rows of the request log have bytes on the wire and a codec: the receiver gets
--   payloads decompressed, so a push that only it has counts as codec unknown without wire_bytes.
-- columns:
--   from unique_pushes: cluster_id
--   hour: start of the hour
--   from unique_pushes: broker_id
--   compression: codec: none, gzip, snappy, lz4, zstd, id N, or unknown
--   pushes: pushes, rejected ones included
--   pushes_per_s: pushes per second over the whole hour, even if it has not ended
--   wire_bytes: bytes of their payloads on the wire; null: not known
--   decoded_bytes: bytes of their payloads decompressed, of those that could be; null: of none
--   ratio: decoded_bytes / wire_bytes of the pushes that have both; null: none has
--   plain_over_1000_bytes: pushes of more than 1000 bytes that the client did not compress
--   rejected: pushes that the broker did not accept
--   throttled: those of them that came too early (error 89)
--   terminating: last pushes of client instances
WITH pushes_of_codec AS (
    SELECT
        cluster_id,
        date_trunc('hour', event_time) AS hour,
        broker_id,
        CASE route WHEN 'request_log' THEN compression ELSE 'unknown' END AS compression,
        CASE route WHEN 'request_log' THEN wire_bytes END AS wire_bytes,
        decoded_bytes,
        accepted,
        error_code,
        terminating
    FROM unique_pushes
)
SELECT
    *,
    count(*) AS pushes,
    count(*) / 3.6e3 AS pushes_per_s,
    sum(wire_bytes) AS wire_bytes,
    sum(decoded_bytes) AS decoded_bytes,
    CAST(sum(CASE WHEN wire_bytes > 0 THEN decoded_bytes END) AS DOUBLE)
        / sum(CASE WHEN wire_bytes > 0 AND decoded_bytes IS NOT NULL THEN wire_bytes END) AS ratio,
    sum(CASE WHEN compression = 'none' AND wire_bytes > 1000 THEN 1 ELSE 0 END)
        AS plain_over_1000_bytes,
    sum(CASE WHEN accepted THEN 0 ELSE 1 END) AS rejected,
    sum(CASE WHEN error_code = 89 THEN 1 ELSE 0 END) AS throttled,
    sum(CASE WHEN terminating THEN 1 ELSE 0 END) AS terminating
FROM pushes_of_codec
GROUP BY ALL
