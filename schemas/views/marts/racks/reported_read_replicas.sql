-- kind: mart
-- grain: one row per minute, consumer and partition of which the consumer reports a replica
-- area: racks
-- level: telemetry
-- description: Where consumers say that they read (preferred-read-replica, the metric of KIP-392), beside
--   where brokers answered them by preferred_replicas. Java consumers push it for each partition that
--   they are assigned, the share consumers and librdkafka do not.
-- columns:
--   from preferred_replicas: cluster_id
--   event_time: start of the minute, by the client's clock
--   from client_metrics: principal, client_id, topic, partition
--   reported_replica: broker that the consumer reports as its preferred read replica; null: none, so it
--     reads from the leader, or it reports several in the minute
--   read_replica: broker that answered it with records in the minute; null: none, or several
--   from preferred_replicas: preferred_read_replica, leader_id
--   verdict: same (it reads from the replica that it reports, or from the leader where it reports none),
--     other (it reads from another broker), changed (it reports, or was answered by, several in the
--     minute), or unknown (no broker answered it with records, or the leader is not known)
WITH reports AS (
    SELECT
        cluster_id,
        date_trunc('MINUTE', event_time) AS event_time,
        principal,
        client_id,
        topic,
        partition,
        CAST(min(value) AS INT) AS least_report,
        CAST(max(value) AS INT) AS greatest_report
    FROM client_metrics
    WHERE
        metric = 'org.apache.kafka.consumer.fetch.manager.preferred.read.replica'
        AND value >= -1
        AND value < 2147483648
        AND NOT coalesce(is_topic_twin, FALSE)
    GROUP BY cluster_id, date_trunc('MINUTE', event_time), principal, client_id, topic, partition
),
reads AS (
    SELECT
        cluster_id,
        event_time,
        principal,
        client_id,
        topic,
        partition,
        min(CASE WHEN fetches > 0 THEN broker_id END) AS least_broker,
        max(CASE WHEN fetches > 0 THEN broker_id END) AS greatest_broker,
        max(preferred_read_replica) AS preferred_read_replica,
        CASE WHEN min(leader_id) = max(leader_id) THEN max(leader_id) END AS leader_id
    FROM preferred_replicas
    WHERE topic IS NOT NULL
    GROUP BY cluster_id, event_time, principal, client_id, topic, partition
)

SELECT
    *,
    reports.cluster_id,
    reports.event_time,
    reports.principal,
    reports.client_id,
    reports.topic,
    reports.partition,
    CASE
        WHEN reports.least_report = reports.greatest_report AND reports.least_report >= 0
            THEN reports.least_report
    END AS reported_replica,
    CASE WHEN reads.least_broker = reads.greatest_broker THEN reads.least_broker END AS read_replica,
    CASE
        WHEN reports.least_report <> reports.greatest_report THEN 'changed'
        WHEN reads.least_broker <> reads.greatest_broker THEN 'changed'
        WHEN reads.least_broker IS NULL THEN 'unknown'
        WHEN reports.least_report >= 0 AND reports.least_report = reads.least_broker THEN 'same'
        WHEN reports.least_report >= 0 THEN 'other'
        WHEN reads.leader_id IS NULL THEN 'unknown'
        WHEN reads.leader_id = reads.least_broker THEN 'same'
        ELSE 'other'
    END AS verdict
FROM reports
LEFT JOIN reads
    ON reports.cluster_id = reads.cluster_id
        AND reports.event_time = reads.event_time
        AND reports.topic = reads.topic
        AND reports.partition = reads.partition
        AND (reports.principal IS NOT DISTINCT FROM reads.principal)
        AND (reports.client_id IS NOT DISTINCT FROM reads.client_id)
