-- kind: mart
-- grain: one row per minute, broker, principal, program, API and error
-- area: requests
-- level: sampled_log
-- question: Failing requests. Which errors do requests of clients get, by name, and from which broker?
-- description: Requests of clients with an error that normal work does not bring: in the answer, in one
--   of its partitions, or for a config, quota or topic that the request was to alter
--   (config_alterations says which). A rebalance, a new fetch session, member or subscription, a
--   transaction that ends, and a topic that was there already, are left out. Clients of one program
--   are one row.
-- columns:
--   from failed_requests: cluster_id, minute, broker_id, principal, program, api
--   error_code: error of the answer, or of one of its partitions or entries
--   from error_names: error_name
--   from failed_requests: requests
WITH refused AS (
    -- A request that alters many entries may get one error for several of them.
    SELECT DISTINCT
        cluster_id,
        date_trunc('minute', event_time) AS minute,
        broker_id,
        principal,
        coalesce(program_of(client_id), '') AS program,
        api,
        error_code,
        source_topic,
        source_partition,
        source_offset
    FROM config_alterations
    -- TOPIC_ALREADY_EXISTS: applications create their topics when they start.
    WHERE error_code NOT IN (0, 36) AND principal IS NOT NULL
),
failures AS (
    SELECT * FROM failed_requests
    UNION ALL
    SELECT
        cluster_id,
        minute,
        broker_id,
        principal,
        program,
        api,
        error_code,
        count(*) AS requests
    FROM refused
    GROUP BY cluster_id, minute, broker_id, principal, program, api, error_code
)

SELECT failures.*, names.error_name
FROM failures
LEFT JOIN error_names AS names ON failures.error_code = names.error_code
