-- kind: mart
-- grain: one row per client, library, API and version
-- area: requests
-- level: sampled_log
-- question: Versions of APIs. Which clients use old, deprecated versions of an API, which Kafka 4 removed?
-- description: Which versions of each API clients use, those that Kafka 4 removed first (KIP-896).
--   A broker of Kafka 4 refuses them, so there they have no rows. Followers are left out. A log that is
--   sampled can miss a client of few requests.
-- history: requests
-- first: is_removed_in_kafka_4, last_seen
-- columns:
--   from requests: cluster_id, principal, client_id, client_software_name, client_software_version,
--     api, api_version
--   is_removed_in_kafka_4: Kafka 4.0 removed this version: an upgrade stops the client
--   oldest_in_kafka_4: oldest version that Kafka 4 reads of this API, where 4.0 removed some; null: it
--     removed none, or the whole API, which only brokers with ZooKeeper use
--   request_count: number of requests, by the weight of each line
--   first_seen: first request
--   last_seen: last request
WITH removed AS (
    SELECT removed_api, oldest_in_kafka_4
    FROM (
        VALUES
            ('PRODUCE', 3),
            ('FETCH', 4),
            ('LIST_OFFSETS', 1),
            ('OFFSET_COMMIT', 2),
            ('OFFSET_FETCH', 1),
            ('CREATE_TOPICS', 2),
            ('DELETE_TOPICS', 1),
            ('OFFSET_FOR_LEADER_EPOCH', 2),
            ('DESCRIBE_ACLS', 1),
            ('CREATE_ACLS', 1),
            ('DELETE_ACLS', 1),
            ('DESCRIBE_CONFIGS', 1),
            ('ALTER_REPLICA_LOG_DIRS', 1),
            ('DESCRIBE_LOG_DIRS', 1),
            ('CREATE_DELEGATION_TOKEN', 1),
            ('RENEW_DELEGATION_TOKEN', 1),
            ('EXPIRE_DELEGATION_TOKEN', 1),
            ('DESCRIBE_DELEGATION_TOKEN', 1),
            -- Of brokers.
            ('WRITE_TXN_MARKERS', 1),
            ('ALTER_PARTITION', 2)
    ) AS removals (removed_api, oldest_in_kafka_4)
),
used AS (
    SELECT
        cluster_id,
        principal,
        client_id,
        client_software_name,
        client_software_version,
        api,
        api_version,
        CAST(sum(coalesce(weight, 1)) AS BIGINT) AS request_count,
        min(event_time) AS first_seen,
        max(event_time) AS last_seen
    FROM requests
    WHERE replica_id IS NULL AND api_version IS NOT NULL
    GROUP BY 1, 2, 3, 4, 5, 6, 7
)

SELECT
    used.*,
    removed.oldest_in_kafka_4,
    coalesce(api_version < oldest_in_kafka_4, false) AS is_removed_in_kafka_4
FROM used
LEFT JOIN removed ON used.api = removed.removed_api
