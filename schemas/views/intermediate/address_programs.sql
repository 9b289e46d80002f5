-- kind: intermediate
-- grain: one row per address, principal and program
-- area: producer_ids
-- level: sampled_log
-- description: The programs that used an address within conf's plan.address_history_s, and what they
--   moved beyond the work of producer ids. A loop writes one to three batches with an id. Ten are its
--   bound, in each minute: a loop of a week has ids for all that others move in an hour.
-- history: address_clients
-- columns:
--   from address_clients: cluster_id, client_address
--   principal: authenticated principal as Kafka prints it; ?: none
--   client_pattern: client_id with * for numbers and random parts; empty: none. Untrusted text
--   producer_ids: producer ids that they took
--   other_connections: connections without new ids of its busiest minute
--   other_requests: data_requests of the minutes with more than ten for each id that the program took in
--     the minute or the one before: they are the work of another program, also if it shares the client id
--   other_bytes: data_bytes of these minutes
--   most_weight: requests that one line of the cluster counts as, at most
--   program_addresses: addresses where the principal runs the program
WITH bounds AS (
    SELECT
        newest.cluster_id,
        newest.newest_ms - coalesce(CAST(lengths.setting_value AS DOUBLE), 604800e0) * 1e3 AS since_ms
    FROM (
        SELECT cluster_id, max(unix_millis(last_seen)) AS newest_ms
        FROM address_clients
        GROUP BY cluster_id
    ) AS newest
    LEFT JOIN current_settings AS lengths
        ON newest.cluster_id = lengths.cluster_id AND lengths.setting = 'plan.address_history_s'
),
minutes AS (
    SELECT
        addresses.cluster_id,
        addresses.client_address,
        coalesce(addresses.principal, '?') AS principal,
        coalesce(addresses.client_pattern, '') AS client_pattern,
        unix_millis(addresses.event_time) AS minute_ms,
        sum(addresses.producer_ids) AS producer_ids,
        coalesce(sum(addresses.other_connections), 0) AS other_connections,
        coalesce(sum(addresses.data_requests), 0) AS data_requests,
        coalesce(sum(addresses.data_bytes), 0) AS data_bytes,
        max(addresses.max_weight) AS max_weight
    FROM address_clients AS addresses
    INNER JOIN bounds USING (cluster_id)
    WHERE unix_millis(addresses.last_seen) >= bounds.since_ms
    GROUP BY ALL
),
judged AS (
    SELECT
        *,
        data_requests > 10 * sum(producer_ids) OVER (
            PARTITION BY cluster_id, client_address, principal, client_pattern
            ORDER BY minute_ms
            RANGE BETWEEN 60000 PRECEDING AND CURRENT ROW
        ) AS is_beyond_ids
    FROM minutes
),
programs AS (
    SELECT
        cluster_id,
        client_address,
        principal,
        client_pattern,
        sum(producer_ids) AS producer_ids,
        max(other_connections) AS other_connections,
        sum(CASE WHEN is_beyond_ids THEN data_requests ELSE 0 END) AS other_requests,
        sum(CASE WHEN is_beyond_ids THEN data_bytes ELSE 0 END) AS other_bytes,
        max(max_weight) AS max_weight
    FROM judged
    GROUP BY cluster_id, client_address, principal, client_pattern
)

SELECT
    *,
    max(max_weight) OVER (PARTITION BY cluster_id) AS most_weight,
    count(*) OVER (PARTITION BY cluster_id, principal, client_pattern) AS program_addresses
FROM programs
