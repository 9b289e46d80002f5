-- kind: result
-- grain: one row per minute, broker, client and producer id: the id was given to the client or
--   named by its transactional requests
-- area: producer_ids
-- level: sampled_log
-- description: A row without an id counts what a client that was given one in this minute produced:
--   stock brokers log no id of a PRODUCE request
-- key: cluster_id, event_time, broker_id, principal, client_id, client_software_name,
--   client_software_version, client_address, transactional_id, producer_id
-- time: event_time
-- partitioning: event_date
-- facts: requests
-- relevant: (producer_id >= 0 OR api = 'PRODUCE') AND coalesce(error_code, 0) = 0
-- bucket: 1 min
-- split_by: cluster_id, principal, client_id
-- columns:
--   from requests: cluster_id
--   event_date DATE: UTC date of event_time
--   event_time TIMESTAMP: start of the minute
--   broker_id INT: broker that answered
--   from requests: principal, client_id, client_software_name, client_software_version,
--     client_address
--   client_pattern STRING: client_id with * for numbers and random parts: what instances of one
--     program share
--   transactional_id STRING: transactional.id, null for idempotent producers
--   producer_id BIGINT: producer id
--   producer_epoch INT: its greatest epoch in this minute
--   first_seen TIMESTAMP: first such request
--   last_seen TIMESTAMP: last such request
--   requests BIGINT: such requests, PRODUCE among them
--   allocations BIGINT: answers of INIT_PRODUCER_ID among them
--   produce_requests BIGINT: PRODUCE requests among them

-- Producer ids that clients got or sent, by minute, broker and client.
WITH
-- A row per minute, broker, client and producer id; without an id: the client's PRODUCE requests.
uses AS (
    SELECT
        cluster_id, floored(event_time, 60) AS minute, broker_id,
        principal, client_id, client_software_name, client_software_version, client_address,
        transactional_id, producer_id,
        max(producer_epoch) AS producer_epoch,
        min(event_time) AS first_seen,
        max(event_time) AS last_seen,
        sum(weight_of(weight)) AS requests,
        coalesce(sum(weight_of(weight)) FILTER (api = 'INIT_PRODUCER_ID'), 0) AS allocations,
        coalesce(sum(weight_of(weight)) FILTER (api = 'PRODUCE'), 0) AS produce_requests
    FROM requests
    GROUP BY ALL
),
-- The same rows, and how many ids all brokers gave to the row's client in its minute.
with_allocations AS (
    SELECT
        *,
        sum(allocations) OVER (
            PARTITION BY cluster_id, principal, client_id, client_address, minute
        ) AS allocations_of_client
    FROM uses
)
SELECT
    cluster_id, CAST(minute AS DATE) AS event_date, minute AS event_time, broker_id,
    principal, client_id, client_software_name, client_software_version, client_address,
    program_of(client_id) AS client_pattern,
    transactional_id, producer_id, producer_epoch, first_seen, last_seen,
    requests, allocations, produce_requests
FROM with_allocations
-- What a client produced counts only in a minute in which the client was given an id.
WHERE producer_id IS NOT NULL OR allocations_of_client > 0
