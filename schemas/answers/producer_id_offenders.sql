-- kind: answer
-- grain: one row per principal and address that take new producer ids faster than their quota for
--   an accused cause (recent_violations): which limit would stop them, whom else it would reach,
--   what harm they do, and why no plan may set it
-- area: producer_ids
-- level: sampled_log
-- question: Offenders. Who takes producer ids too fast, what harm does it do, and whom would a
--   limit reach?
-- description: Names that a client chose decide nothing alone: guilt is by principal, address, ids,
--   connections and bytes.
-- key: cluster_id, principal, client_address
-- time: since
-- clustering: since, principal
-- lookbacks:
--   address_clients: 14 d, plan.address_history_s * 2 s
--   fetch_sizes: 7 d
--   active_producers: at most 14 d
--   producer_id_uses: 14 d
--   pipeline_progress: 14 d
-- columns:
--   from producer_id_uses: cluster_id, principal
--   client_address STRING: address that took the ids
--   client_pattern STRING: program that took most of them there (client id with * for numbers):
--     untrusted text
--   cause STRING: cause of the burst, as in producer_id_bursts; an accused one
--   source STRING: program and address, as "client_pattern at client_address"
--   since TIMESTAMP: first second over the quota in recent_violations
--   step STRING: what stops it: producer_ids_rate (the cluster takes it), address (a rate of new
--     connections), or client_quota (the loop keeps its connection)
--   blocked_reason STRING: why no plan may set that, as a code; null: one may
--   harm STRING: heap (the forecast of producer ids exceeds its bound), latency (clients of a
--     broker waited longer than usual in two minutes or more in which it gave the address ten ids
--     or more per second, after the offence began); null: none is measured, or its part in it is
--     small: under a tenth of the bound of the heap, or of the broker's ids then
--   quota_per_s DOUBLE: producer_ids_rate of the principal by conf, per broker
--   rate_per_s DOUBLE: rate in its worst second over that quota, at one broker
--   throttle_time_ms BIGINT: throttle time that the quota would give then, in ms
--   brokers BIGINT: brokers of the cluster: each limits new connections for itself
--   nth_of_principal INT: 1 for the address of its principal that a plan may limit, or that took
--     most ids
--   producer_ids BIGINT: ids it took in the period of conf (plan.offence_period_s)
--   ids_per_s DOUBLE: new ids per second over the period: producer_ids / its length
--   ids_share DOUBLE: its share of all ids given in the period, 0 to 1
--   allocating_connections BIGINT: connections it took them on, counted by minute
--   offending_minutes BIGINT: minutes of the period with more ids than its quota
--   period_minutes BIGINT: minutes of the period
--   other_principals BIGINT: other principals seen at the address
--   other_principal STRING: one of them; null: none
--   other_programs BIGINT: programs of the principal there that moved records beyond the work of
--     ids within address_history_s, also under the loop's client id (see address_programs); 0: they
--     moved under 64 KiB, or in fewer than 20 requests
--   other_connections BIGINT: connections of all others there, each program in its busiest minute
--     of address_history_s: a limit of a listed address lets all of them connect at once
--   history_s DOUBLE: how long requests have been recorded without a gap, in s
--   address_history_s DOUBLE: how long that must be by conf, in s
--   forecast_bytes BIGINT: greatest forecast of producer_id_heap, in bytes; null: none
--   bound_bytes DOUBLE: its bound, in bytes
--   broker_id INT: broker with the harm; without harm that of rate_per_s
--   produce_p99_ms DOUBLE: p99 of PRODUCE in the last such minute, in ms
--   usual_produce_p99_ms DOUBLE: usual p99 of PRODUCE there, in ms
--   fetch_p99_ms DOUBLE: the same of consumer FETCH without its wait, in ms
--   usual_fetch_p99_ms DOUBLE: its usual p99, in ms
--   shrunk_partitions BIGINT: partitions down to their min.insync.replicas

