-- One row per second in which a principal was over its producer-id quota (KIP-936) on a broker, of the
-- last hour (conf's plan.asked_for_s) of what is known of its cluster: what a plan may answer. Who
-- stopped is not asked to be held for ever.
WITH newest AS (
    SELECT cluster_id, max(event_time) AS event_time
    FROM pipeline_progress
    WHERE job <> 'snapshot'
    GROUP BY cluster_id
),
asked AS (
    SELECT cluster_id, CAST(setting_value AS DOUBLE) AS asked_for_s
    FROM current_settings
    WHERE setting = 'plan.asked_for_s'
)

SELECT rates.*
FROM producer_id_rates AS rates
LEFT JOIN newest ON rates.cluster_id = newest.cluster_id
LEFT JOIN asked ON rates.cluster_id = asked.cluster_id
WHERE
    rates.is_violating
    AND rates.kind = 'allocation'
    AND rates.principal LIKE 'User:%'
    AND coalesce(
        unix_millis(newest.event_time) - unix_millis(rates.event_time)
        < coalesce(asked.asked_for_s, 3600e0) * 1e3,
        true
    )
