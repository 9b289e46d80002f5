-- kind: answer
-- grain: one row per burst of new producer ids of a principal in the last week
-- area: producer_ids
-- level: sampled_log
-- question: Bursts of producer ids. Why did a client take so many producer ids at once?
-- description: Bursts of ten or more new producer ids of a principal, each at most 30 s after the
--   one before, with their likely cause (KIP-936) and the numbers that show it. Four causes are
--   accused: transactional_id_churn, producer_per_batch, producer_churn and restart_loop.
-- key: cluster_id, principal, started_at
-- time: ended_at
-- clustering: ended_at, principal
-- lookbacks:
--   producer_id_uses: at most 14 d
-- columns:
--   from requests: cluster_id, principal
--   started_at TIMESTAMP: when the first id was given
--   ended_at TIMESTAMP: when the last id was given
--   cause STRING: transactional_id_churn (new transactional.ids again and again, not used later),
--     producer_per_batch (a new producer for at most three requests), producer_churn (a host takes one
--     or more ids per second for a minute or longer), restart_loop (one client after another that
--     ends early, or works and ends; or a fleet that starts a third time within an hour),
--     deploy_burst (many clients start within five minutes, each takes one or two ids, and a host
--     at most a hundred; this is normal), epoch_exhaustion (they follow ids of the same
--     transactional.id whose 32767 epochs are used up; this is normal), or unknown (the numbers fit
--     none of these)
--   is_accused BOOLEAN: cause is one of the four that a limit should stop
--   ids BIGINT: new producer ids
--   clients BIGINT: clients that took them, by client id and address
--   hosts BIGINT: addresses of those clients
--   sources BIGINT: programs and hosts that took them (see source)
--   source STRING: program and host that took most of them: client ids that differ only in numbers
--     or random parts are one program, and so are ten of a host that come once each and begin alike
--   source_address STRING: address of this host; for producer_churn the host that took most ids
--     under any name
--   source_ids BIGINT: ids that this source took
--   source_clients BIGINT: client ids of this source
--   source_duration_ms BIGINT: time between its first and its last id, in ms
--   median_gap_ms DOUBLE: median time between its ids, in ms; null: it took one
--   requests_per_id DOUBLE: its PRODUCE requests per id
--   new_transactional_ids BIGINT: its ids for a transactional.id that had none before
--   abandoned_ids BIGINT: its ids that were not named again after its last one was given
--   exhausted_ids BIGINT: its ids that follow one of the same transactional.id whose epochs are
--     used up

