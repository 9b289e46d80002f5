-- kind: intermediate
-- grain: one row per minute, broker, principal, program, API and error
-- area: requests
-- level: sampled_log
-- description: Requests of clients with an error that normal work does not bring, in the whole answer or
--   in one of its partitions, or for a topic of METADATA. A rebalance, a new fetch session, member or subscription, and a
--   transaction that ends, are left out. So are requests between brokers and controllers, except those
--   that are refused for want of rights. Clients of one program are one row.
-- columns:
--   from request_times: cluster_id
--   minute: start of the minute
--   from request_times: broker_id, principal
--   program: what the client ids of a program share, with * for what varies; '' without client.id:
--     untrusted text
--   from request_times: api
--   error_code: error of the answer, or of one of its partitions
--   requests: requests with this error
WITH erred AS (
    SELECT
        *,
        event_time AS minute,
        coalesce(program_of(client_id), '') AS program
    FROM (SELECT *, explode(errors) AS error FROM request_times WHERE principal IS NOT NULL) AS each
)

SELECT
    cluster_id,
    minute,
    broker_id,
    principal,
    program,
    api,
    error.error_code AS error_code,
    CAST(sum(error.requests) AS BIGINT) AS requests
FROM erred
-- REBALANCE_IN_PROGRESS, FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH,
-- MEMBER_ID_REQUIRED, FENCED_MEMBER_EPOCH, UNKNOWN_SUBSCRIPTION_ID (error_names). And
-- CONCURRENT_TRANSACTIONS: the last transaction of the producer is still being ended (KIP-890).
WHERE
    error.error_code NOT IN (27, 51, 70, 71, 79, 110, 117)
    -- Only brokers and controllers send these, without a replica id that would tell them apart. Of
    -- anyone else a broker refuses them: CLUSTER_AUTHORIZATION_FAILED.
    AND (
        error.error_code = 31
        OR api NOT IN (
            'BROKER_REGISTRATION', 'BROKER_HEARTBEAT', 'CONTROLLER_REGISTRATION', 'ENVELOPE',
            'ALTER_PARTITION', 'ALTER_ISR', 'ALLOCATE_PRODUCER_IDS', 'ASSIGN_REPLICAS_TO_DIRS',
            'WRITE_TXN_MARKERS', 'VOTE', 'BEGIN_QUORUM_EPOCH', 'END_QUORUM_EPOCH', 'FETCH_SNAPSHOT',
            'UPDATE_RAFT_VOTER', 'INITIALIZE_SHARE_GROUP_STATE', 'READ_SHARE_GROUP_STATE',
            'READ_SHARE_GROUP_STATE_SUMMARY', 'WRITE_SHARE_GROUP_STATE', 'DELETE_SHARE_GROUP_STATE',
            'LEADER_AND_ISR', 'STOP_REPLICA', 'UPDATE_METADATA', 'CONTROLLED_SHUTDOWN'
        )
    )
GROUP BY cluster_id, minute, broker_id, principal, program, api, error.error_code
