-- kind: proposal
-- grain: one row per cluster that takes producer_ids_rate (KIP-936) and where more principals
--   offend under the default quota of conf than a plan may limit one by one
-- area: producer_ids
-- level: sampled_log
-- description: One row {per}: the quota of the default of all users, whom it would slow, and why no
--   plan may set it.
-- empty: where conf has no producer_ids.default_quota_per_s, where the cluster does not take the
--   config, as stock Kafka, and where single limits do
-- lookbacks:
--   producer_id_rates: 14 d, plan.address_history_s * 2 s
-- evidence:
--   quota_per_s (ids/s): producer_ids_rate that is asked for, per user and broker
--   offenders (users): principals under the default that a plan may limit now
--   max_entities (users): how many a plan may limit one by one (plan.max_entities)
--   ids_per_s (ids/s): new producer ids that they all took
--   throttle_time_ms (ms): longest throttle time that the quota would give the worst of them
--   broker_id (node id): broker with the harm
--   forecast_bytes (bytes): heap that ids will take there; null: the harm is latency
--   bound_bytes (bytes): its bound; null: the harm is latency
--   produce_p99_ms (ms): p99 of PRODUCE while clients waited there
--   usual_produce_p99_ms (ms): its usual p99
--   fetch_p99_ms (ms): p99 of consumer FETCH, without its wait
--   usual_fetch_p99_ms (ms): its usual p99
--   shrunk_partitions (partitions): partitions down to their min.insync.replicas
--   recorded_s (s): how long requests have been recorded without a gap
--   other_principals (principals): principals that do not offend and have no producer_ids_rate of
--     their own, which took ids faster than the default in a second of plan.address_history_s
--   other_principal (ids/s): greatest rate at one broker of the fastest of them; its name stands
--     in place of the signal

WITH policy AS (
    SELECT
        cluster_id,
        max(TRY_CAST(setting_value AS DOUBLE))
            FILTER (WHERE setting = 'producer_ids.default_quota_per_s') AS quota_per_s,
        max(CASE WHEN setting = 'plan.max_entities' THEN CAST(setting_value AS BIGINT) END)
            AS max_entities,
        max(CASE WHEN setting = 'plan.address_history_s' THEN CAST(setting_value AS DOUBLE) END)
            AS history_s,
        bool_or(setting = 'plan.default_quotas' AND lower(setting_value) = 'true') AS is_allowed
    FROM current_settings
    GROUP BY cluster_id
),
quotas AS (
    SELECT
        cluster_id,
        user,
        is_default_user,
        CAST(quota AS STRING) AS quota
    FROM current_client_quotas
    WHERE
        config_key = 'producer_ids_rate'
        AND client_id IS NULL
        AND NOT is_default_client_id
        AND (user IS NOT NULL OR is_default_user)
),
-- An offender by another quota of conf, or with a quota of its own, is not under the default.
offenders AS (
    SELECT
        offenders.*,
        policy.max_entities
    FROM producer_id_offenders AS offenders
    INNER JOIN policy USING (cluster_id, quota_per_s)
    LEFT JOIN quotas AS own
        ON offenders.cluster_id = own.cluster_id AND offenders.principal = concat('User:', own.user)
    WHERE
        own.user IS NULL
        AND offenders.step = 'producer_ids_rate'
        AND (offenders.blocked_reason IS NULL OR offenders.blocked_reason = 'no_harm')
),
harmful AS (
    SELECT
        *,
        row_number() OVER (
            PARTITION BY cluster_id ORDER BY producer_ids DESC, principal, client_address
        ) AS nth
    FROM offenders
    WHERE blocked_reason IS NULL
),
counted AS (
    SELECT
        cluster_id,
        count(DISTINCT principal) AS offenders,
        sum(ids_per_s) AS ids_per_s,
        min(since) AS since
    FROM harmful
    GROUP BY cluster_id
),
newest AS (
    SELECT cluster_id, max(unix_millis(event_time)) AS newest_ms
    FROM producer_id_rates
    GROUP BY cluster_id
),
fast AS (
    SELECT
        rates.cluster_id,
        coalesce(rates.principal, '?') AS principal,
        max(rates.rate_per_s) AS rate_per_s
    FROM producer_id_rates AS rates
    INNER JOIN newest USING (cluster_id)
    INNER JOIN policy USING (cluster_id)
    WHERE
        rates.kind = 'allocation'
        AND rates.rate_per_s > policy.quota_per_s
        AND unix_millis(rates.event_time) > newest_ms - coalesce(policy.history_s, 604800e0) * 1e3
    GROUP BY rates.cluster_id, coalesce(rates.principal, '?')
),
-- Those that no quota may slow down are among them: the default binds them, too.
others AS (
    SELECT
        fast.*,
        row_number() OVER (PARTITION BY fast.cluster_id ORDER BY fast.rate_per_s DESC, fast.principal)
            AS nth,
        count(*) OVER (PARTITION BY fast.cluster_id) AS principals
    FROM fast
    LEFT JOIN (SELECT DISTINCT cluster_id, principal FROM offenders) AS offending
        USING (cluster_id, principal)
    LEFT JOIN quotas AS own
        ON fast.cluster_id = own.cluster_id AND fast.principal = concat('User:', own.user)
    WHERE offending.principal IS NULL AND own.user IS NULL
)

SELECT
    worst.cluster_id,
    'user' AS entity_type,
    'producer_ids_rate' AS config_key,
    CASE
        WHEN CAST(own_default.quota AS DOUBLE) <= worst.quota_per_s THEN own_default.quota
        ELSE CAST(worst.quota_per_s AS STRING)
    END AS config_value,
    own_default.quota AS prior_value,
    'producer_ids_of_many' AS reason_code,
    worst.quota_per_s,
    counted.offenders,
    worst.max_entities,
    counted.ids_per_s,
    worst.throttle_time_ms,
    worst.broker_id,
    CASE worst.harm WHEN 'heap' THEN worst.forecast_bytes END AS forecast_bytes,
    CASE worst.harm WHEN 'heap' THEN worst.bound_bytes END AS bound_bytes,
    worst.produce_p99_ms,
    worst.usual_produce_p99_ms,
    worst.fetch_p99_ms,
    worst.usual_fetch_p99_ms,
    worst.shrunk_partitions,
    worst.history_s AS recorded_s,
    coalesce(others.principals, 0) AS other_principals,
    others.rate_per_s AS other_principal,
    coalesce(others.principal, 'other_principal') AS other_principal_name,
    worst.cause AS reason_detail,
    concat(
        worst.principal, CASE WHEN worst.source LIKE ' at %' THEN '' ELSE ' as ' END, worst.source
    ) AS subject,
    'default_quota_proposals' AS evidence_table,
    concat('quota_per_s=', CAST(worst.quota_per_s AS STRING)) AS evidence_key,
    counted.since,
    10 AS priority,
    CASE
        WHEN others.principal IS NOT NULL THEN 'default_slows_others'
        WHEN worst.history_s < worst.address_history_s THEN 'default_history_short'
        WHEN NOT policy.is_allowed THEN 'default_quota_off'
    END AS blocked_reason,
    counted.ids_per_s AS offence
FROM harmful AS worst
INNER JOIN counted USING (cluster_id)
INNER JOIN policy USING (cluster_id)
LEFT JOIN others ON worst.cluster_id = others.cluster_id AND others.nth = 1
LEFT JOIN quotas AS own_default
    ON worst.cluster_id = own_default.cluster_id AND own_default.is_default_user
WHERE worst.nth = 1 AND counted.offenders > worst.max_entities