WITH thresholds AS (
    SELECT
        30000 AS most_apart_ms,       -- ids further apart are no burst
        10 AS least_ids,              -- fewer are no burst, and no loop of one source
        3e-1 AS least_alike_share,     -- of names that go on with the same character
        3000 AS least_loop_ms,        -- a loop goes on; a start is over soon
        250 AS least_restart_ms,      -- no process restarts faster
        3 AS least_ids_per_client,    -- the same client id comes again
        30 AS least_ids_of_new_names, -- or each has a name of its own, and there are many
        8e-1 AS least_new_share,       -- of ids with a transactional.id not used before
        8e-1 AS least_exhausted_share, -- of ids that follow one whose epochs are used up
        5e-1 AS least_left_share,      -- of ids not named again after the next ones came
        5e-1 AS least_requests,        -- PRODUCE requests per id: under it, it died first
        3 AS most_batch_requests,     -- up to it, a producer per batch
        20 AS least_work_requests,    -- over it, it worked for a while
        60000 AS least_churn_ms,      -- a host that takes so many, for so long, at such a rate
        100 AS least_churn_ids,       -- is accused under any names of its clients, and with any
        1e0 AS least_churn_per_s,     -- work that they do in between
        5 AS least_clients,           -- a deploy is of many
        2 AS most_ids_per_client,     -- of which each takes few
        300000 AS most_deploy_ms,     -- it is over soon
        100 AS most_ids_per_host      -- and of so many on one host
),
newest AS (
    SELECT cluster_id, max(last_seen) AS last_seen
    FROM producer_id_uses
    GROUP BY cluster_id
),
spaced AS (
    SELECT
        allocations.*,
        unix_millis(allocations.allocated_at) AS at_ms,
        unix_millis(allocations.last_used_at) AS used_ms,
        lag(allocations.allocated_at) OVER (
            PARTITION BY cluster_id, principal ORDER BY allocated_at, producer_id
        ) AS before_at
    FROM producer_id_allocations AS allocations
    WHERE principal IS NOT NULL
),
numbered AS (
    SELECT
        spaced.*,
        sum(CASE WHEN at_ms - unix_millis(before_at) <= most_apart_ms THEN 0 ELSE 1 END) OVER (
            PARTITION BY cluster_id, principal ORDER BY at_ms, producer_id
        ) AS burst
    FROM spaced
    CROSS JOIN thresholds
),
-- A name that comes once in a burst says nothing: of many such, what they have in common does.
singled AS (
    SELECT
        *,
        coalesce(client_pattern, '') AS pattern,
        coalesce(client_address, '?') AS address,
        regexp_replace(coalesce(client_pattern, ''), '[^-_./:]*$', '') AS stem,
        count(*) OVER (
            PARTITION BY cluster_id, principal, burst, client_address, client_pattern
        ) = 1 AS is_single
    FROM numbered
),
stems AS (
    SELECT
        cluster_id,
        principal,
        burst,
        address,
        pattern,
        CASE
            WHEN count(*) OVER (PARTITION BY cluster_id, principal, burst, address, stem) >= least_ids
                THEN stem
            ELSE ''
        END AS stem
    FROM singled
    CROSS JOIN thresholds
    WHERE is_single
),
beginnings AS (
    SELECT
        cluster_id,
        principal,
        burst,
        address,
        pattern,
        length(stem) + more AS characters,
        count(*) OVER (
            PARTITION BY cluster_id, principal, burst, address, stem, more,
                left(pattern, length(stem) + more)
        ) AS names
    FROM stems
    CROSS JOIN (SELECT explode(sequence(0, 40)) AS more) AS lengths
    WHERE length(stem) + more <= length(pattern)
),
-- A beginning goes on while many of its names do: of random characters few are the same.
shared AS (
    SELECT
        *,
        names >= least_ids AND names >= least_alike_share * coalesce(
            lag(names) OVER (
                PARTITION BY cluster_id, principal, burst, address, pattern ORDER BY characters
            ), names
        ) AS is_shared
    FROM beginnings
    CROSS JOIN thresholds
),
common AS (
    SELECT
        cluster_id,
        principal,
        burst,
        address,
        pattern,
        coalesce(min(CASE WHEN NOT is_shared THEN characters END) - 1, max(characters)) AS size
    FROM shared
    GROUP BY cluster_id, principal, burst, address, pattern
    HAVING min_by(is_shared, characters)
),
programs AS (
    SELECT
        singled.*,
        CASE
            WHEN is_single AND size IS NOT NULL
                THEN regexp_replace(concat(left(singled.pattern, size), '*'), '[*]+$', '*')
            ELSE singled.pattern
        END AS program
    FROM singled
    LEFT JOIN common USING (cluster_id, principal, burst, address, pattern)
),
sourced AS (
    SELECT
        *,
        concat(program, ' at ', coalesce(client_address, '?')) AS program_at
    FROM programs
),
gaps AS (
    SELECT
        *,
        CAST(
            at_ms - lag(at_ms) OVER (
                PARTITION BY cluster_id, principal, burst, program_at ORDER BY at_ms, producer_id
            ) AS DOUBLE
        ) AS gap_ms,
        max(at_ms) OVER (PARTITION BY cluster_id, principal, burst, program_at) AS source_end_ms
    FROM sourced
),
bursts AS (
    SELECT
        cluster_id,
        principal,
        burst,
        count(*) AS ids,
        min(allocated_at) AS started_at,
        max(allocated_at) AS ended_at,
        count(DISTINCT concat(coalesce(client_id, ''), ' at ', coalesce(client_address, '?')))
            AS clients,
        count(DISTINCT client_address) AS hosts,
        count(DISTINCT program_at) AS sources
    FROM gaps
    GROUP BY cluster_id, principal, burst
),
by_source AS (
    SELECT
        cluster_id,
        principal,
        burst,
        program_at AS source,
        max(client_address) AS source_address,
        max(program) AS source_pattern,
        count(*) AS source_ids,
        count(DISTINCT coalesce(client_id, '')) AS source_clients,
        count(CASE WHEN is_new_transactional_id THEN 1 END) AS new_transactional_ids,
        count(CASE WHEN is_epoch_exhausted THEN 1 END) AS exhausted_ids,
        count(CASE WHEN used_ms < source_end_ms THEN 1 END) AS abandoned_ids,
        max(at_ms) - min(at_ms) AS source_duration_ms,
        median(gap_ms) AS median_gap_ms,
        row_number() OVER (
            PARTITION BY cluster_id, principal, burst ORDER BY count(*) DESC, program_at
        ) AS nth
    FROM gaps
    GROUP BY cluster_id, principal, burst, program_at
),
by_host AS (
    SELECT
        cluster_id,
        principal,
        burst,
        client_address AS host,
        count(*) AS host_ids,
        max(at_ms) - min(at_ms) AS host_duration_ms,
        row_number() OVER (
            PARTITION BY cluster_id, principal, burst ORDER BY count(*) DESC, client_address
        ) AS nth
    FROM gaps
    GROUP BY cluster_id, principal, burst, client_address
),
sources_of_names AS (
    SELECT DISTINCT
        cluster_id,
        principal,
        burst,
        coalesce(client_pattern, '') AS client_pattern,
        coalesce(client_address, '?') AS client_address,
        program_at
    FROM gaps
),
produced AS (
    SELECT
        bursts.cluster_id,
        bursts.principal,
        bursts.burst,
        of_names.program_at AS source,
        sum(produce_requests) AS requests
    FROM bursts
    INNER JOIN producer_id_uses AS uses
        ON bursts.cluster_id = uses.cluster_id
            AND bursts.principal = uses.principal
            AND uses.produce_requests > 0
            AND unix_millis(uses.last_seen) >= unix_millis(bursts.started_at)
            AND unix_millis(uses.event_time) <= unix_millis(bursts.ended_at)
    LEFT JOIN sources_of_names AS of_names
        ON bursts.cluster_id = of_names.cluster_id
            AND bursts.principal = of_names.principal
            AND bursts.burst = of_names.burst
            AND coalesce(uses.client_pattern, '') = of_names.client_pattern
            AND coalesce(uses.client_address, '?') = of_names.client_address
    GROUP BY bursts.cluster_id, bursts.principal, bursts.burst, of_names.program_at
),
features AS (
    SELECT
        bursts.*,
        by_source.source,
        by_source.source_address,
        by_source.source_pattern,
        by_source.source_ids,
        host,
        host_ids,
        host_duration_ms,
        source_clients,
        new_transactional_ids,
        exhausted_ids,
        abandoned_ids,
        source_duration_ms,
        median_gap_ms,
        coalesce(of_source.requests, 0) * 1e0 / source_ids AS requests_per_id,
        coalesce(of_all.requests, 0) * 1e0 / ids AS requests_per_id_of_all
    FROM bursts
    INNER JOIN by_source USING (cluster_id, principal, burst)
    INNER JOIN by_host USING (cluster_id, principal, burst)
    LEFT JOIN produced AS of_source USING (cluster_id, principal, burst, source)
    LEFT JOIN (
        SELECT cluster_id, principal, burst, sum(requests) AS requests
        FROM produced
        GROUP BY cluster_id, principal, burst
    ) AS of_all USING (cluster_id, principal, burst)
    WHERE by_source.nth = 1 AND by_host.nth = 1
),
judged AS (
    SELECT
        features.*,
        CASE
            -- Coordinators count epochs: one such id takes a client more than 30000 requests.
            WHEN exhausted_ids >= least_exhausted_share * source_ids THEN 'epoch_exhaustion'
            WHEN source_ids >= least_ids AND source_duration_ms >= least_loop_ms
                AND new_transactional_ids >= least_new_share * source_ids
                AND abandoned_ids >= least_left_share * source_ids
                THEN 'transactional_id_churn'
            WHEN source_ids >= least_ids AND source_duration_ms >= least_loop_ms
                AND requests_per_id >= least_requests AND requests_per_id <= most_batch_requests
                AND (
                    source_ids >= least_ids_per_client * source_clients
                    OR source_ids >= least_ids_of_new_names
                )
                THEN 'producer_per_batch'
            WHEN source_ids >= least_ids AND median_gap_ms >= least_restart_ms
                AND source_ids >= least_ids_per_client * source_clients
                AND (requests_per_id < least_requests OR requests_per_id > least_work_requests)
                THEN 'restart_loop'
            -- Names and work are what a client chooses: its address and its ids are not.
            WHEN host_ids >= least_churn_ids AND host_duration_ms >= least_churn_ms
                AND host_ids * 1e3 >= least_churn_per_s * host_duration_ms
                THEN 'producer_churn'
            WHEN clients >= least_clients AND ids <= most_ids_per_client * clients
                AND (
                    hosts >= least_clients OR requests_per_id_of_all > most_batch_requests
                )
                AND unix_millis(ended_at) - unix_millis(started_at) <= most_deploy_ms
                AND host_ids <= most_ids_per_host
                THEN 'deploy_burst'
            ELSE 'unknown'
        END AS likely_cause
    FROM features
    INNER JOIN newest USING (cluster_id)
    CROSS JOIN thresholds
    WHERE
        ids >= least_ids
        AND unix_millis(features.ended_at) > unix_millis(newest.last_seen) - 604800000
),
repeated AS (
    SELECT
        judged.*,
        -- By name and by host, because the client chooses the name.
        -- Kept as a constant, because a range needs one: within an hour a second deploy is in doubt,
        -- and a third is a fleet that restarts again and again.
        sum(CASE likely_cause WHEN 'deploy_burst' THEN 1 ELSE 0 END) OVER (
            PARTITION BY cluster_id, principal, source_pattern ORDER BY unix_millis(started_at)
            RANGE BETWEEN 3600000 PRECEDING AND CURRENT ROW
        ) AS deploys_of_program,
        sum(CASE likely_cause WHEN 'deploy_burst' THEN 1 ELSE 0 END) OVER (
            PARTITION BY cluster_id, principal, host ORDER BY unix_millis(started_at)
            RANGE BETWEEN 3600000 PRECEDING AND CURRENT ROW
        ) AS deploys_of_host
    FROM judged
),
named AS (
    SELECT
        *,
        CASE
            WHEN likely_cause = 'deploy_burst' AND (deploys_of_program > 2 OR deploys_of_host > 2)
                THEN 'restart_loop'
            WHEN likely_cause = 'deploy_burst' AND (deploys_of_program > 1 OR deploys_of_host > 1)
                THEN 'unknown'
            ELSE likely_cause
        END AS cause
    FROM repeated
)

SELECT
    *,
    cause IN ('transactional_id_churn', 'producer_per_batch', 'producer_churn', 'restart_loop')
        AS is_accused,
    CASE cause WHEN 'producer_churn' THEN host ELSE source_address END AS source_address
FROM named
