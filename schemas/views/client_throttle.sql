-- One row per client, api (PRODUCE or FETCH) and minute in which the client told its throttle time
-- or a broker throttled it. throttle_time_max_ms is the client's own, by its clock, null where it
-- told none; broker_* are of all requests of its principal and client_id (which several instances
-- may share) over all brokers, by their clock, null where the request log knows none.
WITH told AS (
    SELECT
        cluster_id,
        date_trunc('minute', event_time) AS minute,
        client_instance_id,
        principal,
        coalesce(client_id, '') AS client_id,
        client_software_name,
        client_software_version,
        CASE WHEN metric LIKE 'org.apache.kafka.producer.%' THEN 'PRODUCE' ELSE 'FETCH' END AS api,
        max(value) AS throttle_time_max_ms
    FROM client_metrics
    WHERE metric IN (
            'org.apache.kafka.producer.produce.throttle.time.max',
            'org.apache.kafka.consumer.fetch.manager.fetch.throttle.time.max'
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
    WHERE api IN ('PRODUCE', 'FETCH') AND replica_id IS NULL
    GROUP BY 1, 2, 3, 4, 5
)
SELECT
    coalesce(told.cluster_id, throttled.cluster_id) AS cluster_id,
    coalesce(told.minute, throttled.minute) AS minute,
    client_instance_id,
    coalesce(told.principal, throttled.principal) AS principal,
    coalesce(told.client_id, throttled.client_id) AS client_id,
    client_software_name,
    client_software_version,
    coalesce(told.api, throttled.api) AS api,
    throttle_time_max_ms,
    broker_requests,
    broker_throttled_requests,
    broker_throttle_time_ms,
    broker_throttle_time_max_ms
FROM told
FULL OUTER JOIN throttled
    ON told.cluster_id = throttled.cluster_id
    AND told.minute = throttled.minute
    AND told.principal = throttled.principal
    AND told.client_id = throttled.client_id
    AND told.api = throttled.api
WHERE told.minute IS NOT NULL OR broker_throttled_requests > 0
