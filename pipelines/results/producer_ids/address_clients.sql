-- Which clients sent requests from which address, by minute.
SELECT
    cluster_id,
    CAST(floored(event_time, 60) AS DATE) AS event_date,
    floored(event_time, 60) AS event_time,
    client_address,
    principal,
    program_of(client_id) AS client_pattern,
    -- A broker refuses a fetch of a follower without the right CLUSTER_ACTION.
    replica_id IS NOT NULL AND coalesce(error_code, 0) = 0 AS is_follower,
    min(event_time) AS first_seen,
    max(event_time) AS last_seen,
    sum(weight_of(weight)) AS requests,
    count(DISTINCT producer_id) FILTER (
        api = 'INIT_PRODUCER_ID' AND producer_id >= 0 AND coalesce(error_code, 0) = 0
    ) AS producer_ids,
    count(DISTINCT connection_id) FILTER (
        api = 'INIT_PRODUCER_ID' AND producer_id >= 0 AND coalesce(error_code, 0) = 0
    ) AS allocating_connections,
    max(weight_of(weight)) AS max_weight
FROM requests
GROUP BY ALL
