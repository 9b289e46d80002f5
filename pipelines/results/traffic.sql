-- Bytes produced and consumed by broker, client, topic and minute.
-- A refused partition moves nothing. Without acks (acks=0) no refusal is ever reported.
WITH each AS (
    SELECT
        cluster_id, broker_id, principal, client_id, floored(event_time, 60) AS event_time,
        if(api = 'PRODUCE', 'produced', 'consumed') AS direction,
        rack_id AS client_rack, weight_of(weight) AS weight, unnest(partitions) AS part
    FROM requests
)
SELECT
    cluster_id, CAST(event_time AS DATE) AS event_date, event_time, broker_id, principal, client_id,
    direction, part.topic AS topic, part.topic_id AS topic_id, client_rack,
    sum(part.bytes * weight) AS bytes
FROM each
WHERE part.bytes > 0 AND coalesce(part.error_code, 0) = 0
GROUP BY ALL
