-- kind: answer
-- grain: one row per second in which a principal was over its producer-id quota on a broker
-- area: producer_ids
-- level: sampled_log
-- description: The seconds over the quota (KIP-936) that a plan can answer: those of the last hour
--   of what is known of the cluster, so that a principal that stopped is not limited for ever. Only
--   seconds that a burst with an accused cause explains count: a deploy is normal, and nobody is
--   limited for an unknown cause.
-- key: cluster_id, principal, broker_id, event_time
-- time: event_time
-- clustering: event_time, principal
-- lookbacks:
--   producer_id_rates: 1 h
--   pipeline_progress: 7 d
--   fetch_sizes: 7 d
-- columns:
--   from producer_id_rates: cluster_id, event_time, broker_id, principal
--   kind STRING: allocation, always
--   from producer_id_rates: sightings, new_ids, new_ids_exact, rate_per_s, quota_per_s,
--     throttle_time_ms
--   cause STRING: cause of the burst that explains the second: of the accused ones the largest
--   source STRING: program and host that took most ids of that burst
--   source_address STRING: address of that host

WITH newest AS (
    SELECT cluster_id, max(event_time) AS event_time
    FROM pipeline_progress
    WHERE job <> 'snapshot'
    GROUP BY cluster_id
),
violating AS (
    SELECT rates.*
    FROM producer_id_rates AS rates
    LEFT JOIN newest USING (cluster_id)
    LEFT JOIN protected_principals AS protected USING (cluster_id, principal)
    WHERE
        rates.is_violating
        AND protected.principal IS NULL
        AND rates.kind = 'allocation'
        AND rates.principal LIKE 'User:%'
        AND coalesce(
            unix_millis(newest.event_time) - unix_millis(rates.event_time) < 3600000,
            true
        )
),
explained AS (
    SELECT
        violating.*,
        bursts.cause,
        bursts.is_accused,
        bursts.source,
        bursts.source_address,
        row_number() OVER (
            PARTITION BY
                violating.cluster_id, violating.principal, violating.broker_id, violating.event_time
            ORDER BY
                CASE WHEN bursts.is_accused THEN 0 ELSE 1 END,
                bursts.ids DESC,
                bursts.started_at
        ) AS nth
    FROM violating
    LEFT JOIN producer_id_bursts AS bursts
        ON violating.cluster_id = bursts.cluster_id
            AND violating.principal = bursts.principal
            AND unix_millis(violating.event_time) > unix_millis(bursts.started_at) - 1000
            AND unix_millis(violating.event_time) <= unix_millis(bursts.ended_at) + 60000
)

SELECT * FROM explained
WHERE nth = 1 AND is_accused
