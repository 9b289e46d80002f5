-- kind: intermediate
-- grain: one row per minute, broker, principal, program, API and error
-- area: requests
-- level: sampled_log
-- description: Requests of clients with an error that normal work does not bring, in the whole answer or
--   in one of its partitions. A rebalance, a new fetch session, member or subscription, and a
--   transaction that ends, are left out. Clients of one program are one row.
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
WHERE error.error_code NOT IN (27, 51, 70, 71, 79, 110, 117)
GROUP BY cluster_id, minute, broker_id, principal, program, api, error.error_code
