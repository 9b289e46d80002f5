-- One row per dynamic config that the results ask for: the value, why, and the rows that show it.
-- A lower priority is more urgent. Newest rows may still change: plan waits until they settled.
WITH violating AS (
    SELECT
        cluster_id,
        principal,
        kind,
        broker_id,
        event_time,
        rate_per_s,
        quota_per_s,
        throttle_time_ms,
        row_number() OVER (
            PARTITION BY cluster_id, principal
            ORDER BY throttle_time_ms DESC, event_time, broker_id, kind
        ) AS worst
    FROM producer_id_rates
    WHERE is_violating AND principal LIKE 'User:%'
),
spans AS (
    SELECT
        cluster_id,
        principal,
        count(DISTINCT event_time) AS seconds,
        min(event_time) AS since
    FROM violating
    GROUP BY cluster_id, principal
)
SELECT
    violating.cluster_id,
    'user' AS entity_type,
    substr(violating.principal, 6) AS entity_name,
    'producer_ids_rate' AS config_key,
    CAST(quota_per_s AS STRING) AS config_value,
    concat(
        violating.principal, ' took new producer ids at ',
        CAST(CAST(rate_per_s AS DECIMAL(18, 1)) AS STRING), ' per second on broker ',
        CAST(broker_id AS STRING), ', its quota is ',
        CAST(CAST(quota_per_s AS DECIMAL(18, 1)) AS STRING), ': over it for ',
        CAST(seconds AS STRING), ' s, at worst by a throttle of ',
        CAST(throttle_time_ms AS STRING), ' ms'
    ) AS reason,
    'producer_id_rates' AS evidence_table,
    concat('principal=', violating.principal, ' broker_id=', CAST(broker_id AS STRING), ' kind=', kind)
        AS evidence_key,
    since,
    10 AS priority
FROM violating
INNER JOIN spans
    ON violating.cluster_id = spans.cluster_id AND violating.principal = spans.principal
WHERE violating.worst = 1
