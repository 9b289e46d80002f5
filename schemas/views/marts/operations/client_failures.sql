-- kind: mart
-- grain: one row per minute, broker, principal, program, API and error
-- area: requests
-- level: sampled_log
-- question: Failing requests. Which errors do requests of clients get, by name, for which topic or group, and from
--   which broker?
-- description: Requests of clients with an error that normal work does not bring: in the answer, in one
--   of its partitions, for a topic of METADATA, or for a config, quota or topic that the request was to
--   alter (config_alterations says which). A rebalance, a new fetch session, member or subscription, a
--   transaction that ends, and a topic that was there already, are left out. So are requests between
--   brokers and controllers, except those that are refused for want of rights. Clients of one program
--   are one row. The share that fails is requests / request_count of request_times in the same minute.
-- columns:
--   from failed_requests: cluster_id, minute, broker_id, principal, program, api
--   error_code: error of the answer, or of one of its partitions or entries
--   from error_names: error_name
--   from failed_requests: requests
--   resources: topics of PRODUCE, FETCH and METADATA, groups, and entities of alterations that got the
--     error, sorted; up to ten of a client and minute. A topic whose name is not known has its id. Null:
--     the log names none
WITH refused AS (
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
        source_offset,
        entity_name
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
        -- A request that alters many entries may get one error for several of them.
        count(DISTINCT concat(source_topic, ' ', source_partition, ' ', source_offset)) AS requests
    FROM refused
    GROUP BY cluster_id, minute, broker_id, principal, program, api, error_code
),
erred AS (
    SELECT
        *,
        event_time AS minute,
        coalesce(program_of(client_id), '') AS program,
        failed.error_code AS error_code,
        failed.resource AS resource
    FROM (
        SELECT *, explode(error_resources) AS failed FROM request_times WHERE principal IS NOT NULL
    ) AS each
),
named AS (
    SELECT cluster_id, minute, broker_id, principal, program, api, error_code, resource
    FROM erred
    UNION ALL
    SELECT cluster_id, minute, broker_id, principal, program, api, error_code, entity_name
    FROM refused
    WHERE entity_name <> ''
),
resources AS (
    SELECT
        named.cluster_id,
        minute,
        broker_id,
        principal,
        program,
        api,
        error_code,
        array_sort(array_agg(DISTINCT coalesce(ids.topic, resource))) AS resources
    FROM named
    LEFT JOIN topic_ids AS ids ON named.cluster_id = ids.cluster_id AND named.resource = ids.topic_id
    GROUP BY named.cluster_id, minute, broker_id, principal, program, api, error_code
)

SELECT failures.*, names.error_name, resources.resources
FROM failures
LEFT JOIN error_names AS names ON failures.error_code = names.error_code
LEFT JOIN resources
    ON failures.cluster_id = resources.cluster_id
        AND failures.minute = resources.minute
        AND failures.broker_id = resources.broker_id
        AND failures.principal = resources.principal
        AND failures.program = resources.program
        AND failures.api = resources.api
        AND failures.error_code = resources.error_code
