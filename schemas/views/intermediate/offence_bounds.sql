-- kind: intermediate
-- grain: one row per cluster
-- area: producer_ids
-- level: sampled_log
-- description: What conf asks of an offender before a plan limits it, as the last snapshot stored it or
--   by default, and how long requests show who uses which address.
-- history: address_clients
-- columns:
--   from address_clients: cluster_id
--   newest_ms: time of the last request, in ms since 1970
--   history_ms: how long requests have been recorded until then without a gap of over an hour, in ms;
--     minutes of rows without data_requests do not count
--   offence_period_s: conf's plan.offence_period_s, in s
--   address_history_s: conf's plan.address_history_s, in s
--   takes_producer_ids_rate: the last snapshot found that the cluster accepts producer_ids_rate
--   hides_clients: addresses or client ids are pseudonyms
WITH policy AS (
    SELECT
        cluster_id,
        max(CASE WHEN setting = 'plan.offence_period_s' THEN CAST(setting_value AS DOUBLE) END)
            AS offence_period_s,
        max(CASE WHEN setting = 'plan.address_history_s' THEN CAST(setting_value AS DOUBLE) END)
            AS address_history_s,
        bool_or(setting = 'probe.producer_ids_rate' AND setting_value = 'accepted')
            AS takes_producer_ids_rate,
        bool_or(setting LIKE 'privacy.hides.%' AND lower(setting_value) = 'true') AS hides_clients
    FROM current_settings
    GROUP BY cluster_id
),
seen_minutes AS (
    SELECT
        cluster_id,
        event_time,
        unix_millis(event_time) AS minute_ms,
        lag(unix_millis(event_time)) OVER (PARTITION BY cluster_id ORDER BY event_time) AS before_ms
    FROM (
        SELECT DISTINCT cluster_id, event_time
        FROM address_clients
        -- Rows without it do not show what programs moved.
        WHERE data_requests IS NOT NULL
    ) AS minutes
),
known AS (
    SELECT
        cluster_id,
        max(CASE WHEN before_ms IS NULL OR minute_ms - before_ms > 3600000 THEN minute_ms END)
            AS known_since_ms
    FROM seen_minutes
    GROUP BY cluster_id
),
newest AS (
    SELECT cluster_id, max(unix_millis(last_seen)) AS newest_ms
    FROM address_clients
    GROUP BY cluster_id
)

SELECT
    *,
    coalesce(newest.newest_ms - known.known_since_ms, 0) AS history_ms,
    coalesce(policy.offence_period_s, 1800e0) AS offence_period_s,
    coalesce(policy.address_history_s, 604800e0) AS address_history_s,
    coalesce(policy.takes_producer_ids_rate, false) AS takes_producer_ids_rate,
    coalesce(policy.hides_clients, false) AS hides_clients
FROM newest
LEFT JOIN known USING (cluster_id)
LEFT JOIN policy USING (cluster_id)
