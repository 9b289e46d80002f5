-- kind: mart
-- grain: one row per principal, client id, topic and rack that produced in the last day
-- area: racks
-- level: sampled_log
-- description: In which rack each producer is, how that is known, and what it sends to other racks
--   (KIP-1123). PRODUCE names no rack: a producer's is known by its telemetry, its address or its id.
-- columns:
--   from traffic: cluster_id, principal, client_id, topic
--   unnamed_topic_id: id of the topic if its name is not known; null otherwise
--   configured_rack: client.rack by the client's telemetry; null: its metrics name none, or several
--   client_rack: configured_rack, else the rack that conf gives its address or its client id; null: not
--     known
--   rack_source: telemetry (it is configured), address (conf's racks) or client_id (claimed by the client
--     id, by conf's rack_patterns); null: the rack is not known
--   nearest_racks: if no broker has client_rack: the rack that is meant, or all that may be, with commas;
--     null: a broker has it, or racks are not known
--   bytes: record bytes produced, as compressed
--   cross_rack_bytes: those that went to a leader in another rack: a least value where
--     unknown_rack_bytes is more than 0; null: no racks are known
--   unknown_rack_bytes: bytes for which one of the racks is not known
--   cross_rack_cost: cost of cross_rack_bytes, in currency; null: conf has no price, or no racks are known
--   from current_prices: currency
--   since: first minute that counts
--   until: last minute that counts
--   first_seen: first minute in which it produced
--   last_seen: last minute in which it produced
--   last_hour_bytes: record bytes that it produced to the topic in its last hour with it
--   last_hour_cross_bytes: those that went to a leader in another rack; null: no racks are known
WITH newest AS (
    SELECT cluster_id, min(event_time) AS since, max(event_time) AS until
    FROM (
        SELECT traffic.cluster_id, traffic.event_time
        FROM traffic
        INNER JOIN (
            SELECT cluster_id, max(event_time) AS until FROM traffic GROUP BY cluster_id
        ) AS last ON traffic.cluster_id = last.cluster_id
        WHERE unix_millis(traffic.event_time) > unix_millis(last.until) - 86400000
    ) AS of_day
    GROUP BY cluster_id
),
configured AS (
    SELECT
        metrics.cluster_id,
        metrics.principal,
        metrics.client_id,
        CASE WHEN min(metrics.client_rack) = max(metrics.client_rack) THEN max(metrics.client_rack) END
            AS configured_rack
    FROM client_metrics AS metrics
    INNER JOIN newest USING (cluster_id)
    WHERE metrics.client_rack <> '' AND metrics.event_time >= newest.since
    GROUP BY metrics.cluster_id, metrics.principal, metrics.client_id
),
produced AS (
    SELECT
        traffic.cluster_id,
        traffic.principal,
        traffic.client_id,
        traffic.topic,
        CASE WHEN traffic.topic IS NULL THEN traffic.topic_id END AS unnamed_topic_id,
        configured.configured_rack,
        coalesce(configured.configured_rack, traffic.client_rack) AS client_rack,
        CASE
            WHEN configured.configured_rack IS NOT NULL THEN 'telemetry'
            WHEN traffic.client_rack IS NOT NULL THEN coalesce(traffic.rack_source, 'address')
        END AS rack_source,
        traffic.broker_rack,
        traffic.bytes,
        traffic.event_time,
        max(traffic.event_time) OVER (
            PARTITION BY
                traffic.cluster_id, traffic.principal, traffic.client_id, traffic.topic,
                CASE WHEN traffic.topic IS NULL THEN traffic.topic_id END
        ) AS last_produced,
        newest.since,
        newest.until
    FROM traffic
    INNER JOIN newest
        ON traffic.cluster_id = newest.cluster_id AND traffic.event_time >= newest.since
    LEFT JOIN configured
        ON traffic.cluster_id = configured.cluster_id
            AND (traffic.principal IS NOT DISTINCT FROM configured.principal)
            AND (traffic.client_id IS NOT DISTINCT FROM configured.client_id)
    WHERE traffic.direction = 'produced'
),
known AS (
    SELECT
        produced.*,
        unknown.nearest_racks,
        CASE
            WHEN unknown.nearest_racks IS NOT NULL THEN NULL
            WHEN produced.client_rack <> produced.broker_rack THEN produced.bytes
            WHEN produced.client_rack = produced.broker_rack THEN 0
        END AS cross_bytes,
        produced.event_time > produced.last_produced - INTERVAL '1' HOUR AS is_in_last_hour
    FROM produced
    LEFT JOIN unknown_racks AS unknown USING (cluster_id, client_rack)
),
summed AS (
    SELECT
        cluster_id,
        principal,
        client_id,
        topic,
        unnamed_topic_id,
        configured_rack,
        client_rack,
        rack_source,
        sum(bytes) AS bytes,
        sum(cross_bytes) AS cross_rack_bytes,
        sum(CASE WHEN is_in_last_hour THEN bytes ELSE 0 END) AS last_hour_bytes,
        sum(CASE WHEN is_in_last_hour THEN cross_bytes END) AS last_hour_cross_bytes,
        sum(
            CASE
                WHEN client_rack IS NULL OR broker_rack IS NULL OR nearest_racks IS NOT NULL
                    THEN bytes
                ELSE 0
            END
        ) AS unknown_rack_bytes,
        max(nearest_racks) AS nearest_racks,
        max(since) AS since,
        max(until) AS until,
        min(event_time) AS first_seen,
        max(event_time) AS last_seen
    FROM known
    GROUP BY ALL
)

SELECT
    *,
    summed.cross_rack_bytes * prices.cross_rack_per_gib / 1073741824.0 AS cross_rack_cost
FROM summed
LEFT JOIN current_prices AS prices USING (cluster_id)
