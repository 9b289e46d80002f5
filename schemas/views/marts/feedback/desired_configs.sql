-- kind: mart
-- grain: one row per dynamic config that the results ask to change or to keep
-- description: What a plan can ask for: the value, the reason, and the rows that show it. The newest
--   rows can still change, so plan waits until they settle. A principal that only deployed many clients
--   at once is left alone.
-- columns:
--   from replication_proposals: cluster_id
--   entity_type: user, broker, topic or client-metrics
--   entity_name: name of the user, topic or client-metrics resource, or node id of the broker
--   config_key: name of the dynamic config or client quota
--   config_value: value that is wanted; null: the config is to be removed, or, if blocked_reason is
--     set, no value is right
--   prior_value: value in the last snapshot, null: not set; if it equals config_value, nothing is left
--     to do
--   from replication_proposals: reason, evidence_table, evidence_key, since, priority, blocked_reason,
--     lease_s
--   renew_only: true: a plan only renews the lease of what this pipeline set for the same evidence,
--     and changes nothing: the value fits, or nothing better is known (blocked_reason has the reason)
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
        cause,
        source,
        min(event_time) OVER (PARTITION BY cluster_id, principal) AS since,
        row_number() OVER (
            PARTITION BY cluster_id, principal
            ORDER BY throttle_time_ms DESC, event_time, broker_id, kind
        ) AS worst,
        row_number() OVER (
            PARTITION BY cluster_id, principal, event_time ORDER BY broker_id, kind
        ) AS nth_of_second
    FROM recent_violations
),
spans AS (
    SELECT
        *,
        sum(CASE nth_of_second WHEN 1 THEN 1 ELSE 0 END) OVER (PARTITION BY cluster_id, principal)
            AS seconds
    FROM violating
),
asked AS (
    SELECT
        asks.*,
        keys.config_key,
        CASE keys.config_key
            WHEN 'metrics' THEN asks.metrics
            WHEN 'interval.ms' THEN CAST(asks.interval_ms AS STRING)
            ELSE concat('client_instance_id=', array_join(asks.client_instance_ids, '|'))
        END AS config_value
    FROM subscription_proposals AS asks
    CROSS JOIN (VALUES ('metrics'), ('interval.ms'), ('match')) AS keys (config_key)
),
standing AS (
    SELECT * FROM current_configs WHERE entity_type = 'client-metrics'
),
own_quotas AS (
    SELECT
        cluster_id,
        user AS entity_name,
        config_key,
        CASE
            -- Not BIGINT: Long.MAX, the usual way to say unlimited, is past it as a double.
            WHEN config_key LIKE '%byte_rate' THEN CAST(CAST(quota AS DECIMAL(38, 0)) AS STRING)
            ELSE CAST(quota AS STRING)
        END AS config_value
    FROM current_client_quotas
    WHERE user IS NOT NULL AND client_id IS NULL AND NOT is_default_client_id
),
lasting AS (
    SELECT
        cluster_id,
        'user' AS entity_type,
        substr(principal, 6) AS entity_name,
        'producer_ids_rate' AS config_key,
        CAST(quota_per_s AS STRING) AS config_value,
        CAST(NULL AS STRING) AS prior_value,
        concat(
            principal, ' took new producer ids at ',
            CAST(CAST(rate_per_s AS DECIMAL(18, 3)) AS STRING), ' per second on broker ',
            CAST(broker_id AS STRING), ', its quota is ',
            CAST(CAST(quota_per_s AS DECIMAL(18, 3)) AS STRING), ': over it for ',
            CAST(seconds AS STRING), ' s, at worst by a throttle of ',
            CAST(throttle_time_ms AS STRING), ' ms',
            CASE
                WHEN cause IS NULL THEN ''
                ELSE concat('; cause: ', cause, ', by ', substr(source, 1, 100))
            END
        ) AS reason,
        'producer_id_rates' AS evidence_table,
        concat('principal=', principal, ' broker_id=', CAST(broker_id AS STRING), ' kind=', kind)
            AS evidence_key,
        since,
        10 AS priority
    FROM spans
    WHERE worst = 1
    UNION ALL
    SELECT
        asked.cluster_id,
        'client-metrics' AS entity_type,
        asked.entity_name,
        asked.config_key,
        asked.config_value,
        standing.config_value AS prior_value,
        concat(
            'alert ', rule, ' is open for ', CAST(clients AS STRING), ' clients: ', metric,
            ' is past ', CAST(CAST(bound AS DECIMAL(18, 1)) AS STRING),
            '; asks them, and only them, for more: about ',
            CAST(CAST(pushes_per_s AS DECIMAL(18, 1)) AS STRING), ' pushes and ',
            coalesce(CAST(CAST(wire_bytes_per_s AS BIGINT) AS STRING), 'an unknown number of'),
            ' bytes per second'
        ) AS reason,
        'metric_alerts' AS evidence_table,
        concat('rule=', rule, ' is_open') AS evidence_key,
        since,
        20 AS priority
    FROM asked
    LEFT JOIN standing
        ON asked.cluster_id = standing.cluster_id
            AND asked.entity_name = standing.entity_name
            AND asked.config_key = standing.config_key
    UNION ALL
    SELECT
        standing.cluster_id,
        'client-metrics' AS entity_type,
        standing.entity_name,
        standing.config_key,
        CAST(NULL AS STRING) AS config_value,
        standing.config_value AS prior_value,
        CASE
            WHEN standing.entity_name LIKE 'quotaflow-alert-%'
                THEN 'no alert that asked for it is open any more: takes it back'
            ELSE 'quotaflow troubleshoot left it behind: takes it back after its lease'
        END AS reason,
        'current_configs' AS evidence_table,
        concat('entity_name=', standing.entity_name) AS evidence_key,
        standing.valid_from AS since,
        20 AS priority
    FROM standing
    LEFT JOIN subscription_proposals AS asks
        ON standing.cluster_id = asks.cluster_id AND standing.entity_name = asks.entity_name
    WHERE asks.entity_name IS NULL AND (
        standing.entity_name LIKE 'quotaflow-alert-%'
        OR standing.entity_name LIKE 'quotaflow-troubleshoot-%-until-%'
    )
    UNION ALL
    SELECT
        asks.cluster_id,
        'user' AS entity_type,
        asks.entity_name,
        asks.config_key,
        CASE
            WHEN asks.config_key LIKE '%byte_rate'
                THEN CAST(CAST(asks.recommended AS DECIMAL(38, 0)) AS STRING)
            ELSE CAST(asks.recommended AS STRING)
        END AS config_value,
        own_quotas.config_value AS prior_value,
        concat(
            CASE
                WHEN asks.advice = 'raise' THEN 'its quota held it back: throttled in '
                ELSE 'no quota binds it: throttled in '
            END,
            CAST(asks.throttled_windows AS STRING), ' of ', CAST(asks.windows_in_force AS STRING),
            ' windows; what it used most of the time is ',
            CAST(CAST(asks.percentile_usage AS DECIMAL(18, 1)) AS STRING)
        ) AS reason,
        'quota_advice' AS evidence_table,
        concat('user=', asks.entity_name, ' quota_type=', asks.config_key) AS evidence_key,
        asks.since,
        30 AS priority
    FROM quota_proposals AS asks
    LEFT JOIN own_quotas
        ON asks.cluster_id = own_quotas.cluster_id
            AND asks.entity_name = own_quotas.entity_name
            AND asks.config_key = own_quotas.config_key
    WHERE asks.advice IN ('set', 'raise')
),
kept AS (
    SELECT
        asks.cluster_id,
        'user' AS entity_type,
        asks.entity_name,
        asks.config_key,
        own_quotas.config_value,
        own_quotas.config_value AS prior_value,
        concat(
            CASE
                WHEN asks.advice = 'keep' THEN 'its use fits this quota'
                ELSE 'it is raised once a day at most, and was altered less than a day ago'
            END,
            ': throttled in ', CAST(asks.throttled_windows AS STRING), ' of ',
            CAST(asks.windows_in_force AS STRING), ' windows'
        ) AS reason,
        'quota_advice' AS evidence_table,
        concat('user=', asks.entity_name, ' quota_type=', asks.config_key) AS evidence_key,
        asks.since,
        30 AS priority
    FROM quota_proposals AS asks
    INNER JOIN own_quotas
        ON asks.cluster_id = own_quotas.cluster_id
            AND asks.entity_name = own_quotas.entity_name
            AND asks.config_key = own_quotas.config_key
    WHERE asks.advice IN ('keep', 'wait')
)

SELECT
    *,
    CAST(NULL AS STRING) AS blocked_reason,
    CAST(NULL AS BIGINT) AS lease_s,
    false AS renew_only
FROM lasting
UNION ALL
SELECT
    *,
    CAST(NULL AS STRING) AS blocked_reason,
    CAST(NULL AS BIGINT) AS lease_s,
    true AS renew_only
FROM kept
UNION ALL
SELECT * FROM replication_proposals
