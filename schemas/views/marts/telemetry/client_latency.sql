-- kind: mart
-- grain: one row per client instance, broker, API and minute in which the client pushed a latency
-- area: telemetry
-- level: telemetry
-- question: Latency by client. How long do clients wait for brokers, as they see it?
-- description: Request latency as clients measure it, and the part of it that no request explains which
--   the broker logged. PRODUCE has the node.request.latency of producers, FETCH that of consumers. Both
--   cover all requests to the node, except those to coordinators. A metric without samples (NaN in
--   Java, 0 in librdkafka) is left out. A push says neither how many requests its average has, nor
--   always of which time they are. So averages of client and broker are of different requests, and
--   only bounds are compared.
-- columns:
--   from client_metrics: cluster_id
--   minute: start of the minute, by the client's clock
--   from client_metrics: client_instance_id, principal
--   client_id: client.id as the client gave it, '' without one: untrusted text
--   from client_metrics: client_software_name, client_software_version
--   broker_id: broker that the client measured
--   api: PRODUCE or FETCH
--   latency_avg_ms: mean of the averages that the client pushed in the minute, in ms. Each push counts
--     the same, with two requests or with thirty: it is no mean over requests
--   latency_max_ms: greatest maximum that the client pushed in the minute, in ms
--   broker_requests: requests in the request log that can be among those that the client measured:
--     with this principal, client_id and broker, of all APIs but those of coordinators and of the other
--     kind of client, from a minute before the time of the pushes to a minute after it, by the broker's
--     clock. A push without a start is of the last minute: Java averages over 30 to 60 s. Null: there are none
--   broker_total_max_ms: longest time from receive to sent of those requests, in ms
--   throttled_requests: those of them that a quota throttled
--   slowest_outside_ms: latency_max_ms - broker_total_max_ms: at least so long was the slowest request
--     outside the broker: in the network, in the client, in a login, which no log has, or behind
--     earlier requests of its connection, of which a broker reads one at a time. In ms; null: it
--     cannot be computed
--   outside_avg_ms: the same of the mean request, at least: the least average that the client pushed in
--     the minute, less broker_total_max_ms; null: it cannot be computed, or is not positive
--   outside_unknown: why slowest_outside_ms is null, as a code: no_latency (the client pushed no
--     maximum), no_requests (the log has none of the client), incomplete_log (ingest sampled the log,
--     or lines have no time), throttled (the time for which a broker muted the connection may be in
--     the latency; Java clients wait before they send), within_broker (the broker took as long for a request)
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
        min(CASE WHEN metric LIKE '%.avg' THEN value END) AS least_avg_ms,
        max(CASE WHEN metric LIKE '%.max' THEN value END) AS latency_max_ms,
        date_trunc('minute', min(coalesce(start_time, event_time - INTERVAL 1 MINUTE)))
        - INTERVAL 1 MINUTE AS first_minute
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
        event_time,
        principal,
        coalesce(client_id, '') AS client_id,
        broker_id,
        api AS served_api,
        request_count,
        throttled_requests,
        longest_time_ms,
        line_count = request_count AND timed_requests = request_count AS is_complete
    FROM request_times
    -- A connection of its own to the coordinator has these.
    WHERE api NOT IN (
            'JOIN_GROUP', 'SYNC_GROUP', 'HEARTBEAT', 'LEAVE_GROUP', 'OFFSET_COMMIT', 'OFFSET_FETCH',
            'CONSUMER_GROUP_HEARTBEAT', 'SHARE_GROUP_HEARTBEAT', 'STREAMS_GROUP_HEARTBEAT',
            'INIT_PRODUCER_ID', 'ADD_PARTITIONS_TO_TXN', 'ADD_OFFSETS_TO_TXN', 'TXN_OFFSET_COMMIT',
            'END_TXN'
        )
),
sides AS (
    SELECT
        readings.cluster_id,
        readings.minute,
        readings.client_instance_id,
        readings.principal,
        readings.client_id,
        readings.client_software_name,
        readings.client_software_version,
        readings.broker_id,
        readings.api,
        readings.latency_avg_ms,
        readings.least_avg_ms,
        readings.latency_max_ms,
        sum(served.request_count) AS broker_requests,
        max(served.longest_time_ms) AS broker_total_max_ms,
        sum(served.throttled_requests) AS throttled_requests,
        count(CASE WHEN served.is_complete THEN 1 END) = count(served.request_count) AS is_complete
    FROM readings
    LEFT JOIN served
        ON readings.cluster_id = served.cluster_id
        AND readings.principal = served.principal
        AND readings.client_id = served.client_id
        AND readings.broker_id = served.broker_id
        AND readings.api <> CASE
            WHEN served.served_api = 'PRODUCE' THEN 'FETCH'
            WHEN served.served_api IN ('FETCH', 'SHARE_FETCH', 'SHARE_ACKNOWLEDGE') THEN 'PRODUCE'
            ELSE ''
        END
        AND served.event_time
        BETWEEN readings.first_minute AND readings.minute + INTERVAL 1 MINUTE
    GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12
),
explained AS (
    SELECT
        *,
        CASE
            WHEN latency_max_ms IS NULL THEN 'no_latency'
            WHEN broker_requests IS NULL THEN 'no_requests'
            WHEN NOT is_complete THEN 'incomplete_log'
            WHEN throttled_requests > 0 AND coalesce(client_software_name, '') <> 'apache-kafka-java'
                THEN 'throttled'
            WHEN latency_max_ms <= broker_total_max_ms THEN 'within_broker'
        END AS outside_unknown
    FROM sides
)
SELECT
    cluster_id,
    minute,
    client_instance_id,
    principal,
    client_id,
    client_software_name,
    client_software_version,
    broker_id,
    api,
    latency_avg_ms,
    latency_max_ms,
    broker_requests,
    broker_total_max_ms,
    throttled_requests,
    CASE WHEN outside_unknown IS NULL THEN latency_max_ms - broker_total_max_ms END
        AS slowest_outside_ms,
    CASE
        WHEN outside_unknown IS NULL AND least_avg_ms > broker_total_max_ms
            THEN least_avg_ms - broker_total_max_ms
    END AS outside_avg_ms,
    outside_unknown
FROM explained
