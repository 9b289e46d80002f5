-- kind: mart
-- grain: one row per dynamic config that the results propose to change or to keep
-- area: configs
-- level: admin_api
-- description: What a plan can set: the value, the reason, and the rows that show it. The newest
--   rows can still change, so plan waits until they settle. Who takes producer ids too fast is limited
--   only for an accused cause, over a span of time, and where the ids do harm.
-- columns:
--   from replication_proposals: cluster_id
--   entity_type: user, ip, broker, topic or client-metrics
--   entity_name: name of the user, topic or client-metrics resource, the address, or node id of the
--     broker; null: the default of all users
--   entity_client_id: client id that narrows a client quota of the user; null: none. Untrusted text
--   config_key: name of the dynamic config or client quota
--   config_value: desired value; null: the config is to be removed, or, if blocked_reason is
--     set, no value is right
--   prior_value: value in the last snapshot, null: not set; if it equals config_value, nothing is left
--     to do
--   reason_code: why, as a reason code, which says which of the next columns are its evidence
--   observed: what was measured, in unit: rate of new ids, heap that ids will take, p99 of requests,
--     usage, other traffic of the broker, or age of a left-over throttle
--   bound: what it is compared with, in unit: quota, bound of the heap or alert, usual p99, or capacity
--     of the broker
--   unit: unit of observed and bound
--   matching: how many ids, clients, windows, replicas or entries the reason is about; for the
--     default of all users how many users offend, and for producer.id.expiration.ms its value now, in ms
--   total: of how many; for limits of producer ids the number of brokers, for the default of all users
--     how many a plan limits one by one, and for producer.id.expiration.ms its least safe value, in ms;
--     null: not counted
--   reason_detail: cause of the burst, rule of the alert, or source of the capacity
--   subject: principal, program and address that took most ids, metric of the alert, or principal that
--     set the rate or the entries: untrusted text
--   broker_id: broker where that was measured, for producer ids
--   throttle_time_ms: longest throttle time that the quota would give, in ms
--   pushes_per_s: pushes per second that the change would cause
--   wire_bytes_per_s: bytes per second on the wire that it would cause; null: not known
--   from replication_proposals: written_bytes_per_s, rate_bytes_per_s, produce_p99_ms,
--     usual_produce_p99_ms, fetch_p99_ms, usual_fetch_p99_ms, shrunk_partitions, evidence_table,
--     evidence_key, since, priority
--   blocked_reason: why a plan must not ask for it, as a reason code; null: a plan can
--   from replication_proposals: lease_s
--   renew_only: true: a plan only renews the lease of what this pipeline set for the same evidence,
--     and changes nothing: the value fits, or nothing better is known (blocked_reason has the reason)
--   from quota_proposals: usage_p99, history_s
--   quota_in_force: value that applied in the last window of its usage, or in the last snapshot, own or
--     inherited, in the unit of the config; null: none, or not asked
--   offence: what the value must lower. For a limit of a source: its new producer ids per second over
--     plan.offence_period_s. For producer.id.expiration.ms: heap in bytes that ids will take. For a raise:
--     part of the windows in which the user is throttled, per unit of its usage. For a lower
--     rate of replication: how many times the usual p99 clients wait. Null: no effect is judged
--   least_value: least value of a limit; null: config_value
--   direction: raise; null: the row is no raise
WITH address_quotas AS (
    SELECT cluster_id, ip, CAST(CAST(quota AS BIGINT) AS STRING) AS config_value
    FROM current_client_quotas
    WHERE
        ip IS NOT NULL AND config_key = 'connection_creation_rate'
        -- A rate that others set is never raised.
        AND quota < 2147483648
),
subscriptions AS (
    SELECT
        proposed.*,
        keys.config_key,
        CASE keys.config_key
            WHEN 'metrics' THEN proposed.metrics
            WHEN 'interval.ms' THEN CAST(proposed.interval_ms AS STRING)
            ELSE concat('client_instance_id=', array_join(proposed.client_instance_ids, '|'))
        END AS config_value
    FROM subscription_proposals AS proposed
    CROSS JOIN (VALUES ('metrics'), ('interval.ms'), ('match')) AS keys (config_key)
),
existing AS (
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
default_id_rates AS (
    SELECT cluster_id, quota
    FROM current_client_quotas
    WHERE
        config_key = 'producer_ids_rate'
        AND is_default_user
        AND client_id IS NULL
        AND NOT is_default_client_id
),
proposals AS (
    SELECT
        limits.cluster_id,
        'user' AS entity_type,
        CAST(NULL AS STRING) AS entity_name,
        CAST(NULL AS STRING) AS entity_client_id,
        'producer_ids_rate' AS config_key,
        CASE
            WHEN CAST(limits.prior_value AS DOUBLE) <= limits.quota_per_s THEN limits.prior_value
            ELSE CAST(limits.quota_per_s AS STRING)
        END AS config_value,
        limits.prior_value,
        'producer_ids_of_many' AS reason_code,
        CASE
            WHEN limits.harm = 'heap' THEN CAST(limits.forecast_bytes AS DOUBLE)
            ELSE limits.produce_p99_ms
        END AS observed,
        CASE
            WHEN limits.harm = 'heap' THEN limits.bound_bytes
            ELSE limits.usual_produce_p99_ms
        END AS bound,
        CASE WHEN limits.harm = 'heap' THEN 'bytes' ELSE 'ms' END AS unit,
        limits.offenders AS matching,
        limits.max_entities AS total,
        limits.cause AS reason_detail,
        concat(limits.principal, ' as ', limits.source) AS subject,
        limits.broker_id,
        limits.throttle_time_ms,
        CAST(NULL AS DOUBLE) AS pushes_per_s,
        CAST(NULL AS DOUBLE) AS wire_bytes_per_s,
        limits.produce_p99_ms,
        limits.usual_produce_p99_ms,
        limits.fetch_p99_ms,
        limits.usual_fetch_p99_ms,
        limits.shrunk_partitions,
        'default_quota_proposals' AS evidence_table,
        concat('quota_per_s=', CAST(limits.quota_per_s AS STRING)) AS evidence_key,
        limits.since,
        10 AS priority,
        false AS renew_only,
        CAST(NULL AS DOUBLE) AS usage_p99,
        CAST(NULL AS DOUBLE) AS history_s,
        CAST(NULL AS DOUBLE) AS quota_in_force,
        limits.ids_per_s AS offence,
        CAST(NULL AS DOUBLE) AS least_value,
        CAST(NULL AS STRING) AS direction,
        limits.blocked_reason
    FROM default_quota_proposals AS limits
    UNION ALL
    SELECT
        limits.cluster_id,
        'user' AS entity_type,
        substr(limits.principal, 6) AS entity_name,
        CAST(NULL AS STRING) AS entity_client_id,
        'producer_ids_rate' AS config_key,
        CASE
            WHEN CAST(own_quotas.config_value AS DOUBLE) <= limits.quota_per_s
                THEN own_quotas.config_value
            ELSE CAST(limits.quota_per_s AS STRING)
        END AS config_value,
        own_quotas.config_value AS prior_value,
        CASE
            WHEN limits.harm = 'heap' THEN 'producer_ids_fill_heap'
            WHEN limits.harm = 'latency' THEN 'producer_ids_slow_clients'
            ELSE 'producer_ids_over_quota'
        END AS reason_code,
        CASE
            WHEN limits.harm = 'heap' THEN CAST(limits.forecast_bytes AS DOUBLE)
            WHEN limits.harm = 'latency' THEN limits.produce_p99_ms
            ELSE limits.rate_per_s
        END AS observed,
        CASE
            WHEN limits.harm = 'heap' THEN limits.bound_bytes
            WHEN limits.harm = 'latency' THEN limits.usual_produce_p99_ms
            ELSE limits.quota_per_s
        END AS bound,
        CASE limits.harm WHEN 'heap' THEN 'bytes' WHEN 'latency' THEN 'ms' ELSE 'ids/s' END AS unit,
        limits.producer_ids AS matching,
        limits.brokers AS total,
        limits.cause AS reason_detail,
        concat(limits.principal, ' as ', limits.source) AS subject,
        limits.broker_id,
        limits.throttle_time_ms,
        CAST(NULL AS DOUBLE) AS pushes_per_s,
        CAST(NULL AS DOUBLE) AS wire_bytes_per_s,
        limits.produce_p99_ms,
        limits.usual_produce_p99_ms,
        limits.fetch_p99_ms,
        limits.usual_fetch_p99_ms,
        limits.shrunk_partitions,
        'producer_id_offenders' AS evidence_table,
        concat('principal=', limits.principal, ' client_address=', limits.client_address)
            AS evidence_key,
        limits.since,
        10 AS priority,
        false AS renew_only,
        CAST(NULL AS DOUBLE) AS usage_p99,
        CAST(NULL AS DOUBLE) AS history_s,
        CAST(NULL AS DOUBLE) AS quota_in_force,
        limits.ids_per_s AS offence,
        CAST(NULL AS DOUBLE) AS least_value,
        CAST(NULL AS STRING) AS direction,
        limits.blocked_reason
    FROM producer_id_offenders AS limits
    LEFT JOIN own_quotas
        ON limits.cluster_id = own_quotas.cluster_id
            AND substr(limits.principal, 6) = own_quotas.entity_name
            AND own_quotas.config_key = 'producer_ids_rate'
    LEFT JOIN default_id_rates ON limits.cluster_id = default_id_rates.cluster_id
    WHERE
        limits.step = 'producer_ids_rate'
        AND limits.nth_of_principal = 1
        -- The default of all users limits it so much already.
        AND (
            own_quotas.config_value IS NOT NULL
            OR default_id_rates.quota IS NULL
            OR default_id_rates.quota > limits.quota_per_s
        )
    UNION ALL
    SELECT
        limits.cluster_id,
        'ip' AS entity_type,
        limits.client_address AS entity_name,
        CAST(NULL AS STRING) AS entity_client_id,
        'connection_creation_rate' AS config_key,
        -- So many connections as the quota of ids needs: its source opens one for an id or two.
        CAST(
            CAST(
                greatest(
                    ceil(limits.quota_per_s * limits.allocating_connections / limits.producer_ids), 1
                ) AS BIGINT
            ) AS STRING
        ) AS config_value,
        address_quotas.config_value AS prior_value,
        CASE
            WHEN limits.harm = 'heap' THEN 'producer_ids_fill_heap'
            WHEN limits.harm = 'latency' THEN 'producer_ids_slow_clients'
            ELSE 'producer_ids_over_quota'
        END AS reason_code,
        CASE
            WHEN limits.harm = 'heap' THEN CAST(limits.forecast_bytes AS DOUBLE)
            WHEN limits.harm = 'latency' THEN limits.produce_p99_ms
            ELSE limits.rate_per_s
        END AS observed,
        CASE
            WHEN limits.harm = 'heap' THEN limits.bound_bytes
            WHEN limits.harm = 'latency' THEN limits.usual_produce_p99_ms
            ELSE limits.quota_per_s
        END AS bound,
        CASE limits.harm WHEN 'heap' THEN 'bytes' WHEN 'latency' THEN 'ms' ELSE 'ids/s' END AS unit,
        limits.producer_ids AS matching,
        limits.brokers AS total,
        limits.cause AS reason_detail,
        concat(limits.principal, ' as ', limits.source) AS subject,
        limits.broker_id,
        limits.throttle_time_ms,
        CAST(NULL AS DOUBLE) AS pushes_per_s,
        CAST(NULL AS DOUBLE) AS wire_bytes_per_s,
        limits.produce_p99_ms,
        limits.usual_produce_p99_ms,
        limits.fetch_p99_ms,
        limits.usual_fetch_p99_ms,
        limits.shrunk_partitions,
        'producer_id_offenders' AS evidence_table,
        concat('principal=', limits.principal, ' client_address=', limits.client_address)
            AS evidence_key,
        limits.since,
        10 AS priority,
        false AS renew_only,
        CAST(NULL AS DOUBLE) AS usage_p99,
        CAST(NULL AS DOUBLE) AS history_s,
        CAST(NULL AS DOUBLE) AS quota_in_force,
        limits.ids_per_s AS offence,
        -- So that all others can connect at once: a broker measures over ten seconds or more.
        greatest(ceil(limits.other_connections / 1e1), 1e0) AS least_value,
        CAST(NULL AS STRING) AS direction,
        limits.blocked_reason
    FROM producer_id_offenders AS limits
    LEFT JOIN address_quotas
        ON limits.cluster_id = address_quotas.cluster_id
            AND limits.client_address = address_quotas.ip
    WHERE limits.step = 'address'
    UNION ALL
    SELECT
        limits.cluster_id,
        'user' AS entity_type,
        substr(limits.principal, 6) AS entity_name,
        limits.client_pattern AS entity_client_id,
        'request_percentage' AS config_key,
        CAST(NULL AS STRING) AS config_value,
        CAST(NULL AS STRING) AS prior_value,
        CASE
            WHEN limits.harm = 'heap' THEN 'producer_ids_fill_heap'
            WHEN limits.harm = 'latency' THEN 'producer_ids_slow_clients'
            ELSE 'producer_ids_over_quota'
        END AS reason_code,
        CASE
            WHEN limits.harm = 'heap' THEN CAST(limits.forecast_bytes AS DOUBLE)
            WHEN limits.harm = 'latency' THEN limits.produce_p99_ms
            ELSE limits.rate_per_s
        END AS observed,
        CASE
            WHEN limits.harm = 'heap' THEN limits.bound_bytes
            WHEN limits.harm = 'latency' THEN limits.usual_produce_p99_ms
            ELSE limits.quota_per_s
        END AS bound,
        CASE limits.harm WHEN 'heap' THEN 'bytes' WHEN 'latency' THEN 'ms' ELSE 'ids/s' END AS unit,
        limits.producer_ids AS matching,
        limits.brokers AS total,
        limits.cause AS reason_detail,
        concat(limits.principal, ' as ', limits.source) AS subject,
        limits.broker_id,
        limits.throttle_time_ms,
        CAST(NULL AS DOUBLE) AS pushes_per_s,
        CAST(NULL AS DOUBLE) AS wire_bytes_per_s,
        limits.produce_p99_ms,
        limits.usual_produce_p99_ms,
        limits.fetch_p99_ms,
        limits.usual_fetch_p99_ms,
        limits.shrunk_partitions,
        'producer_id_offenders' AS evidence_table,
        concat('principal=', limits.principal, ' client_address=', limits.client_address)
            AS evidence_key,
        limits.since,
        10 AS priority,
        false AS renew_only,
        CAST(NULL AS DOUBLE) AS usage_p99,
        CAST(NULL AS DOUBLE) AS history_s,
        CAST(NULL AS DOUBLE) AS quota_in_force,
        CAST(NULL AS DOUBLE) AS offence,
        CAST(NULL AS DOUBLE) AS least_value,
        CAST(NULL AS STRING) AS direction,
        limits.blocked_reason
    FROM producer_id_offenders AS limits
    WHERE limits.step = 'client_quota'
    UNION ALL
    SELECT
        cluster_id,
        'broker' AS entity_type,
        CAST(broker_id AS STRING) AS entity_name,
        CAST(NULL AS STRING) AS entity_client_id,
        'producer.id.expiration.ms' AS config_key,
        CAST(recommended_expiration_ms AS STRING) AS config_value,
        prior_value,
        'producer_ids_outlast_heap' AS reason_code,
        CAST(forecast_bytes AS DOUBLE) AS observed,
        bound_bytes AS bound,
        'bytes' AS unit,
        expiration_ms AS matching,
        least_expiration_ms AS total,
        CAST(NULL AS STRING) AS reason_detail,
        CAST(NULL AS STRING) AS subject,
        broker_id,
        CAST(NULL AS BIGINT) AS throttle_time_ms,
        CAST(NULL AS DOUBLE) AS pushes_per_s,
        CAST(NULL AS DOUBLE) AS wire_bytes_per_s,
        CAST(NULL AS DOUBLE) AS produce_p99_ms,
        CAST(NULL AS DOUBLE) AS usual_produce_p99_ms,
        CAST(NULL AS DOUBLE) AS fetch_p99_ms,
        CAST(NULL AS DOUBLE) AS usual_fetch_p99_ms,
        CAST(NULL AS BIGINT) AS shrunk_partitions,
        'producer_id_heap' AS evidence_table,
        concat('broker_id=', CAST(broker_id AS STRING)) AS evidence_key,
        since,
        15 AS priority,
        false AS renew_only,
        CAST(NULL AS DOUBLE) AS usage_p99,
        CAST(NULL AS DOUBLE) AS history_s,
        CAST(expiration_ms AS DOUBLE) AS quota_in_force,
        CAST(forecast_bytes AS DOUBLE) AS offence,
        CAST(least_expiration_ms AS DOUBLE) AS least_value,
        CAST(NULL AS STRING) AS direction,
        blocked_reason
    FROM expiration_proposals
    UNION ALL
    SELECT
        cluster_id,
        entity_type,
        entity_name,
        CAST(NULL AS STRING) AS entity_client_id,
        config_key,
        CAST(NULL AS STRING) AS config_value,
        prior_value,
        reason_code,
        age_s AS observed,
        CAST(NULL AS DOUBLE) AS bound,
        's' AS unit,
        CAST(NULL AS BIGINT) AS matching,
        CAST(NULL AS BIGINT) AS total,
        CAST(NULL AS STRING) AS reason_detail,
        CAST(NULL AS STRING) AS subject,
        CAST(NULL AS INT) AS broker_id,
        CAST(NULL AS BIGINT) AS throttle_time_ms,
        CAST(NULL AS DOUBLE) AS pushes_per_s,
        CAST(NULL AS DOUBLE) AS wire_bytes_per_s,
        CAST(NULL AS DOUBLE) AS produce_p99_ms,
        CAST(NULL AS DOUBLE) AS usual_produce_p99_ms,
        CAST(NULL AS DOUBLE) AS fetch_p99_ms,
        CAST(NULL AS DOUBLE) AS usual_fetch_p99_ms,
        CAST(NULL AS BIGINT) AS shrunk_partitions,
        'throttle_leftovers' AS evidence_table,
        concat('entity_name=', entity_name, ' config_key=', config_key) AS evidence_key,
        since,
        40 AS priority,
        false AS renew_only,
        CAST(NULL AS DOUBLE) AS usage_p99,
        CAST(NULL AS DOUBLE) AS history_s,
        CAST(NULL AS DOUBLE) AS quota_in_force,
        CAST(NULL AS DOUBLE) AS offence,
        CAST(NULL AS DOUBLE) AS least_value,
        CAST(NULL AS STRING) AS direction,
        blocked_reason
    FROM leftover_proposals
    UNION ALL
    SELECT
        subscriptions.cluster_id,
        'client-metrics' AS entity_type,
        subscriptions.entity_name,
        CAST(NULL AS STRING) AS entity_client_id,
        subscriptions.config_key,
        subscriptions.config_value,
        existing.config_value AS prior_value,
        'alert_open' AS reason_code,
        CAST(NULL AS DOUBLE) AS observed,
        subscriptions.bound,
        subscriptions.unit,
        subscriptions.clients AS matching,
        CAST(NULL AS BIGINT) AS total,
        subscriptions.rule AS reason_detail,
        subscriptions.metric AS subject,
        CAST(NULL AS INT) AS broker_id,
        CAST(NULL AS BIGINT) AS throttle_time_ms,
        subscriptions.pushes_per_s,
        subscriptions.wire_bytes_per_s,
        CAST(NULL AS DOUBLE) AS produce_p99_ms,
        CAST(NULL AS DOUBLE) AS usual_produce_p99_ms,
        CAST(NULL AS DOUBLE) AS fetch_p99_ms,
        CAST(NULL AS DOUBLE) AS usual_fetch_p99_ms,
        CAST(NULL AS BIGINT) AS shrunk_partitions,
        'metric_alerts' AS evidence_table,
        concat('rule=', rule, ' is_open') AS evidence_key,
        since,
        20 AS priority,
        false AS renew_only,
        CAST(NULL AS DOUBLE) AS usage_p99,
        CAST(NULL AS DOUBLE) AS history_s,
        CAST(NULL AS DOUBLE) AS quota_in_force,
        CAST(NULL AS DOUBLE) AS offence,
        CAST(NULL AS DOUBLE) AS least_value,
        CAST(NULL AS STRING) AS direction,
        CAST(NULL AS STRING) AS blocked_reason
    FROM subscriptions
    LEFT JOIN existing
        ON subscriptions.cluster_id = existing.cluster_id
            AND subscriptions.entity_name = existing.entity_name
            AND subscriptions.config_key = existing.config_key
    UNION ALL
    SELECT
        existing.cluster_id,
        'client-metrics' AS entity_type,
        existing.entity_name,
        CAST(NULL AS STRING) AS entity_client_id,
        existing.config_key,
        CAST(NULL AS STRING) AS config_value,
        existing.config_value AS prior_value,
        CASE
            WHEN existing.entity_name LIKE 'quotaflow-alert-%' THEN 'alerts_closed'
            ELSE 'troubleshoot_ended'
        END AS reason_code,
        CAST(NULL AS DOUBLE) AS observed,
        CAST(NULL AS DOUBLE) AS bound,
        CAST(NULL AS STRING) AS unit,
        CAST(NULL AS BIGINT) AS matching,
        CAST(NULL AS BIGINT) AS total,
        CAST(NULL AS STRING) AS reason_detail,
        CAST(NULL AS STRING) AS subject,
        CAST(NULL AS INT) AS broker_id,
        CAST(NULL AS BIGINT) AS throttle_time_ms,
        CAST(NULL AS DOUBLE) AS pushes_per_s,
        CAST(NULL AS DOUBLE) AS wire_bytes_per_s,
        CAST(NULL AS DOUBLE) AS produce_p99_ms,
        CAST(NULL AS DOUBLE) AS usual_produce_p99_ms,
        CAST(NULL AS DOUBLE) AS fetch_p99_ms,
        CAST(NULL AS DOUBLE) AS usual_fetch_p99_ms,
        CAST(NULL AS BIGINT) AS shrunk_partitions,
        'current_configs' AS evidence_table,
        concat('entity_name=', existing.entity_name) AS evidence_key,
        existing.valid_from AS since,
        20 AS priority,
        false AS renew_only,
        CAST(NULL AS DOUBLE) AS usage_p99,
        CAST(NULL AS DOUBLE) AS history_s,
        CAST(NULL AS DOUBLE) AS quota_in_force,
        CAST(NULL AS DOUBLE) AS offence,
        CAST(NULL AS DOUBLE) AS least_value,
        CAST(NULL AS STRING) AS direction,
        CAST(NULL AS STRING) AS blocked_reason
    FROM existing
    LEFT JOIN subscription_proposals AS proposed
        ON existing.cluster_id = proposed.cluster_id AND existing.entity_name = proposed.entity_name
    WHERE proposed.entity_name IS NULL AND (
        existing.entity_name LIKE 'quotaflow-alert-%'
        OR existing.entity_name LIKE 'quotaflow-troubleshoot-%-until-%'
    )
    UNION ALL
    SELECT
        proposed.cluster_id,
        'user' AS entity_type,
        proposed.entity_name,
        CAST(NULL AS STRING) AS entity_client_id,
        proposed.config_key,
        CASE
            WHEN proposed.advice IN ('keep', 'wait') THEN own_quotas.config_value
            WHEN proposed.config_key LIKE '%byte_rate'
                THEN CAST(CAST(proposed.recommended AS DECIMAL(38, 0)) AS STRING)
            ELSE CAST(proposed.recommended AS STRING)
        END AS config_value,
        own_quotas.config_value AS prior_value,
        CASE proposed.advice
            WHEN 'set' THEN 'no_quota'
            WHEN 'raise' THEN 'quota_throttles'
            WHEN 'keep' THEN 'quota_fits'
            WHEN 'wait' THEN 'quota_altered_today'
        END AS reason_code,
        proposed.percentile_usage AS observed,
        proposed.quota AS bound,
        CASE proposed.config_key WHEN 'request_percentage' THEN '% of a thread' ELSE 'bytes/s' END
            AS unit,
        proposed.throttled_windows AS matching,
        proposed.windows_in_force AS total,
        CAST(NULL AS STRING) AS reason_detail,
        CAST(NULL AS STRING) AS subject,
        CAST(NULL AS INT) AS broker_id,
        CAST(NULL AS BIGINT) AS throttle_time_ms,
        CAST(NULL AS DOUBLE) AS pushes_per_s,
        CAST(NULL AS DOUBLE) AS wire_bytes_per_s,
        CAST(NULL AS DOUBLE) AS produce_p99_ms,
        CAST(NULL AS DOUBLE) AS usual_produce_p99_ms,
        CAST(NULL AS DOUBLE) AS fetch_p99_ms,
        CAST(NULL AS DOUBLE) AS usual_fetch_p99_ms,
        CAST(NULL AS BIGINT) AS shrunk_partitions,
        'quota_advice' AS evidence_table,
        concat('user=', proposed.entity_name, ' quota_type=', proposed.config_key) AS evidence_key,
        proposed.since,
        30 AS priority,
        proposed.advice IN ('keep', 'wait') AS renew_only,
        proposed.usage_p99,
        proposed.history_s,
        proposed.quota_in_force,
        CASE
            WHEN proposed.direction = 'raise'
                THEN
                    proposed.throttled_windows * 1e0 / proposed.windows_in_force
                    / nullif(proposed.percentile_usage, 0)
        END AS offence,
        CAST(NULL AS DOUBLE) AS least_value,
        proposed.direction,
        proposed.blocked_reason
    FROM quota_proposals AS proposed
    LEFT JOIN own_quotas
        ON proposed.cluster_id = own_quotas.cluster_id
            AND proposed.entity_name = own_quotas.entity_name
            AND proposed.config_key = own_quotas.config_key
    -- Only a quota that the user itself has can be renewed.
    WHERE proposed.advice IN ('set', 'raise') OR own_quotas.entity_name IS NOT NULL
)

SELECT
    cluster_id,
    entity_type,
    entity_name,
    entity_client_id,
    config_key,
    config_value,
    prior_value,
    reason_code,
    observed,
    bound,
    unit,
    matching,
    total,
    reason_detail,
    subject,
    broker_id,
    throttle_time_ms,
    pushes_per_s,
    wire_bytes_per_s,
    CAST(NULL AS DOUBLE) AS written_bytes_per_s,
    CAST(NULL AS DOUBLE) AS rate_bytes_per_s,
    produce_p99_ms,
    usual_produce_p99_ms,
    fetch_p99_ms,
    usual_fetch_p99_ms,
    shrunk_partitions,
    evidence_table,
    evidence_key,
    since,
    priority,
    blocked_reason,
    CAST(NULL AS BIGINT) AS lease_s,
    renew_only,
    usage_p99,
    history_s,
    quota_in_force,
    offence,
    least_value,
    direction
FROM proposals
UNION ALL
SELECT
    cluster_id,
    entity_type,
    entity_name,
    CAST(NULL AS STRING) AS entity_client_id,
    config_key,
    config_value,
    prior_value,
    reason_code,
    other_bytes_per_s AS observed,
    capacity_bytes_per_s AS bound,
    CASE WHEN other_bytes_per_s IS NOT NULL THEN 'bytes/s' END AS unit,
    matching,
    total,
    capacity_source AS reason_detail,
    set_by AS subject,
    CAST(NULL AS INT) AS broker_id,
    CAST(NULL AS BIGINT) AS throttle_time_ms,
    CAST(NULL AS DOUBLE) AS pushes_per_s,
    CAST(NULL AS DOUBLE) AS wire_bytes_per_s,
    written_bytes_per_s,
    rate_bytes_per_s,
    produce_p99_ms,
    usual_produce_p99_ms,
    fetch_p99_ms,
    usual_fetch_p99_ms,
    shrunk_partitions,
    evidence_table,
    evidence_key,
    since,
    priority,
    blocked_reason,
    lease_s,
    renew_only,
    CAST(NULL AS DOUBLE) AS usage_p99,
    CAST(NULL AS DOUBLE) AS history_s,
    CAST(NULL AS DOUBLE) AS quota_in_force,
    CASE
        WHEN reason_code = 'clients_degraded'
            THEN greatest(
                produce_p99_ms / nullif(usual_produce_p99_ms, 0),
                fetch_p99_ms / nullif(usual_fetch_p99_ms, 0)
            )
    END AS offence,
    CAST(NULL AS DOUBLE) AS least_value,
    CAST(NULL AS STRING) AS direction
FROM replication_proposals
