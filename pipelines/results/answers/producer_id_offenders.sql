WITH thresholds AS (
    SELECT
        3600000 AS longest_gap_ms,    -- what is known of addresses begins after a longer one
        168 AS history_parts,         -- a program of its own is seen for one of them: an hour
        10e0 AS least_s_per_id,       -- of a week, and takes fewer ids than one in so many seconds
        1e-1 AS least_share,          -- of the ids of the period, or of the bound of the heap
        2e0 AS most_ids_per_connection -- more: the loop keeps its connection
),
stored AS (
    SELECT
        cluster_id,
        setting AS name,
        coalesce(setting_value, '') AS value
    FROM current_settings
),
policy AS (
    SELECT
        cluster_id,
        max(CASE WHEN name = 'plan.offence_period_s' THEN CAST(value AS DOUBLE) END)
            AS offence_period_s,
        max(CASE WHEN name = 'plan.offence_share' THEN CAST(value AS DOUBLE) END) AS offence_share,
        max(CASE WHEN name = 'plan.address_history_s' THEN CAST(value AS DOUBLE) END)
            AS address_history_s,
        max(CASE WHEN name = 'producer_ids.limited_addresses' THEN value END) AS limited_addresses,
        max(CASE WHEN name = 'producer_ids.protected_addresses' THEN value END)
            AS protected_addresses,
        max(CASE WHEN name = 'probe.producer_ids_rate' AND value = 'accepted' THEN 1 ELSE 0 END)
            AS takes_producer_ids_rate,
        max(CASE WHEN name LIKE 'privacy.hides.%' AND lower(value) = 'true' THEN 1 ELSE 0 END)
            AS hides_clients
    FROM stored
    GROUP BY cluster_id
),
seen_minutes AS (
    SELECT
        cluster_id,
        event_time,
        unix_millis(event_time) AS minute_ms,
        lag(unix_millis(event_time)) OVER (PARTITION BY cluster_id ORDER BY event_time) AS before_ms
    FROM (SELECT DISTINCT cluster_id, event_time FROM address_clients) AS minutes
),
known AS (
    SELECT
        cluster_id,
        max(
            CASE
                WHEN before_ms IS NULL OR minute_ms - before_ms > longest_gap_ms THEN minute_ms
            END
        ) AS known_since_ms
    FROM seen_minutes
    CROSS JOIN thresholds
    GROUP BY cluster_id
),
newest AS (
    SELECT
        addresses.cluster_id,
        max(unix_millis(last_seen)) AS newest_ms
    FROM address_clients AS addresses
    GROUP BY addresses.cluster_id
),
bounds AS (
    SELECT
        newest.cluster_id,
        newest_ms,
        newest_ms - known_since_ms AS history_ms,
        coalesce(offence_period_s, 1800e0) AS offence_period_s,
        coalesce(offence_share, 5e-1) AS offence_share,
        coalesce(address_history_s, 604800e0) AS address_history_s,
        coalesce(limited_addresses, '') AS limited_addresses,
        coalesce(protected_addresses, '') AS protected_addresses,
        coalesce(takes_producer_ids_rate, 0) = 1 AS takes_producer_ids_rate,
        coalesce(hides_clients, 0) = 1 AS hides_clients
    FROM newest
    INNER JOIN known ON newest.cluster_id = known.cluster_id
    LEFT JOIN policy ON newest.cluster_id = policy.cluster_id
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
    INNER JOIN bounds ON addresses.cluster_id = bounds.cluster_id
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
        count(CASE WHEN producer_ids > 60 * accused.quota_per_s THEN 1 END) AS offending_minutes
    FROM taken
    INNER JOIN accused
        ON taken.cluster_id = accused.cluster_id
            AND taken.principal = accused.principal
            AND accused.worst = 1
    GROUP BY taken.cluster_id, taken.principal, taken.client_address
),
programs AS (
    SELECT
        addresses.cluster_id,
        addresses.client_address,
        coalesce(addresses.principal, '?') AS principal,
        coalesce(addresses.client_pattern, '') AS client_pattern,
        sum(addresses.producer_ids) AS producer_ids,
        max(addresses.max_weight) AS max_weight,
        max(CASE WHEN addresses.is_follower THEN 1 ELSE 0 END) AS is_follower,
        (max(unix_millis(addresses.last_seen)) - min(unix_millis(addresses.first_seen))) / 1e3
            AS lasted_s
    FROM address_clients AS addresses
    INNER JOIN bounds ON addresses.cluster_id = bounds.cluster_id
    WHERE unix_millis(addresses.last_seen) >= newest_ms - address_history_s * 1e3
    GROUP BY
        addresses.cluster_id,
        addresses.client_address,
        coalesce(addresses.principal, '?'),
        coalesce(addresses.client_pattern, '')
),
ranked AS (
    SELECT
        programs.*,
        row_number() OVER (
            PARTITION BY cluster_id, client_address, principal
            ORDER BY producer_ids DESC, client_pattern
        ) AS nth,
        max(max_weight) OVER (PARTITION BY cluster_id) AS most_weight,
        count(*) OVER (PARTITION BY cluster_id, principal, client_pattern) AS program_addresses
    FROM programs
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
        count(
            CASE
                WHEN is_own AND ranked.nth > 1 AND ranked.lasted_s * history_parts >= address_history_s
                    AND ranked.producer_ids * least_s_per_id < ranked.lasted_s
                    THEN 1
            END
        ) AS other_programs,
        max(CASE WHEN protected.principal IS NOT NULL OR ranked.is_follower = 1 THEN 1 ELSE 0 END)
            AS is_excluded
    FROM offences
    INNER JOIN (
        SELECT
            of_address.*,
            of_principal.principal AS offender,
            of_address.principal = of_principal.principal AS is_own
        FROM ranked AS of_address
        INNER JOIN offences AS of_principal
            ON of_address.cluster_id = of_principal.cluster_id
                AND of_address.client_address = of_principal.client_address
    ) AS ranked
        ON offences.cluster_id = ranked.cluster_id
            AND offences.client_address = ranked.client_address
            AND offences.principal = ranked.offender
    LEFT JOIN protected_principals AS protected
        ON ranked.cluster_id = protected.cluster_id AND ranked.principal = protected.principal
    INNER JOIN bounds ON offences.cluster_id = bounds.cluster_id
    CROSS JOIN thresholds
    GROUP BY offences.cluster_id, offences.principal, offences.client_address
),
broker_addresses AS (
    SELECT DISTINCT cluster_id, host AS client_address FROM current_brokers
),
heaps AS (
    SELECT
        *,
        row_number() OVER (
            PARTITION BY cluster_id ORDER BY forecast_bytes - bound_bytes DESC, broker_id
        ) AS nth
    FROM producer_id_heap
),
slow AS (
    SELECT
        degraded.*,
        row_number() OVER (
            PARTITION BY degraded.cluster_id
            ORDER BY degraded.event_time DESC, degraded.broker_id
        ) AS nth
    FROM broker_degradation AS degraded
    INNER JOIN bounds ON degraded.cluster_id = bounds.cluster_id
    WHERE
        degraded.is_degraded
        AND unix_millis(degraded.event_time) > newest_ms - offence_period_s * 1e3 - 60000
),
judged AS (
    SELECT
        offences.cluster_id,
        offences.principal,
        offences.client_address,
        neighbours.client_pattern,
        accused.cause,
        accused.quota_per_s,
        accused.rate_per_s,
        accused.throttle_time_ms,
        accused.broker_id AS rate_broker_id,
        brokers.brokers,
        concat(coalesce(neighbours.client_pattern, ''), ' at ', offences.client_address) AS source,
        accused.since,
        offences.producer_ids,
        offences.producer_ids * 1e0 / offences.all_producer_ids AS ids_share,
        offences.allocating_connections,
        offences.producer_ids > most_ids_per_connection * offences.allocating_connections
            AS is_connection_kept,
        offences.offending_minutes,
        CAST(ceil(bounds.offence_period_s / 60) AS BIGINT) AS period_minutes,
        bounds.offence_share,
        neighbours.other_principals,
        neighbours.other_principal,
        neighbours.other_programs,
        neighbours.program_addresses,
        neighbours.is_excluded = 1
        OR broker_addresses.client_address IS NOT NULL
        OR position(
            concat(chr(10), offences.client_address, chr(10))
            IN concat(chr(10), bounds.protected_addresses, chr(10))
        ) > 0 AS is_protected,
        position(
            concat(chr(10), offences.client_address, chr(10))
            IN concat(chr(10), bounds.limited_addresses, chr(10))
        ) > 0 AS is_listed,
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
            WHEN
                slow.broker_id IS NOT NULL
                AND offences.producer_ids >= least_share * offences.all_producer_ids
                THEN 'latency'
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
    INNER JOIN accused
        ON offences.cluster_id = accused.cluster_id
            AND offences.principal = accused.principal
            AND accused.worst = 1
    INNER JOIN bounds ON offences.cluster_id = bounds.cluster_id
    INNER JOIN neighbours
        ON offences.cluster_id = neighbours.cluster_id
            AND offences.principal = neighbours.principal
            AND offences.client_address = neighbours.client_address
    LEFT JOIN (
        SELECT cluster_id, count(*) AS brokers FROM current_brokers GROUP BY cluster_id
    ) AS brokers
        ON offences.cluster_id = brokers.cluster_id
    LEFT JOIN broker_addresses
        ON offences.cluster_id = broker_addresses.cluster_id
            AND offences.client_address = broker_addresses.client_address
    LEFT JOIN heaps ON offences.cluster_id = heaps.cluster_id AND heaps.nth = 1
    LEFT JOIN slow ON offences.cluster_id = slow.cluster_id AND slow.nth = 1
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
            WHEN offending_minutes < offence_share * period_minutes THEN 'offence_too_short'
            WHEN harm IS NULL THEN 'no_harm'
            WHEN takes_producer_ids_rate THEN NULL
            WHEN is_hidden THEN 'clients_hidden'
            WHEN is_sampled THEN 'requests_sampled'
            WHEN history_s < address_history_s THEN 'address_history_short'
            WHEN is_connection_kept AND program_addresses > 1 THEN 'program_elsewhere'
            WHEN is_connection_kept AND position('*' IN client_pattern) > 0 THEN 'many_client_ids'
            WHEN is_connection_kept THEN 'usage_unknown'
            WHEN is_protected THEN 'protected_address'
            WHEN other_principals > 0 AND NOT is_listed THEN 'other_principals'
            WHEN other_programs > 0 AND NOT is_listed THEN 'other_programs'
        END AS blocked_reason
    FROM judged
)

SELECT
    cluster_id,
    principal,
    client_address,
    client_pattern,
    cause,
    source,
    since,
    step,
    blocked_reason,
    harm,
    quota_per_s,
    rate_per_s,
    throttle_time_ms,
    brokers,
    CAST(
        row_number() OVER (
            PARTITION BY cluster_id, principal
            ORDER BY
                CASE WHEN blocked_reason IS NULL THEN 0 ELSE 1 END,
                producer_ids DESC,
                client_address
        ) AS INT
    ) AS nth_of_principal,
    producer_ids,
    ids_share,
    allocating_connections,
    offending_minutes,
    period_minutes,
    other_principals,
    other_principal,
    other_programs,
    history_s,
    address_history_s,
    forecast_bytes,
    bound_bytes,
    CASE harm
        WHEN 'latency' THEN slow_broker_id
        WHEN 'heap' THEN heap_broker_id
        ELSE rate_broker_id
    END AS broker_id,
    produce_p99_ms,
    usual_produce_p99_ms,
    fetch_p99_ms,
    usual_fetch_p99_ms,
    shrunk_partitions
FROM decided
