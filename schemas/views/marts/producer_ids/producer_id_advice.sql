-- kind: mart
-- grain: one row per principal that received or used producer ids
-- area: producer_ids
-- level: sampled_log
-- question: Fitting rates of producer ids. Which quota of producer ids would each principal need?
-- description: The worst burst of new producer ids of each principal, and the producer_ids_rate
--   (KIP-936) that would limit the burst but not ordinary work. Ordinary seconds are those outside
--   accused bursts. With the tokens that a broker gives for a whole window, a quota of the peak rate
--   throttles none of them. `quotaflow what-if` shows what a rate does to each program.
-- first: new_ids
-- columns:
--   from producer_id_rates: cluster_id, principal
--   from producer_id_bursts: cause
--   is_accused: the worst burst is accused
--   from producer_id_bursts: source, started_at, ended_at, ids, clients, hosts, source_ids, source_clients,
--     median_gap_ms, requests_per_id, new_transactional_ids, abandoned_ids
--   bursts: number of bursts of the principal
--   accused_bursts: number of its accused bursts
--   other_sources: programs and hosts that took ids in the worst burst beside source; null: it is not
--     accused
--   new_ids: producer ids that brokers gave to it, each once: producer_id_rates counts an id again
--     at another broker, and after a pause; 0: it only named ids in transactions
--   max_rate_per_s: greatest rate of new ids on a broker, per second
--   max_throttle_time_ms: longest throttle time that its quota would give, in ms; null: it has none
--   quota_per_s: its producer_ids_rate in conf now, in new ids per second; null: unlimited
--   p99_rate_per_s: 99th percentile of the rate in its ordinary seconds, per second, on the broker
--     where it is highest; null: there are none
--   peak_rate_per_s: greatest rate in its ordinary seconds, per second; null: there are none
--   recommended_rate_per_s: the greater of 1.2 x p99_rate_per_s and peak_rate_per_s, per second;
--     quota_per_s if there are no ordinary seconds; null: see recommended_by
--   recommended_by: where recommended_rate_per_s is from: p99 (1.2 x p99_rate_per_s), peak
--     (peak_rate_per_s), quota_of_conf (there are no ordinary seconds), no_ordinary_seconds (and conf
--     sets no quota: it is null), or protected (no quota may slow this principal down: it is null, see
--     protected_principals)
WITH worst AS (
    SELECT
        *,
        count(*) OVER (PARTITION BY cluster_id, principal) AS bursts,
        sum(CASE WHEN is_accused THEN 1 ELSE 0 END) OVER (PARTITION BY cluster_id, principal)
            AS accused_bursts,
        row_number() OVER (
            PARTITION BY cluster_id, principal
            ORDER BY CASE WHEN is_accused THEN 0 ELSE 1 END, ids DESC, started_at
        ) AS nth
    FROM producer_id_bursts
),
rates AS (
    SELECT * FROM producer_id_rates WHERE kind = 'allocation'
),
accused AS (
    SELECT DISTINCT rates.cluster_id, rates.principal, rates.broker_id, rates.event_time
    FROM rates
    INNER JOIN producer_id_bursts AS bursts
        ON rates.cluster_id = bursts.cluster_id
            AND rates.principal = bursts.principal
            AND bursts.is_accused
            AND unix_millis(rates.event_time) > unix_millis(bursts.started_at) - 1000
            AND unix_millis(rates.event_time) <= unix_millis(bursts.ended_at) + 60000
),
ordinary AS (
    SELECT
        rates.cluster_id,
        rates.principal,
        rates.rate_per_s,
        row_number() OVER (
            PARTITION BY rates.cluster_id, rates.principal, rates.broker_id ORDER BY rates.rate_per_s
        ) AS nth,
        count(*) OVER (PARTITION BY rates.cluster_id, rates.principal, rates.broker_id) AS seconds
    FROM rates
    LEFT JOIN accused USING (cluster_id, principal, broker_id, event_time)
    WHERE accused.cluster_id IS NULL
),
peaks AS (
    SELECT
        cluster_id,
        principal,
        max(CASE WHEN nth = floor((99 * seconds + 99) / 1e2) THEN rate_per_s END) AS p99_rate_per_s,
        max(rate_per_s) AS peak_rate_per_s
    FROM ordinary
    GROUP BY cluster_id, principal
),
totals AS (
    SELECT
        cluster_id,
        principal,
        max(rate_per_s) AS max_rate_per_s,
        max(throttle_time_ms) AS max_throttle_time_ms
    FROM rates
    GROUP BY cluster_id, principal
),
given AS (
    SELECT cluster_id, principal, count(*) AS new_ids
    FROM producer_id_allocations
    GROUP BY cluster_id, principal
),
newest AS (
    SELECT
        cluster_id,
        principal,
        quota_per_s,
        row_number() OVER (
            PARTITION BY cluster_id, principal ORDER BY event_time DESC, broker_id
        ) AS nth
    FROM rates
)

SELECT
    *,
    totals.cluster_id,
    totals.principal,
    coalesce(is_accused, false) AS is_accused,
    coalesce(given.new_ids, 0) AS new_ids,
    coalesce(bursts, 0) AS bursts,
    coalesce(accused_bursts, 0) AS accused_bursts,
    CASE WHEN is_accused THEN sources - 1 END AS other_sources,
    CASE
        WHEN protected.principal IS NULL
            THEN
                coalesce(
                    ceil(
                        100 * CASE
                            WHEN 12e-1 * p99_rate_per_s > peak_rate_per_s
                                THEN 12e-1 * p99_rate_per_s
                            ELSE peak_rate_per_s
                        END
                    ) / 1e2,
                    quota_per_s
                )
    END AS recommended_rate_per_s,
    CASE
        WHEN protected.principal IS NOT NULL THEN 'protected'
        WHEN peak_rate_per_s IS NULL AND quota_per_s IS NULL THEN 'no_ordinary_seconds'
        WHEN peak_rate_per_s IS NULL THEN 'quota_of_conf'
        WHEN 12e-1 * p99_rate_per_s > peak_rate_per_s THEN 'p99'
        ELSE 'peak'
    END AS recommended_by
FROM totals
LEFT JOIN peaks USING (cluster_id, principal)
LEFT JOIN given USING (cluster_id, principal)
LEFT JOIN protected_principals AS protected USING (cluster_id, principal)
INNER JOIN newest
    ON totals.cluster_id = newest.cluster_id
        AND totals.principal = newest.principal
        AND newest.nth = 1
LEFT JOIN worst
    ON totals.cluster_id = worst.cluster_id
        AND totals.principal = worst.principal
        AND worst.nth = 1
