-- kind: result
-- grain: one row per minute, address, principal and program (client ids that differ only in numbers
--   or random parts)
-- area: producer_ids
-- level: sampled_log
-- description: Requests of all APIs count: who uses an address is known before a limit is set on it
-- key: cluster_id, event_time, client_address, principal, client_pattern, replica_id
-- time: event_time
-- partitioning: event_date
-- facts: requests
-- relevant: client_address IS NOT NULL
-- bucket: 1 min
-- lookback: 1 min
-- split_by: cluster_id, client_address
-- columns:
--   from requests: cluster_id
--   event_date DATE: UTC date of event_time
--   event_time TIMESTAMP: start of the minute
--   from requests: client_address, principal
--   client_pattern STRING: client_id with * for numbers and random parts: what instances of one
--     program share
--   replica_id INT: node id of a follower, by its fetches that moved bytes; null: of all other
--     requests, fetches of a follower that brought nothing among them
--   first_seen TIMESTAMP: first such request
--   last_seen TIMESTAMP: last such request
--   requests BIGINT: such requests
--   producer_ids BIGINT: different producer ids that INIT_PRODUCER_ID gave them
--   allocating_connections BIGINT: connections on which those ids were given; fewer than ids: a
--     connection is kept
--   other_connections BIGINT: connections of such requests on which no id was given
--   data_requests BIGINT: PRODUCE and FETCH requests that moved bytes, on connections with more
--     than ten of them for each id that came on it in this minute or the one before
--   data_bytes BIGINT: bytes that these moved
--   max_weight BIGINT: requests that one line counts as, at most; over 1: ingest sampled an API, so
--     that a client may have no row

-- Which clients sent requests from which address, by minute.
WITH given AS (
    -- A row is the producer ids that a program got on a connection in a minute.
    SELECT
        cluster_id, floored(event_time, 60) AS minute, client_address, principal,
        program_of(client_id) AS client_pattern, broker_id, connection_id,
        list(DISTINCT producer_id) AS given_ids
    FROM requests
    WHERE api = 'INIT_PRODUCER_ID' AND producer_id >= 0 AND coalesce(error_code, 0) = 0
    GROUP BY ALL
),
lately AS (
    -- A row is how many ids a connection got in a minute and in the one before it.
    SELECT cluster_id, client_address, broker_id, connection_id, minute, sum(ids) AS ids
    FROM (
        SELECT
            * EXCLUDE (minute), unnest([minute, minute + INTERVAL 1 MINUTE]) AS minute,
            len(given_ids) AS ids
        FROM given
    )
    GROUP BY ALL
),
by_client AS (
    -- A row is a client id on a connection in a minute. A broker refuses a follower's fetch by
    -- partition, and not as a whole: bytes show that it is one.
    SELECT
        cluster_id, floored(event_time, 60) AS minute, client_address, principal, client_id,
        broker_id, connection_id, CASE WHEN api = 'FETCH' AND bytes > 0 THEN replica_id END AS replica_id,
        min(event_time) AS first_seen,
        max(event_time) AS last_seen,
        sum(weight_of(weight)) AS requests,
        coalesce(sum(weight_of(weight)) FILTER (bytes > 0), 0) AS data_requests,
        coalesce(sum(bytes * weight_of(weight)), 0) AS data_bytes,
        max(weight_of(weight)) AS max_weight
    FROM (
        SELECT
            *, CASE WHEN api IN ('PRODUCE', 'FETCH') THEN list_sum(moved_bytes(partitions)) END
                AS bytes
        FROM requests
        WHERE event_time >= $since
    )
    GROUP BY ALL
),
by_connection AS (
    -- A row is a program on a connection in a minute. Its name is made once for a client id.
    SELECT
        cluster_id, minute, client_address, principal, program_of(client_id) AS client_pattern,
        broker_id, connection_id, replica_id,
        min(first_seen) AS first_seen,
        max(last_seen) AS last_seen,
        sum(requests) AS requests,
        sum(data_requests) AS data_requests,
        sum(data_bytes) AS data_bytes,
        max(max_weight) AS max_weight
    FROM by_client
    GROUP BY ALL
),
judged AS (
    -- Whose work a connection does shows by its ids, under any client id. An id may come just
    -- before the minute of its records.
    SELECT
        c.*, g.given_ids,
        sum(c.data_requests) OVER (
            PARTITION BY c.cluster_id, c.broker_id, c.connection_id, c.client_address, c.minute
        ) > 10 * coalesce(l.ids, 0) AS is_beyond_ids
    FROM by_connection c
    LEFT JOIN given g
        ON g.cluster_id = c.cluster_id AND g.minute = c.minute
        AND g.client_address = c.client_address AND c.replica_id IS NULL
        AND g.principal IS NOT DISTINCT FROM c.principal
        AND g.client_pattern IS NOT DISTINCT FROM c.client_pattern
        AND g.broker_id IS NOT DISTINCT FROM c.broker_id
        AND g.connection_id IS NOT DISTINCT FROM c.connection_id
    LEFT JOIN lately l
        ON l.cluster_id = c.cluster_id AND l.minute = c.minute
        AND l.client_address = c.client_address
        AND l.broker_id IS NOT DISTINCT FROM c.broker_id
        AND l.connection_id IS NOT DISTINCT FROM c.connection_id
)
SELECT
    *,
    CAST(minute AS DATE) AS event_date,
    minute AS event_time,
    min(first_seen) AS first_seen,
    max(last_seen) AS last_seen,
    sum(requests) AS requests,
    coalesce(len(list_distinct(flatten(list(given_ids)))), 0) AS producer_ids,
    count(DISTINCT connection_id) FILTER (len(given_ids) > 0) AS allocating_connections,
    count(DISTINCT connection_id) FILTER (coalesce(len(given_ids), 0) = 0) AS other_connections,
    coalesce(sum(data_requests) FILTER (is_beyond_ids), 0) AS data_requests,
    coalesce(sum(data_bytes) FILTER (is_beyond_ids), 0) AS data_bytes,
    max(max_weight) AS max_weight
FROM judged
GROUP BY ALL
