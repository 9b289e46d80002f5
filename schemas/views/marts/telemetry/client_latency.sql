-- kind: mart
-- grain: one row per client instance, broker, API and minute in which the client pushed a latency
-- area: telemetry
-- level: telemetry
-- question: Latency by client. How long do clients wait for brokers, as they see it?
-- description: Request latency as clients measure it, beside the broker's own measure of the same
--   requests. PRODUCE has the node.request.latency of producers; FETCH has that of consumers, which
--   covers all their requests to the node except those to coordinators. A metric without samples (NaN
--   in Java, 0 in librdkafka) is left out.
-- columns:
--   from client_metrics: cluster_id
--   minute: start of the minute, by the client's clock
--   from client_metrics: client_instance_id, principal
--   client_id: client.id as the client gave it, '' without one: untrusted text
--   from client_metrics: client_software_name, client_software_version
--   broker_id: broker that the client measured
--   api: PRODUCE or FETCH
--   latency_avg_ms: mean of the averages that the client pushed in the minute, in ms
--   latency_max_ms: greatest maximum that the client pushed in the minute, in ms
--   broker_requests: requests in the request log with this principal, client_id, broker, API and
--     minute, by the broker's clock; several instances can share a client_id; null: there are none
--   broker_total_avg_ms: mean time from receive to sent of those requests, in ms
--   broker_total_max_ms: longest time from receive to sent of those requests, in ms
--   throttled_requests: those of them that a quota throttled
--   throttle_avg_ms: mean part of latency_avg_ms for which a broker muted the connection because of a
--     quota (KIP-219), in ms. librdkafka sends while the connection is muted and measures the wait. The
--     Java client waits before it sends, so its part is 0. Null: how another client measures is not known
--   outside_avg_ms: latency_avg_ms - broker_total_avg_ms - throttle_avg_ms, the time in the network and
--     in the client, in ms; null: it cannot be computed
--   outside_unknown: why outside_avg_ms is null, as a code: no_latency (the client pushed no average),
--     no_requests (the log has none of the client), shared_client_id (requests of several instances have
--     the same client_id), throttled (see throttle_avg_ms), windows_differ (the client measured other
--     requests than the minute has: the difference is negative)
WITH readings AS (
    SELECT
        cluster_id,
        date_trunc('minute', event_time) AS minute,
        client_instance_id,
        principal,
        coalesce(client_id, '') AS client_id,
        client_software_name,
        client_software_version,
        node_id AS broker_id,
        CASE WHEN metric LIKE 'org.apache.kafka.producer.%' THEN 'PRODUCE' ELSE 'FETCH' END AS api,
        avg(CASE WHEN metric LIKE '%.avg' THEN value END) AS latency_avg_ms,
        max(CASE WHEN metric LIKE '%.max' THEN value END) AS latency_max_ms
    FROM client_metrics
    WHERE metric IN (
            'org.apache.kafka.producer.node.request.latency.avg',
            'org.apache.kafka.producer.node.request.latency.max',
            'org.apache.kafka.consumer.node.request.latency.avg',
            'org.apache.kafka.consumer.node.request.latency.max'
        )
        AND node_kind = 'broker'
        AND value BETWEEN 0 AND 1e300
        AND (value > 0 OR client_software_name = 'apache-kafka-java')
    GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9
),
served AS (
    SELECT
        cluster_id,
        event_time AS minute,
        principal,
        coalesce(client_id, '') AS client_id,
        broker_id,
        api,
        sum(request_count) AS broker_requests,
        sum(total_time_ms) / nullif(sum(timed_requests), 0) AS broker_total_avg_ms,
        max(longest_time_ms) AS broker_total_max_ms,
        sum(throttled_requests) AS throttled_requests,
        sum(throttle_time_ms) / sum(request_count) AS answered_throttle_avg_ms
    FROM request_times
    WHERE api IN ('PRODUCE', 'FETCH')
    GROUP BY cluster_id, event_time, principal, coalesce(client_id, ''), broker_id, api
),
sides AS (
    SELECT
        readings.*,
        broker_requests,
        broker_total_avg_ms,
        broker_total_max_ms,
        throttled_requests,
        CASE
            WHEN broker_requests IS NULL THEN NULL
            WHEN throttled_requests = 0 OR client_software_name = 'apache-kafka-java' THEN 0e0
            WHEN client_software_name = 'librdkafka' THEN answered_throttle_avg_ms
        END AS throttle_avg_ms,
        count(*) OVER (
            PARTITION BY readings.cluster_id, readings.minute, readings.principal, readings.client_id,
                readings.broker_id, readings.api
        ) AS instances
    FROM readings
    LEFT JOIN served USING (cluster_id, minute, principal, client_id, broker_id, api)
),
compared AS (
    SELECT
        *,
        latency_avg_ms - broker_total_avg_ms - throttle_avg_ms AS difference_ms
    FROM sides
),
explained AS (
    SELECT
        *,
        CASE
            WHEN latency_avg_ms IS NULL THEN 'no_latency'
            WHEN broker_requests IS NULL THEN 'no_requests'
            WHEN instances > 1 THEN 'shared_client_id'
            WHEN throttle_avg_ms IS NULL THEN 'throttled'
            WHEN difference_ms < 0 THEN 'windows_differ'
        END AS outside_unknown
    FROM compared
)
SELECT
    *,
    CASE WHEN outside_unknown IS NULL THEN difference_ms END AS outside_avg_ms
FROM explained
