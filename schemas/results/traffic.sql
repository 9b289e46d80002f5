-- kind: result
-- grain: one row per minute, client, broker and topic
-- area: quotas
-- level: sampled_log
-- description: Record bytes that clients produced and consumed, one row {per}; of what moved only,
--   refused partitions and followers left out. No line has the bytes that a share group reads
--   (KIP-932): share_fetches counts its requests
-- key: cluster_id, event_time, broker_id, principal, client_id, direction, topic, topic_id,
--   client_rack, is_rack_inferred
-- time: event_time
-- partitioning: event_date
-- facts: requests
-- relevant: api IN ('PRODUCE', 'FETCH') AND replica_id IS NULL
-- bucket: 1 min
-- split_by: cluster_id, principal, client_id
-- lookups:
--   brokers: from event_time, reaches back
--   topic_names: changes nothing
--   topics: changes nothing
-- unnamed:
--   traffic
-- columns:
--   from topic_names: cluster_id, event_date, event_time
--   broker_id INT: broker that took or gave the bytes
--   principal STRING: principal, as Kafka prints it
--   from requests: client_id
--   direction STRING: produced or consumed
--   topic STRING: name of the topic; null: no request, answer or snapshot has a name of topic_id
--     yet
--   topic_id STRING: id of the topic; null: requests have its name, and nothing has its id
--   client_rack STRING: client.rack of a consumer that sends it (KIP-392), else the rack of the
--     client's address or client id by conf's racks; null: not known
--   bytes BIGINT: record bytes, as compressed by the producer
--   is_rack_inferred BOOLEAN: client_rack is that of conf: the client sends none
--   rack_source STRING: how client_rack is known: request (client.rack of a FETCH), address (conf's
--     racks) or client_id (claimed by the client id, by conf's rack_patterns); null: it is not
--     known, or the row is older
--   broker_rack STRING: broker.rack by the last snapshot by then, or by the first one after it
--   cross_rack_bytes BIGINT: bytes, where client_rack and broker_rack differ; null: one of them is
--     not known, or no broker has client_rack

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
    LEFT JOIN inferred_racks(requests, racks, rack_patterns) r
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
    b.rack AS broker_rack,
    cross_rack(s.own_rack, b.rack, s.bytes) AS cross_rack_bytes
FROM with_own_rack(named, known_racks) s
ASOF LEFT JOIN broker_racks b
    ON b.cluster_id = s.cluster_id AND b.broker_id = s.broker_id AND s.minute_end > b.since
