-- One row per principal over its producer-id quota, on a cluster that refuses producer_ids_rate, where
-- conf's producer_ids.proxy names a client quota to hold it by instead: that much of what the
-- principal used around its worst second as its quota is of its rate. A stand-in: it slows everything
-- the principal does, not its producer ids alone.
WITH allowed AS (
    SELECT
        cluster_id,
        max(CASE WHEN setting = 'producer_ids.proxy' THEN setting_value END) AS proxy,
        max(CASE WHEN setting = 'probe.producer_ids_rate' THEN setting_value END) AS probe
    FROM current_settings
    GROUP BY cluster_id
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
used AS (
    SELECT
        violating.cluster_id,
        violating.principal,
        violating.rate_per_s,
        violating.quota_per_s,
        violating.broker_id,
        violating.since,
        quota_usage.quota_type,
        quota_usage.event_time,
        sum(quota_usage.usage) AS usage
    FROM violating
    INNER JOIN quota_usage
        ON violating.cluster_id = quota_usage.cluster_id
            AND violating.principal = quota_usage.principal
            AND violating.broker_id = quota_usage.broker_id
            AND unix_millis(quota_usage.event_time) <= unix_millis(violating.event_time)
            AND unix_millis(quota_usage.event_time) > unix_millis(violating.event_time) - 60000
    WHERE violating.worst = 1
    GROUP BY
        violating.cluster_id,
        violating.principal,
        violating.rate_per_s,
        violating.quota_per_s,
        violating.broker_id,
        violating.since,
        quota_usage.quota_type,
        quota_usage.event_time
),
most AS (
    SELECT
        cluster_id,
        principal,
        rate_per_s,
        quota_per_s,
        broker_id,
        since,
        quota_type,
        max(usage) AS usage
    FROM used
    GROUP BY cluster_id, principal, rate_per_s, quota_per_s, broker_id, since, quota_type
)

SELECT
    most.cluster_id,
    substr(most.principal, 6) AS entity_name,
    allowed.proxy AS config_key,
    CASE
        WHEN allowed.proxy LIKE '%byte_rate'
            THEN ceil(most.usage * most.quota_per_s / most.rate_per_s)
        ELSE ceil(most.usage * most.quota_per_s / most.rate_per_s * 1e2) / 1e2
    END AS recommended,
    most.usage,
    most.rate_per_s,
    most.quota_per_s,
    most.broker_id,
    most.since
FROM most
INNER JOIN allowed
    ON most.cluster_id = allowed.cluster_id
        AND allowed.probe LIKE 'refused%'
        AND most.quota_type = allowed.proxy
WHERE
    most.rate_per_s > most.quota_per_s
    AND most.usage > 0
