-- kind: answer
-- grain: one row per principal and client id that read in the last day
-- area: racks
-- level: sampled_log
-- question: Racks of consumers. Does each consumer read in its own rack, or fetch bytes across racks?
-- description: In which rack each consumer is, by its configuration, by its fetches and by conf, and
--   from which rack it reads most (KIP-392).
-- key: cluster_id, principal, client_id
-- time: until
-- clustering: until, principal
-- lookbacks:
--   preferred_replicas: 2 d
--   traffic: 2 d
--   client_metrics: 2 d
--   fetch_sizes: 7 d
-- columns:
--   from preferred_replicas: cluster_id, principal, client_id
--   is_internal BOOLEAN: its login is one of brokers or of this pipeline (protected_principals.is_internal), so its
--     rack is nobody's to-do
--   configured_rack STRING: client.rack by the client's telemetry; null: its metrics do not name one
--   declared_rack STRING: client.rack in its fetches; null: they do not name one
--   inferred_rack STRING: rack that conf's racks give its address; null: its fetches name one, or conf has
--     none
--   claimed_rack STRING: rack that its client id claims, by conf's rack_patterns; null: another rack is known, or
--     it claims none
--   read_rack STRING: rack of the brokers that it read most bytes from; null: not known
--   bytes BIGINT: record bytes read
--   cross_rack_bytes BIGINT: bytes read from another rack: a least value where unknown_rack_bytes is more than
--     0; null: no racks are known
--   no_replica_bytes BIGINT: those of cross_rack_bytes of partitions without a replica in its rack
--   unknown_rack_bytes BIGINT: bytes for which one of the racks is not known
--   cross_rack_share DOUBLE: cross_rack_bytes / (bytes - unknown_rack_bytes); null: no bytes of known racks
--   reported_minutes BIGINT: minutes in which it reports where it reads from a partition, by the preferred-read-
--     replica of its telemetry, and was answered with records; null: it reports none
--   differing_minutes BIGINT: those of them in which it read from another broker than it reports; null: it
--     reports none
--   verdict STRING: ignored (configured_rack is set, and its fetches name no rack), no_rack (no rack is named
--     anywhere), unknown_rack (no broker has the rack that its fetches name), unknown (racks of some brokers are not known), or by cross_rack_share: followed (at most
--     0.1), elsewhere (at least 0.9) or mixed (between)
--   until TIMESTAMP: last minute that counts

WITH newest AS (
    SELECT cluster_id, max(event_time) AS event_time
    FROM preferred_replicas
    GROUP BY cluster_id
),
by_rack AS (
    SELECT
        reads.cluster_id,
        reads.principal,
        reads.client_id,
        reads.broker_rack,
        max(CASE WHEN NOT reads.is_rack_inferred THEN reads.client_rack END) AS declared_rack,
        max(
            CASE
                WHEN reads.is_rack_inferred AND coalesce(reads.rack_source, '') <> 'client_id'
                    THEN reads.client_rack
            END
        ) AS inferred_rack,
        max(CASE WHEN reads.rack_source = 'client_id' THEN reads.client_rack END) AS claimed_rack,
        sum(reads.bytes) AS bytes,
        sum(reads.cross_rack_bytes) AS cross_rack_bytes,
        sum(
            CASE
                WHEN reads.recommended_reason = 'no_replica_in_rack' THEN reads.cross_rack_bytes ELSE 0
            END
        ) AS no_replica_bytes,
        sum(CASE WHEN reads.cross_rack_bytes IS NULL THEN reads.bytes ELSE 0 END) AS unknown_rack_bytes,
        max(reads.event_time) AS until
    FROM preferred_replicas AS reads
    INNER JOIN newest USING (cluster_id)
    WHERE unix_millis(reads.event_time) > unix_millis(newest.event_time) - 86400000
    GROUP BY reads.cluster_id, reads.principal, reads.client_id, reads.broker_rack
),
ranked AS (
    SELECT
        *,
        row_number() OVER (
            PARTITION BY cluster_id, principal, client_id
            ORDER BY bytes DESC, coalesce(broker_rack, '')
        ) AS nth
    FROM by_rack
),
read AS (
    SELECT
        cluster_id,
        principal,
        client_id,
        max(declared_rack) AS declared_rack,
        max(inferred_rack) AS inferred_rack,
        max(claimed_rack) AS claimed_rack,
        max(CASE WHEN nth = 1 THEN broker_rack END) AS read_rack,
        sum(bytes) AS bytes,
        sum(cross_rack_bytes) AS cross_rack_bytes,
        sum(no_replica_bytes) AS no_replica_bytes,
        sum(unknown_rack_bytes) AS unknown_rack_bytes,
        max(until) AS until
    FROM ranked
    GROUP BY cluster_id, principal, client_id
),
reported AS (
    SELECT
        reports.cluster_id,
        reports.principal,
        reports.client_id,
        sum(CASE WHEN reports.verdict IN ('same', 'other') THEN 1 ELSE 0 END) AS reported_minutes,
        sum(CASE WHEN reports.verdict = 'other' THEN 1 ELSE 0 END) AS differing_minutes
    FROM reported_read_replicas AS reports
    INNER JOIN newest USING (cluster_id)
    WHERE unix_millis(reports.event_time) > unix_millis(newest.event_time) - 86400000
    GROUP BY reports.cluster_id, reports.principal, reports.client_id
),
configured AS (
    SELECT metrics.cluster_id, metrics.principal, metrics.client_id, max(metrics.client_rack) AS rack
    FROM client_metrics AS metrics
    INNER JOIN newest USING (cluster_id)
    WHERE
        metrics.client_rack <> ''
        AND unix_millis(metrics.event_time) > unix_millis(newest.event_time) - 86400000
    GROUP BY metrics.cluster_id, metrics.principal, metrics.client_id
)

SELECT
    *,
    read.cluster_id,
    read.principal,
    read.client_id,
    internal.principal IS NOT NULL AS is_internal,
    configured.rack AS configured_rack,
    read.cross_rack_bytes * 1e0 / nullif(read.bytes - read.unknown_rack_bytes, 0) AS cross_rack_share,
    CASE
        WHEN read.declared_rack IS NULL AND configured.rack IS NOT NULL THEN 'ignored'
        WHEN read.declared_rack IS NULL THEN 'no_rack'
        WHEN unknown.client_rack IS NOT NULL THEN 'unknown_rack'
        WHEN read.unknown_rack_bytes > 0 OR read.cross_rack_bytes IS NULL THEN 'unknown'
        WHEN read.cross_rack_bytes * 10 <= read.bytes THEN 'followed'
        WHEN read.cross_rack_bytes * 10 >= read.bytes * 9 THEN 'elsewhere'
        ELSE 'mixed'
    END AS verdict,
    read.until
FROM read
LEFT JOIN configured
    ON read.cluster_id = configured.cluster_id
        AND (read.principal IS NOT DISTINCT FROM configured.principal)
        AND (read.client_id IS NOT DISTINCT FROM configured.client_id)
LEFT JOIN reported
    ON read.cluster_id = reported.cluster_id
        AND (read.principal IS NOT DISTINCT FROM reported.principal)
        AND (read.client_id IS NOT DISTINCT FROM reported.client_id)
LEFT JOIN protected_principals AS internal
    ON read.cluster_id = internal.cluster_id
        AND read.principal = internal.principal
        AND internal.is_internal
LEFT JOIN unknown_racks AS unknown
    ON read.cluster_id = unknown.cluster_id AND read.declared_rack = unknown.client_rack
