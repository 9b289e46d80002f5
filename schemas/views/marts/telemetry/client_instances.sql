-- kind: mart
-- grain: one row per client instance
-- area: telemetry
-- level: telemetry
-- question: Client instances. Which client is behind a client instance id?
-- description: Who is behind each client instance id (KIP-714), and how the instance ended. Ids of
--   groups, transactions and applications come from the metrics of the instance, so a producer without
--   transactions or a consumer without a group has none. Kafka Streams names its application only on
--   its admin client; its consumers have that id as their group.
-- columns:
--   from client_coverage: cluster_id, client_instance_id, principal, client_id, client_address,
--     client_software_name, client_software_version
--   from client_metrics: application_id, group_id, group_instance_id, member_id, transactional_id,
--     client_rack
--   client_kind: producer, consumer or admin, by its metrics; null: no such metric came
--   from client_coverage: broker_ids, first_seen, last_seen
--   ended: how it ended: terminated, cut_off, vanished or never_pushed (see client_coverage); null
--     while it is active
WITH owners AS (
    SELECT
        cluster_id,
        client_instance_id,
        max(group_id) AS group_id,
        max(group_instance_id) AS group_instance_id,
        max(member_id) AS member_id,
        max(transactional_id) AS transactional_id,
        max(application_id) AS application_id,
        max(client_rack) AS client_rack,
        max(
            CASE
                WHEN metric LIKE 'org.apache.kafka.producer.%' THEN 'producer'
                WHEN metric LIKE 'org.apache.kafka.consumer.%' THEN 'consumer'
                WHEN metric LIKE 'org.apache.kafka.admin.client.%' THEN 'admin'
            END
        ) AS client_kind
    FROM client_metrics
    WHERE client_instance_id IS NOT NULL
    GROUP BY cluster_id, client_instance_id
)

SELECT
    *,
    CASE WHEN state <> 'active' THEN state END AS ended
FROM client_coverage AS coverage
LEFT JOIN owners USING (cluster_id, client_instance_id)
