-- One row per hour, broker and codec: what pushes cost, each counted once whatever ways it came by
-- (see unique_pushes). Bytes on the wire and their codec are known of the request log's rows only:
-- the receiver gets payloads decompressed, so a push known by it alone has codec unknown and no
-- wire_bytes. ratio is decoded over wire bytes, of pushes with both. plain_over_1000_bytes: pushes
-- a client did not compress though they are that large; throttled: pushed too early (error 89),
-- which counts under rejected too. pushes_per_s is over the whole hour, also over one not yet
-- ended.
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
    cluster_id,
    hour,
    broker_id,
    compression,
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
GROUP BY 1, 2, 3, 4
