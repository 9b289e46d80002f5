-- kind: mart
-- grain: one row per client instance, API and minute in which the client pushed a throttle time or a
--   broker throttled the client
-- area: telemetry
-- level: telemetry
-- question: Throttle times by client. How long was a client throttled, by its own metrics?
-- description: Throttling as clients measure it, beside what brokers log. A client that brokers
--   throttle and that pushes nothing has a row without client_instance_id.
-- columns:
--   from client_metrics: cluster_id
--   minute: start of the minute, by the clock of the client or of the brokers
--   from client_metrics: client_instance_id, principal
--   client_id: client.id as the client gave it, '' without one: untrusted text
--   from client_metrics: client_software_name, client_software_version
--   api: PRODUCE, FETCH, or SHARE_FETCH of share groups
--   throttle_time_max_ms: longest throttle time that the client pushed, in ms; null: it pushed none
--   broker_requests: requests in the request log with this principal, client_id, API and minute, over
--     all brokers; several instances can share a client_id; null: there are none
--   broker_throttled_requests: those of them that were throttled
--   broker_throttle_time_ms: sum of their throttle times, in ms
--   broker_throttle_time_max_ms: longest of their throttle times, in ms
WITH measured AS (
    SELECT
        cluster_id,
        date_trunc('minute', event_time) AS minute,
        client_instance_id,
        principal,
        coalesce(client_id, '') AS client_id,
        client_software_name,
        client_software_version,
        CASE
            WHEN metric LIKE 'org.apache.kafka.producer.%' THEN 'PRODUCE'
            WHEN metric LIKE 'org.apache.kafka.consumer.share.%' THEN 'SHARE_FETCH'
            ELSE 'FETCH'
        END AS api,
        max(value) AS throttle_time_max_ms
    FROM client_metrics
    WHERE metric IN (
            'org.apache.kafka.producer.produce.throttle.time.max',
            'org.apache.kafka.consumer.fetch.manager.fetch.throttle.time.max',
            'org.apache.kafka.consumer.share.fetch.manager.fetch.throttle.time.max'
        )
        AND value BETWEEN 0 AND 1e300
    GROUP BY 1, 2, 3, 4, 5, 6, 7, 8
),
throttled AS (
    SELECT
        cluster_id,
        date_trunc('minute', event_time) AS minute,
        principal,
        coalesce(client_id, '') AS client_id,
        api,
        count(*) AS broker_requests,
        sum(CASE WHEN throttle_time_ms > 0 THEN 1 ELSE 0 END) AS broker_throttled_requests,
        sum(throttle_time_ms) AS broker_throttle_time_ms,
        max(throttle_time_ms) AS broker_throttle_time_max_ms
    FROM requests
    WHERE api IN ('PRODUCE', 'FETCH', 'SHARE_FETCH') AND replica_id IS NULL
    GROUP BY 1, 2, 3, 4, 5
)
SELECT
    *,
    coalesce(measured.cluster_id, throttled.cluster_id) AS cluster_id,
    coalesce(measured.minute, throttled.minute) AS minute,
    coalesce(measured.principal, throttled.principal) AS principal,
    coalesce(measured.client_id, throttled.client_id) AS client_id,
    coalesce(measured.api, throttled.api) AS api
FROM measured
FULL OUTER JOIN throttled USING (cluster_id, minute, principal, client_id, api)
WHERE measured.minute IS NOT NULL OR broker_throttled_requests > 0
