-- Partitions that brokers answered to fetches: a row is a partition, `part`, of one answer.
SELECT
    cluster_id, floored(event_time, 60) AS event_time,
    floored(event_time, 60) + INTERVAL 1 MINUTE AS minute_end,
    broker_id, replica_id, principal, client_id, client_software_name, client_software_version,
    connection_id, unnest(partitions) AS part
FROM fetches
