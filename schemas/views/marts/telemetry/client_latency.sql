-- kind: mart
-- grain: one row per client instance, broker, API and minute in which the client pushed a latency
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
--   network_avg_ms: latency_avg_ms - broker_total_avg_ms, the time in the network and the client, in ms
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
        date_trunc('minute', event_time) AS minute,
        principal,
        coalesce(client_id, '') AS client_id,
        broker_id,
        api,
        count(*) AS broker_requests,
        avg(total_time_ms) AS broker_total_avg_ms,
        max(total_time_ms) AS broker_total_max_ms
    FROM requests
    WHERE api IN ('PRODUCE', 'FETCH') AND replica_id IS NULL
    GROUP BY 1, 2, 3, 4, 5, 6
)
SELECT
    readings.*,
    broker_requests,
    broker_total_avg_ms,
    broker_total_max_ms,
    latency_avg_ms - broker_total_avg_ms AS network_avg_ms
FROM readings
LEFT JOIN served
    ON readings.cluster_id = served.cluster_id
    AND readings.minute = served.minute
    AND readings.principal = served.principal
    AND readings.client_id = served.client_id
    AND readings.broker_id = served.broker_id
    AND readings.api = served.api
