-- kind: staging
-- grain: one row per request of a client
-- area: requests
-- level: sampled_log
-- description: Answers of brokers to clients, and whether a broker failed. What a client can cause
--   alone is no such error: a wrong request (INVALID_*), a missing permission, a topic that is not
--   there, a quota that it exceeds. Nor are REBALANCE_IN_PROGRESS, NOT_LEADER_OR_FOLLOWER and
--   NOT_COORDINATOR, which each deploy or election brings. A coordinator that loads is one.
-- columns:
--   from requests: cluster_id, event_time, principal, weight
--   is_broker_error: the answer, or one of its partitions, has an error that a broker, a disk or a
--     follower caused
WITH answers AS (
    SELECT
        *,
        CASE
            WHEN partitions IS NULL THEN array(error_code)
            ELSE concat(array(error_code), transform(partitions, part -> part.error_code))
        END AS error_codes
    FROM requests
    WHERE replica_id IS NULL
)

SELECT
    *,
    -- UNKNOWN_SERVER_ERROR, REQUEST_TIMED_OUT, BROKER_NOT_AVAILABLE, REPLICA_NOT_AVAILABLE,
    -- NETWORK_EXCEPTION, COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE,
    -- NOT_ENOUGH_REPLICAS, NOT_ENOUGH_REPLICAS_AFTER_APPEND, KAFKA_STORAGE_ERROR (error_names).
    -- A client can ask for a timeout that is too short, but then only it gets REQUEST_TIMED_OUT.
    size(filter(error_codes, code -> code IN (-1, 7, 8, 9, 13, 14, 15, 19, 20, 56))) > 0
        AS is_broker_error
FROM answers
