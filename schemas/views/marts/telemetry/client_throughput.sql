-- kind: mart
-- grain: one row per client instance and minute in which its counters came
-- area: telemetry
-- level: telemetry
-- description: Records and bytes that each client instance sends or consumes, by its own counters. The
--   increase of a push counts in the minute in which the push ends, by the client's clock. Because
--   elapsed_ms is the time that the increases cover, records_sent * 1000 / elapsed_ms is a rate even if
--   the push interval is longer than a minute. librdkafka pushes only the bytes of share consumers.
-- columns:
--   from metric_totals: cluster_id
--   minute: start of the minute in which the pushes ended
--   from metric_totals: client_instance_id, principal, client_id, client_software_name,
--     client_software_version
--   records_sent: records sent; null: the client does not push this counter
--   bytes_sent: bytes sent to all topics, after compression; null: the client does not push this
--     counter
--   records_consumed: records consumed; null: the client does not push this counter
--   bytes_consumed: bytes consumed; null: the client does not push this counter
--   elapsed_ms: time that the increases cover, in ms; time of lost pushes is left out
WITH increases AS (
    SELECT
        *,
        date_trunc('minute', event_time) AS minute,
        CASE temporality WHEN 'delta' THEN start_time ELSE last_event_time END AS span_start,
        CASE metric
            WHEN 'org.apache.kafka.producer.record.send.total' THEN 'records_sent'
            WHEN 'org.apache.kafka.producer.topic.byte.total' THEN 'bytes_sent'
            WHEN 'org.apache.kafka.consumer.fetch.manager.records.consumed.total' THEN 'records_in'
            WHEN 'org.apache.kafka.consumer.fetch.manager.bytes.consumed.total' THEN 'bytes_in'
            WHEN 'org.apache.kafka.consumer.share.fetch.manager.records.consumed.total'
                THEN 'records_in'
            WHEN 'org.apache.kafka.consumer.share.fetch.manager.bytes.consumed.total'
                THEN 'bytes_in'
        END AS counter
    FROM metric_totals
),
series AS (
    SELECT
        cluster_id,
        minute,
        client_instance_id,
        principal,
        client_id,
        client_software_name,
        client_software_version,
        counter,
        sum(increase) AS increase,
        min(unix_micros(span_start)) AS first_start,
        max(unix_micros(event_time)) AS last_end,
        -- A client pushes all its counters at once: what one misses between points, all miss.
        max(unix_micros(event_time)) - min(unix_micros(span_start))
        - sum(unix_micros(event_time) - unix_micros(span_start)) AS lost
    FROM increases
    -- Consumers also push each count per topic.
    WHERE counter = 'bytes_sent' OR (counter IS NOT NULL AND topic IS NULL)
    GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, series_id
)
SELECT
    *,
    sum(CASE WHEN counter = 'records_sent' THEN increase END) AS records_sent,
    sum(CASE WHEN counter = 'bytes_sent' THEN increase END) AS bytes_sent,
    sum(CASE WHEN counter = 'records_in' THEN increase END) AS records_consumed,
    sum(CASE WHEN counter = 'bytes_in' THEN increase END) AS bytes_consumed,
    (max(last_end) - min(first_start) - greatest(max(lost), 0)) / 1e3 AS elapsed_ms
FROM series
GROUP BY ALL
