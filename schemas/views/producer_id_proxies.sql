-- kind: mart
-- grain: one row per principal over its producer-id quota
-- description: On a cluster that refuses producer_ids_rate, the client quota to use instead where
--   conf's producer_ids.proxy names one: that part of what the principal used around its worst second
--   as its quota is of its rate. It slows everything that the principal does, not only its producer
--   ids.
-- columns:
--   from recent_violations: cluster_id
--   entity_name: name of the user, a principal without User:
--   config_key: client quota to use instead: conf's producer_ids.proxy
--   recommended: value of that quota, in its unit, per broker
--   usage: greatest usage in a window of a broker near the worst second, or before a quota of this
--     pipeline held it back, in the unit of the quota
--   rate_per_s: rate of new producer ids in the worst second, per second
--   quota_per_s: producer_ids_rate that conf holds the principal to, new ids per second
--   broker_id: broker of that usage
--   since: first second over the quota
WITH allowed AS (
    SELECT
        cluster_id,
        max(CASE WHEN setting = 'producer_ids.proxy' THEN setting_value END) AS proxy,
        max(CASE WHEN setting = 'probe.producer_ids_rate' THEN setting_value END) AS probe,
        coalesce(
            max(CASE WHEN setting = 'plan.asked_for_s' THEN CAST(setting_value AS DOUBLE) END), 3600
        ) AS asked_for_s
    FROM current_settings
    GROUP BY cluster_id
),
written AS (
    SELECT
        cluster_id,
        entity_name,
        config_key,
        event_time,
        run_id,
        number,
        step,
        -- When it was begun: a run that was killed leaves it to a later one to record that it was done.
        min(event_time) OVER (PARTITION BY run_id, change_id) AS began,
        CASE
            WHEN
                step = 'done' AND purpose = 'apply' AND evidence_table = 'producer_id_proxies'
                THEN 1
            ELSE 0
        END AS is_ours
    FROM config_changes
    WHERE entity_type = 'user' AND entity_client_id IS NULL
),
numbered AS (
    SELECT
        *,
        sum(1 - is_ours) OVER (
            PARTITION BY cluster_id, entity_name, config_key ORDER BY event_time, run_id, number
        ) AS nth
    FROM written
    WHERE step IN ('done', 'yielded')
),
spans AS (
    SELECT
        cluster_id,
        entity_name,
        config_key,
        nth,
        min(CASE WHEN is_ours = 1 THEN began END) AS began,
        min(event_time) AS opened
    FROM numbered
    GROUP BY cluster_id, entity_name, config_key, nth
),
holds AS (
    SELECT
        cluster_id,
        concat('User:', entity_name) AS principal,
        config_key,
        began,
        lead(opened) OVER (PARTITION BY cluster_id, entity_name, config_key ORDER BY nth) AS ended
    FROM spans
),
violating AS (
    SELECT
        *,
        row_number() OVER (
            PARTITION BY cluster_id, principal
            ORDER BY throttle_time_ms DESC, event_time, broker_id, kind
        ) AS worst,
        min(event_time) OVER (PARTITION BY cluster_id, principal) AS since
    FROM recent_violations
),
asked AS (
    SELECT
        violating.cluster_id,
        violating.principal,
        violating.rate_per_s,
        violating.quota_per_s,
        violating.broker_id,
        violating.event_time,
        violating.since,
        allowed.proxy,
        allowed.asked_for_s,
        min(holds.began) AS held_since
    FROM violating
    INNER JOIN allowed
        ON violating.cluster_id = allowed.cluster_id AND allowed.probe LIKE 'refused%'
    LEFT JOIN holds
        ON violating.cluster_id = holds.cluster_id
            AND violating.principal = holds.principal
            AND allowed.proxy = holds.config_key
            AND unix_millis(violating.event_time) >= unix_millis(holds.began)
            AND coalesce(
                unix_millis(violating.event_time) < unix_millis(holds.ended) + 60000, true
            )
    WHERE violating.worst = 1
    GROUP BY
        violating.cluster_id,
        violating.principal,
        violating.rate_per_s,
        violating.quota_per_s,
        violating.broker_id,
        violating.event_time,
        violating.since,
        allowed.proxy,
        allowed.asked_for_s
),
free AS (
    SELECT
        asked.cluster_id,
        asked.principal,
        rates.rate_per_s,
        rates.broker_id,
        rates.event_time,
        row_number() OVER (
            PARTITION BY asked.cluster_id, asked.principal
            ORDER BY rates.throttle_time_ms DESC, rates.event_time, rates.broker_id
        ) AS worst
    FROM asked
    INNER JOIN producer_id_rates AS rates
        ON asked.cluster_id = rates.cluster_id
            AND asked.principal = rates.principal
            AND unix_millis(rates.event_time) < unix_millis(asked.held_since)
            AND unix_millis(rates.event_time)
            > unix_millis(asked.held_since) - asked.asked_for_s * 1e3
    LEFT JOIN holds
        ON asked.cluster_id = holds.cluster_id
            AND asked.principal = holds.principal
            AND asked.proxy = holds.config_key
            AND unix_millis(rates.event_time) >= unix_millis(holds.began)
            AND coalesce(unix_millis(rates.event_time) < unix_millis(holds.ended) + 60000, true)
    WHERE rates.is_violating AND rates.kind = 'allocation' AND holds.began IS NULL
),
around AS (
    SELECT
        asked.cluster_id,
        asked.principal,
        asked.proxy,
        asked.quota_per_s,
        asked.since,
        CASE
            WHEN free.rate_per_s > asked.rate_per_s THEN free.rate_per_s
            ELSE asked.rate_per_s
        END AS rate_per_s,
        CASE WHEN asked.held_since IS NULL THEN asked.broker_id ELSE free.broker_id END AS broker_id,
        CASE WHEN asked.held_since IS NULL THEN asked.event_time ELSE free.event_time END
            AS event_time
    FROM asked
    LEFT JOIN free
        ON asked.cluster_id = free.cluster_id AND asked.principal = free.principal AND free.worst = 1
),
used AS (
    SELECT
        around.cluster_id,
        around.principal,
        sum(quota_usage.usage) AS usage
    FROM around
    INNER JOIN quota_usage
        ON around.cluster_id = quota_usage.cluster_id
            AND around.principal = quota_usage.principal
            AND around.broker_id = quota_usage.broker_id
            AND around.proxy = quota_usage.quota_type
            AND unix_millis(quota_usage.event_time) <= unix_millis(around.event_time)
            AND unix_millis(quota_usage.event_time) > unix_millis(around.event_time) - 60000
    GROUP BY around.cluster_id, around.principal, quota_usage.event_time
),
most AS (
    SELECT cluster_id, principal, max(usage) AS usage
    FROM used
    GROUP BY cluster_id, principal
)

SELECT
    around.cluster_id,
    substr(around.principal, 6) AS entity_name,
    around.proxy AS config_key,
    CASE
        WHEN around.proxy LIKE '%byte_rate'
            THEN ceil(most.usage * around.quota_per_s / around.rate_per_s)
        ELSE ceil(most.usage * around.quota_per_s / around.rate_per_s * 1e2) / 1e2
    END AS recommended,
    most.usage,
    around.rate_per_s,
    around.quota_per_s,
    around.broker_id,
    around.since
FROM around
INNER JOIN most ON around.cluster_id = most.cluster_id AND around.principal = most.principal
WHERE around.rate_per_s > around.quota_per_s AND most.usage > 0
