-- One row per client instance (KIP-714): who is behind the id, and how it ended. Group,
-- transactional and application ids are those its metrics name; a producer outside transactions
-- and a consumer without a group name none. Kafka Streams names its application on its admin client
-- alone; the consumers of it have that id as their group. ended: terminated, cut_off, vanished,
-- never_pushed (see client_coverage, also for whom upkeep forgot); null while it is active.
-- client_kind: producer, consumer or admin, by its metrics.
WITH named AS (
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
    coverage.cluster_id,
    coverage.client_instance_id,
    principal,
    client_id,
    client_address,
    client_software_name,
    client_software_version,
    application_id,
    group_id,
    group_instance_id,
    member_id,
    transactional_id,
    client_rack,
    client_kind,
    broker_ids,
    first_seen,
    last_seen,
    CASE WHEN state <> 'active' THEN state END AS ended
FROM client_coverage AS coverage
LEFT JOIN named
    ON coverage.cluster_id = named.cluster_id
        AND coverage.client_instance_id = named.client_instance_id
