-- kind: result
-- grain: one row per minute, flow, broker and rack of the other side
-- area: racks
-- level: sampled_log
-- description: Record bytes between racks, one row {per}. Racks of brokers are those of the last
--   snapshot by then, of the first one before it
-- key: cluster_id, event_time, flow, client_rack, is_rack_inferred, broker_id
-- time: event_time
-- partitioning: event_date
-- facts: requests
-- relevant: api IN ('PRODUCE', 'FETCH')
-- bucket: 1 min
-- split_by: cluster_id, broker_id
-- lookups:
--   brokers: from event_time, reaches back
-- columns:
--   from requests: cluster_id
--   event_date DATE: UTC date of event_time
--   event_time TIMESTAMP: start of the minute
--   flow STRING: produced, consumed, or replicated (read by a follower from the leader)
--   client_rack STRING: rack of the other side: a consumer's client.rack, the broker.rack of a
--     follower, else the rack that conf gives the client's address or id; null: not known
--   is_rack_inferred BOOLEAN: client_rack is that of conf: the client sends none
--   rack_source STRING: how client_rack is known: request (client.rack of a FETCH), address (conf's
--     racks), client_id (claimed by the client id, by conf's rack_patterns) or broker (broker.rack
--     of a follower); null: it is not known, or the row is older
--   broker_id INT: broker that took or gave the records
--   broker_rack STRING: broker.rack of it
--   requests BIGINT: requests with records
--   bytes BIGINT: record bytes, as compressed by the producer
--   cross_rack_bytes BIGINT: bytes, where client_rack and broker_rack differ; null: one of them is
--     not known, or no broker has client_rack

-- Bytes produced, consumed and replicated between racks, by minute.
-- `racks` and `rack_patterns` are conf's, for clients that send no rack.
WITH moved AS (
    -- A row: a request that moved bytes.
    SELECT
        cluster_id, broker_id, client_address, client_id, floored(event_time, 60) AS event_time,
        weight_of(weight) AS weight,
        list_sum(moved_bytes(partitions)) AS bytes,
        CASE
            WHEN api = 'PRODUCE' THEN 'produced'
            WHEN replica_id IS NULL THEN 'consumed'
            ELSE 'replicated'
        END AS flow,
        replica_id AS follower_id,
        if(flow = 'consumed', rack_id, NULL) AS declared_rack
    FROM requests
    WHERE bytes > 0
),
-- A row: what moved in a minute between a broker and a rack, or a follower.
summed AS (
    SELECT
        m.cluster_id, m.event_time, m.event_time + INTERVAL 1 MINUTE AS minute_end, m.flow,
        m.broker_id, m.follower_id,
        coalesce(m.declared_rack, r.rack) AS client_rack,
        m.declared_rack IS NULL AND r.rack IS NOT NULL AS is_rack_inferred,
        if(m.declared_rack IS NULL, r.source, 'request') AS source,
        sum(m.weight) AS requests,
        sum(m.bytes * m.weight) AS bytes
    FROM moved m
    -- A follower's rack is that of its broker.
    LEFT JOIN inferred_racks(requests, racks, rack_patterns) r
        ON r.client_address IS NOT DISTINCT FROM m.client_address
        AND r.client_id IS NOT DISTINCT FROM m.client_id
        AND m.follower_id IS NULL
    GROUP BY ALL
),
with_racks AS (
    SELECT
        s.* REPLACE (
            coalesce(s.client_rack, f.rack) AS client_rack,
            if(f.rack IS NOT NULL, 'broker', s.source) AS source),
        b.rack AS broker_rack
    FROM summed s
    ASOF LEFT JOIN broker_racks b
        ON b.cluster_id = s.cluster_id AND b.broker_id = s.broker_id AND s.minute_end > b.since
    ASOF LEFT JOIN broker_racks f
        ON f.cluster_id = s.cluster_id AND f.broker_id = s.follower_id AND s.minute_end > f.since
)
SELECT
    cluster_id, CAST(event_time AS DATE) AS event_date, event_time, flow, client_rack,
    is_rack_inferred, max(source) AS rack_source, broker_id, broker_rack,
    sum(requests) AS requests,
    sum(bytes) AS bytes,
    cross_rack(own_rack, broker_rack, sum(bytes)) AS cross_rack_bytes
FROM with_own_rack(with_racks, known_racks)
GROUP BY
    cluster_id, event_time, flow, client_rack, own_rack, is_rack_inferred, broker_id, broker_rack