WITH thresholds AS (
    SELECT
        20 AS least_requests,          -- another program moved records so often,
        65536 AS least_bytes,          -- and so much: a few requests are no second program
        1e-1 AS least_share,           -- of the ids of slow minutes, or of the bound of the heap
        10e0 AS least_ids_per_s,       -- fewer at a broker cost its clients no time
        2 AS least_slow_minutes,       -- with so many ids
        2e0 AS most_ids_per_connection -- more: the loop keeps its connection
),
accused AS (
    SELECT
        *,
        min(event_time) OVER (PARTITION BY cluster_id, principal) AS since,
        row_number() OVER (
            PARTITION BY cluster_id, principal
            ORDER BY throttle_time_ms DESC, event_time, broker_id, kind
        ) AS worst
    FROM recent_violations
),
minutes AS (
    SELECT
        addresses.cluster_id,
        addresses.client_address,
        addresses.principal,
        addresses.event_time,
        sum(addresses.producer_ids) AS producer_ids,
        sum(addresses.allocating_connections) AS allocating_connections
    FROM address_clients AS addresses
    INNER JOIN offence_bounds AS bounds USING (cluster_id)
    WHERE unix_millis(addresses.event_time) > newest_ms - offence_period_s * 1e3 - 60000
    GROUP BY
        addresses.cluster_id, addresses.client_address, addresses.principal, addresses.event_time
),
taken AS (
    SELECT
        minutes.*,
        sum(producer_ids) OVER (PARTITION BY cluster_id) AS all_producer_ids
    FROM minutes
),
offences AS (
    SELECT
        taken.cluster_id,
        taken.principal,
        taken.client_address,
        sum(producer_ids) AS producer_ids,
        sum(allocating_connections) AS allocating_connections,
        max(all_producer_ids) AS all_producer_ids,
        count(CASE WHEN producer_ids > 60 * accused.quota_per_s THEN 1 END) AS offending_minutes,
        min(CASE WHEN producer_ids > 60 * accused.quota_per_s THEN unix_millis(taken.event_time) END)
            AS began_ms
    FROM taken
    INNER JOIN accused USING (cluster_id, principal)
    WHERE accused.worst = 1
    GROUP BY taken.cluster_id, taken.principal, taken.client_address
),
followers AS (
    SELECT DISTINCT
        addresses.cluster_id,
        addresses.client_address
    FROM address_clients AS addresses
    INNER JOIN offence_bounds AS bounds USING (cluster_id)
    INNER JOIN broker_history AS brokers
        ON addresses.cluster_id = brokers.cluster_id AND addresses.replica_id = brokers.broker_id
    WHERE unix_millis(addresses.last_seen) >= newest_ms - address_history_s * 1e3
),
neighbours AS (
    SELECT
        offences.cluster_id,
        offences.principal,
        offences.client_address,
        max(CASE WHEN ranked.nth = 1 AND is_own THEN ranked.client_pattern END) AS client_pattern,
        max(CASE WHEN ranked.nth = 1 AND is_own THEN ranked.program_addresses END)
            AS program_addresses,
        max(ranked.most_weight) AS most_weight,
        count(DISTINCT CASE WHEN NOT is_own THEN ranked.principal END) AS other_principals,
        min(CASE WHEN NOT is_own THEN ranked.principal END) AS other_principal,
        count(CASE WHEN is_own AND is_other THEN 1 END) AS moving_programs,
        sum(CASE WHEN is_own AND is_other THEN ranked.other_requests ELSE 0 END) AS other_requests,
        sum(CASE WHEN is_own AND is_other THEN ranked.other_bytes ELSE 0 END) AS other_bytes,
        -- Not in one minute: they may all come back in one, such as after a restart of a broker.
        sum(CASE WHEN NOT is_own OR is_other THEN ranked.other_connections ELSE 0 END)
            AS other_connections,
        max(CASE WHEN protected.principal IS NOT NULL THEN 1 ELSE 0 END) AS is_excluded
    FROM offences
    INNER JOIN (
        SELECT
            of_address.*,
            row_number() OVER (
                PARTITION BY
                    of_address.cluster_id,
                    of_address.client_address,
                    of_address.principal,
                    of_principal.principal
                ORDER BY of_address.producer_ids DESC, of_address.client_pattern
            ) AS nth,
            -- A name that took ids, and moved little more, is one of the many of a loop.
            of_address.other_requests >= CASE
                WHEN of_address.producer_ids > 0 THEN least_requests ELSE 1
            END AS is_other,
            of_principal.principal AS offender,
            of_address.principal = of_principal.principal AS is_own
        FROM address_programs AS of_address
        INNER JOIN offences AS of_principal USING (cluster_id, client_address)
        CROSS JOIN thresholds
    ) AS ranked
        ON offences.cluster_id = ranked.cluster_id
            AND offences.client_address = ranked.client_address
            AND offences.principal = ranked.offender
    LEFT JOIN protected_principals AS protected
        ON ranked.cluster_id = protected.cluster_id AND ranked.principal = protected.principal
    GROUP BY offences.cluster_id, offences.principal, offences.client_address
),
-- The advertised host of a broker is a name for the most part, and then only followers show it.
broker_addresses AS (
    SELECT cluster_id, host AS client_address FROM current_brokers
    UNION
    SELECT cluster_id, client_address FROM followers
),
-- Java prints all eight groups of an IPv6 address, and its zone.
located AS (
    SELECT DISTINCT
        cluster_id,
        client_address,
        CASE
            WHEN position(':' IN client_address) > 0
                THEN concat(
                    lpad(lower(split_part(client_address, ':', 1)), 4, '0'),
                    lpad(lower(split_part(client_address, ':', 2)), 4, '0'),
                    lpad(lower(split_part(client_address, ':', 3)), 4, '0'),
                    lpad(lower(split_part(client_address, ':', 4)), 4, '0'),
                    lpad(lower(split_part(client_address, ':', 5)), 4, '0'),
                    lpad(lower(split_part(client_address, ':', 6)), 4, '0'),
                    lpad(lower(split_part(client_address, ':', 7)), 4, '0'),
                    lpad(lower(split_part(split_part(client_address, ':', 8), '%', 1)), 4, '0')
                )
            ELSE concat(
                lpad(lower(hex(try_cast(split_part(client_address, '.', 1) AS BIGINT))), 2, '0'),
                lpad(lower(hex(try_cast(split_part(client_address, '.', 2) AS BIGINT))), 2, '0'),
                lpad(lower(hex(try_cast(split_part(client_address, '.', 3) AS BIGINT))), 2, '0'),
                lpad(lower(hex(try_cast(split_part(client_address, '.', 4) AS BIGINT))), 2, '0')
            )
        END AS digits
    FROM offences
),
places AS (
    SELECT
        located.cluster_id,
        located.client_address,
        max(CASE WHEN networks.list = 'limited' THEN 1 ELSE 0 END) = 1 AS is_listed,
        max(CASE WHEN networks.list = 'protected' THEN 1 ELSE 0 END) = 1 AS is_protected,
        -- All clients of a demo are on its machine, so conf may list one of its addresses by itself.
        max(
            CASE networks.list
                WHEN 'special' THEN 2
                WHEN 'loopback' THEN 1
                ELSE 0
            END
        ) > max(
            CASE
                WHEN networks.list = 'limited' AND networks.network = located.client_address THEN 1
                ELSE 0
            END
        ) AS is_special
    FROM located
    LEFT JOIN address_networks AS networks
        ON located.cluster_id = networks.cluster_id
            AND (
                networks.network = located.client_address
                OR (
                    length(networks.first_digits) = length(located.digits)
                    AND located.digits BETWEEN networks.first_digits AND networks.last_digits
                )
            )
    GROUP BY located.cluster_id, located.client_address
),
heaps AS (
    SELECT
        *,
        row_number() OVER (
            PARTITION BY cluster_id ORDER BY forecast_bytes - bound_bytes DESC, broker_id
        ) AS nth
    FROM producer_id_heap
),
given AS (
    SELECT
        uses.cluster_id,
        uses.principal,
        uses.client_address,
        uses.broker_id,
        uses.event_time,
        sum(uses.allocations) AS producer_ids,
        sum(sum(uses.allocations)) OVER (
            PARTITION BY uses.cluster_id, uses.broker_id, uses.event_time
        ) AS all_producer_ids
    FROM producer_id_uses AS uses
    INNER JOIN broker_degradation AS degraded USING (cluster_id, broker_id, event_time)
    WHERE degraded.is_slow
    GROUP BY
        uses.cluster_id, uses.principal, uses.client_address, uses.broker_id, uses.event_time
),
-- What is slow before the offence, at a broker that gave no ids, or with few of them, has another
-- cause.
slow AS (
    SELECT
        given.principal,
        given.client_address,
        degraded.*,
        row_number() OVER (
            PARTITION BY given.cluster_id, given.principal, given.client_address
            ORDER BY given.event_time DESC, given.broker_id
        ) AS nth,
        count(*) OVER (PARTITION BY given.cluster_id, given.principal, given.client_address)
            AS minutes
    FROM given
    INNER JOIN broker_degradation AS degraded USING (cluster_id, broker_id, event_time)
    INNER JOIN offences USING (cluster_id, principal, client_address)
    CROSS JOIN thresholds
    WHERE
        unix_millis(given.event_time) > offences.began_ms
        AND given.producer_ids >= 60 * least_ids_per_s
        AND given.producer_ids >= least_share * given.all_producer_ids
),
judged AS (
    SELECT
        offences.*,
        neighbours.client_pattern,
        accused.cause,
        accused.quota_per_s,
        accused.rate_per_s,
        accused.throttle_time_ms,
        accused.broker_id AS rate_broker_id,
        brokers.brokers,
        concat(coalesce(neighbours.client_pattern, ''), ' at ', offences.client_address) AS source,
        accused.since,
        offences.producer_ids / (60e0 * ceil(bounds.offence_period_s / 60)) AS ids_per_s,
        offences.producer_ids * 1e0 / offences.all_producer_ids AS ids_share,
        offences.producer_ids > most_ids_per_connection * offences.allocating_connections
            AS is_connection_kept,
        CAST(ceil(bounds.offence_period_s / 60) AS BIGINT) AS period_minutes,
        neighbours.other_principals,
        neighbours.other_principal,
        CASE
            WHEN
                neighbours.other_requests >= least_requests
                AND neighbours.other_bytes >= least_bytes
                THEN neighbours.moving_programs
            ELSE 0
        END AS other_programs,
        neighbours.program_addresses,
        neighbours.other_connections,
        CASE
            WHEN places.is_special THEN 'special_address'
            WHEN broker_addresses.client_address IS NOT NULL THEN 'broker_address'
            WHEN neighbours.is_excluded = 1 THEN 'protected_principal'
            WHEN places.is_protected THEN 'protected_address'
        END AS protected_by,
        places.is_listed,
        bounds.hides_clients OR offences.client_address LIKE 'hmac.%' AS is_hidden,
        neighbours.most_weight > 1 AS is_sampled,
        bounds.history_ms / 1e3 AS history_s,
        bounds.address_history_s,
        bounds.takes_producer_ids_rate,
        CASE
            WHEN
                heaps.forecast_bytes > heaps.bound_bytes
                AND heaps.forecast_bytes * 1e0 * offences.producer_ids
                >= least_share * heaps.bound_bytes * offences.all_producer_ids
                THEN 'heap'
            WHEN slow.minutes >= least_slow_minutes THEN 'latency'
        END AS harm,
        heaps.forecast_bytes,
        heaps.bound_bytes,
        heaps.broker_id AS heap_broker_id,
        slow.broker_id AS slow_broker_id,
        slow.produce_p99_ms,
        slow.usual_produce_p99_ms,
        slow.fetch_p99_ms,
        slow.usual_fetch_p99_ms,
        slow.shrunk_partitions
    FROM offences
    INNER JOIN offence_bounds AS bounds USING (cluster_id)
    INNER JOIN neighbours USING (cluster_id, principal, client_address)
    INNER JOIN places USING (cluster_id, client_address)
    LEFT JOIN broker_addresses USING (cluster_id, client_address)
    INNER JOIN accused
        ON offences.cluster_id = accused.cluster_id
            AND offences.principal = accused.principal
            AND accused.worst = 1
    LEFT JOIN (
        SELECT cluster_id, count(*) AS brokers FROM current_brokers GROUP BY cluster_id
    ) AS brokers
        ON offences.cluster_id = brokers.cluster_id
    LEFT JOIN heaps ON offences.cluster_id = heaps.cluster_id AND heaps.nth = 1
    LEFT JOIN slow
        ON offences.cluster_id = slow.cluster_id
            AND offences.principal = slow.principal
            AND offences.client_address = slow.client_address
            AND slow.nth = 1
    CROSS JOIN thresholds
    WHERE offences.offending_minutes > 0
),
decided AS (
    SELECT
        *,
        CASE
            WHEN takes_producer_ids_rate THEN 'producer_ids_rate'
            WHEN is_connection_kept THEN 'client_quota'
            ELSE 'address'
        END AS step,
        CASE
            WHEN offending_minutes < 5e-1 * period_minutes THEN 'offence_too_short'
            WHEN harm IS NULL THEN 'no_harm'
            WHEN takes_producer_ids_rate THEN NULL
            WHEN is_hidden THEN 'clients_hidden'
            WHEN is_sampled THEN 'requests_sampled'
            WHEN history_s < address_history_s THEN 'address_history_short'
            WHEN is_connection_kept AND program_addresses > 1 THEN 'program_elsewhere'
            WHEN is_connection_kept AND position('*' IN client_pattern) > 0 THEN 'many_client_ids'
            WHEN is_connection_kept THEN 'usage_unknown'
            WHEN protected_by IS NOT NULL THEN protected_by
            WHEN other_principals > 0 AND NOT is_listed THEN 'other_principals'
            WHEN other_programs > 0 AND NOT is_listed THEN 'other_programs'
        END AS blocked_reason
    FROM judged
)

SELECT
    *,
    CAST(
        row_number() OVER (
            PARTITION BY cluster_id, principal
            ORDER BY
                CASE WHEN blocked_reason IS NULL THEN 0 ELSE 1 END,
                producer_ids DESC,
                client_address
        ) AS INT
    ) AS nth_of_principal,
    CASE harm
        WHEN 'latency' THEN slow_broker_id
        WHEN 'heap' THEN heap_broker_id
        ELSE rate_broker_id
    END AS broker_id
FROM decided
