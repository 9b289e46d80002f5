-- Bytes produced and consumed by broker, client, topic and minute.
-- A refused partition moves nothing. Without acks (acks=0) no refusal is ever reported.
-- `racks` and `rack_patterns` are conf's, for clients that send no rack.
WITH requested AS (
    SELECT
        cluster_id, broker_id, principal, client_id, client_address,
        floored(event_time, 60) AS event_time,
        if(api = 'PRODUCE', 'produced', 'consumed') AS direction,
        if(direction = 'consumed', rack_id, NULL) AS declared_rack,
        weight_of(weight) AS weight, unnest(partitions) AS part
    FROM requests
),
summed AS (
    -- A row: what moved in a minute between a broker and a client in a rack.
    SELECT
        m.cluster_id, m.event_time, m.event_time + INTERVAL 1 MINUTE AS minute_end, m.broker_id,
        m.principal, m.client_id, m.direction, m.part.topic AS topic, m.part.topic_id AS topic_id,
        coalesce(m.declared_rack, r.rack) AS client_rack,
        m.declared_rack IS NULL AND r.rack IS NOT NULL AS is_rack_inferred,
        max(if(m.declared_rack IS NULL, r.source, 'request')) AS rack_source,
        sum(m.part.bytes * m.weight) AS bytes
    FROM requested m
    LEFT JOIN inferred_racks(requested, racks, rack_patterns) r
        ON r.client_address IS NOT DISTINCT FROM m.client_address
        AND r.client_id IS NOT DISTINCT FROM m.client_id
    WHERE m.part.bytes > 0 AND coalesce(m.part.error_code, 0) = 0
    GROUP BY ALL
),
named AS (
    FROM with_names(summed, topics_by_id)
)
SELECT
    s.cluster_id, CAST(s.event_time AS DATE) AS event_date, s.event_time, s.broker_id, s.principal,
    s.client_id, s.direction, s.topic, s.topic_id, s.client_rack, s.is_rack_inferred, s.rack_source, s.bytes,
    b.rack AS broker_rack, cross_rack(s.client_rack, b.rack, s.bytes) AS cross_rack_bytes
FROM named s
ASOF LEFT JOIN broker_racks b
    ON b.cluster_id = s.cluster_id AND b.broker_id = s.broker_id AND s.minute_end > b.since
