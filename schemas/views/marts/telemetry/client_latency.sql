-- kind: mart
-- grain: one row per client instance, broker, API and minute in which the client pushed a latency
-- area: telemetry
-- level: telemetry
-- question: Latency by client. How long do clients wait for brokers, as they see it?
-- description: Request latency as clients measure it, and the part of it that no request explains which
--   the broker logged. PRODUCE has the node.request.latency of producers, FETCH that of consumers. Java
--   measures only PRODUCE or fetches. Other clients measure all requests to the node. Requests to
--   coordinators have connections of their own. A metric without samples (NaN in Java, 0 in
--   librdkafka) is left out. A push says neither how many requests its average has, nor always of
--   which time they are. So averages of client and broker are of different requests, and only bounds
--   are compared. Some gaps of the log do not show: lines that a broker dropped, APIs other than
--   METADATA that it does not ship, and requests before a login (API_VERSIONS).
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
--     with this principal, client_id and broker, and of an API that it measures. They are from a minute
--     before the span of the pushes to a minute after it. That span ends when a broker took the push
--     (telemetry_pushes). Pushes that a Collector batched have the client's clock. A push without a
--     start is of the last minute: Java averages over 30 to 60 s. Null: there are none
--   broker_total_max_ms: longest time from receive to sent of those requests, in ms
--   throttled_requests: those of them that a quota throttled
--   slowest_outside_ms: latency_max_ms - broker_total_max_ms, in ms. The slowest request spent at least
--     this time outside the broker. It was in the network, in the client, in a login or behind earlier
--     requests of its connection. Null: it cannot be computed
--   outside_avg_ms: least average that the client pushed in the minute, less broker_total_max_ms, in
--     ms. The mean request spent at least this time outside the broker. Null: it cannot be computed, or
--     is not positive
--   outside_unknown: why slowest_outside_ms is null, as a code: no_latency (the client pushed no
--     maximum), no_requests (the log has none of the client), incomplete_log (the log may lack
--     requests: it was sampled, lines have no time, the broker logged no METADATA in this
--     hour and those beside it, or pushes have a span of more than two hours), throttled (the time for
--     which a broker muted the connection may be in the latency; Java clients wait before they send),
--     within_broker (the broker took as long for a request)
WITH pushes AS (
    -- The same payload may have come on two routes, or again.
    SELECT
        cluster_id,
        client_instance_id,
        payload_sha256,
        min(unix_micros(event_time)) AS first_us,
        max(unix_micros(event_time)) AS last_us
    FROM telemetry_pushes
    GROUP BY cluster_id, client_instance_id, payload_sha256
),
points AS (
    SELECT
        points.*,
        coalesce(points.client_software_name, '') = 'apache-kafka-java' AS is_java,
        coalesce(pushes.first_us, unix_micros(points.event_time)) - greatest(
            unix_micros(points.event_time) - unix_micros(
                coalesce(points.start_time, points.event_time - INTERVAL 1 MINUTE)
            ),
            0
        ) AS start_us,
        coalesce(pushes.last_us, unix_micros(points.event_time)) AS end_us
    FROM client_metrics AS points
    LEFT JOIN pushes
        ON points.cluster_id = pushes.cluster_id
        AND points.client_instance_id = pushes.client_instance_id
        AND points.payload_sha256 = pushes.payload_sha256
    WHERE points.metric IN (
            'org.apache.kafka.producer.node.request.latency.avg',
            'org.apache.kafka.producer.node.request.latency.max',
            'org.apache.kafka.consumer.node.request.latency.avg',
            'org.apache.kafka.consumer.node.request.latency.max'
        )
        AND points.node_kind = 'broker'
        AND points.value BETWEEN 0 AND 1e300
),
readings AS (
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
        is_java,
        avg(CASE WHEN metric LIKE '%.avg' THEN value END) AS latency_avg_ms,
        min(CASE WHEN metric LIKE '%.avg' THEN value END) AS least_avg_ms,
        max(CASE WHEN metric LIKE '%.max' THEN value END) AS latency_max_ms,
        CAST(floor(min(start_us) / 60e6) AS BIGINT) - 1 AS first_minute,
        CAST(floor(max(end_us) / 60e6) AS BIGINT) + 1 AS last_minute
    FROM points
    WHERE value > 0 OR is_java
    GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9, 10
),
by_minute AS (
    -- A row is a minute to compare, for a join by equality. A span of years has few of them.
    SELECT
        *,
        explode(sequence(greatest(first_minute, last_minute - 122), last_minute)) AS compared_minute
    FROM readings
),
served AS (
    SELECT
        cluster_id,
        CAST(floor(unix_micros(event_time) / 60e6) AS BIGINT) AS compared_minute,
        principal,
        coalesce(client_id, '') AS client_id,
        broker_id,
        CASE
            WHEN api IN ('FETCH', 'SHARE_FETCH', 'SHARE_ACKNOWLEDGE') THEN 'FETCH'
            WHEN api = 'PRODUCE' THEN 'PRODUCE'
            ELSE 'ANY'
        END AS measured_as,
        sum(request_count) AS request_count,
        sum(throttled_requests) AS throttled_requests,
        max(longest_time_ms) AS longest_time_ms,
        count(CASE WHEN line_count = request_count AND timed_requests = request_count THEN 1 END)
        = count(*) AS is_complete
    FROM request_times
    -- A connection of its own to the coordinator has these. Producers without a transactional id send
    -- INIT_PRODUCER_ID to any broker.
    WHERE api NOT IN (
            'JOIN_GROUP', 'SYNC_GROUP', 'HEARTBEAT', 'LEAVE_GROUP', 'OFFSET_COMMIT', 'OFFSET_FETCH',
            'CONSUMER_GROUP_HEARTBEAT', 'SHARE_GROUP_HEARTBEAT', 'STREAMS_GROUP_HEARTBEAT',
            'ADD_PARTITIONS_TO_TXN', 'ADD_OFFSETS_TO_TXN', 'TXN_OFFSET_COMMIT', 'END_TXN'
        )
    GROUP BY 1, 2, 3, 4, 5, 6
),
whole_logs AS (
    -- Clients send METADATA every five minutes. It is what shippers leave out first.
    SELECT DISTINCT cluster_id, broker_id, explode(sequence(logged_hour - 1, logged_hour + 1)) AS hour
    FROM (
        SELECT
            cluster_id,
            broker_id,
            CAST(floor(unix_micros(event_time) / 3600e6) AS BIGINT) AS logged_hour
        FROM request_times
        WHERE api = 'METADATA'
    ) AS logged
),
sides AS (
    SELECT
        by_minute.cluster_id,
        by_minute.minute,
        by_minute.client_instance_id,
        by_minute.principal,
        by_minute.client_id,
        by_minute.client_software_name,
        by_minute.client_software_version,
        by_minute.broker_id,
        by_minute.api,
        by_minute.is_java,
        by_minute.first_minute,
        by_minute.last_minute,
        by_minute.latency_avg_ms,
        by_minute.least_avg_ms,
        by_minute.latency_max_ms,
        sum(served.request_count) AS broker_requests,
        max(served.longest_time_ms) AS broker_total_max_ms,
        sum(served.throttled_requests) AS throttled_requests,
        count(CASE WHEN served.is_complete THEN 1 END) = count(served.request_count) AS is_complete
    FROM by_minute
    LEFT JOIN served
        ON by_minute.cluster_id = served.cluster_id
        AND by_minute.principal = served.principal
        AND by_minute.client_id = served.client_id
        AND by_minute.broker_id = served.broker_id
        AND by_minute.compared_minute = served.compared_minute
        AND (
            by_minute.api = served.measured_as
            OR (served.measured_as = 'ANY' AND NOT by_minute.is_java)
        )
    GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
),
explained AS (
    SELECT
        sides.*,
        CASE
            WHEN sides.latency_max_ms IS NULL THEN 'no_latency'
            WHEN sides.broker_requests IS NULL THEN 'no_requests'
            WHEN NOT sides.is_complete OR sides.last_minute - sides.first_minute > 122
                THEN 'incomplete_log'
            WHEN NOT sides.is_java AND whole_logs.hour IS NULL THEN 'incomplete_log'
            WHEN sides.throttled_requests > 0 AND NOT sides.is_java THEN 'throttled'
            WHEN sides.latency_max_ms <= sides.broker_total_max_ms THEN 'within_broker'
        END AS outside_unknown
    FROM sides
    LEFT JOIN whole_logs
        ON sides.cluster_id = whole_logs.cluster_id
        AND sides.broker_id = whole_logs.broker_id
        AND CAST(floor(sides.last_minute / 60e0) AS BIGINT) = whole_logs.hour
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
