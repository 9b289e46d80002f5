-- One row per client instance, broker, api and minute in which the client told a latency: PRODUCE
-- holds what producers say (node.request.latency), FETCH what consumers say, all their requests to
-- that node included; coordinators' connections are left out. latency_*_ms are the client's, the
-- minute is by its clock; broker_* are of the requests of its principal and client_id (which
-- several instances may share) in the request log, by the broker's clock. network_avg_ms is
-- latency_avg_ms - broker_total_avg_ms: network and client. No samples (NaN in Java, 0 in
-- librdkafka) are no latency.
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
