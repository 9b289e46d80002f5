-- kind: proposal
-- grain: one row per limit of an offender that would stop it
-- area: producer_ids
-- level: sampled_log
-- description: What would limit who takes producer ids too fast (producer_id_offenders):
--   producer_ids_rate of the user where the cluster takes it, else a rate of new connections of the
--   address, or a quota of the client id where the loop keeps its connection.
-- evidence:
--   producer_ids (ids): ids that the source took in plan.offence_period_s
--   rate_per_s (ids/s): its rate in its worst second over the quota, at one broker
--   quota_per_s (ids/s): its quota by conf, per broker
--   throttle_time_ms (ms): longest throttle time that the quota would give
--   brokers (brokers): brokers of the cluster
--   broker_id (node id): broker with the harm; without harm that of rate_per_s
--   forecast_bytes (bytes): heap that ids will take there
--   bound_bytes (bytes): its bound
--   produce_p99_ms (ms): p99 of PRODUCE while clients waited there
--   usual_produce_p99_ms (ms): its usual p99
--   fetch_p99_ms (ms): p99 of consumer FETCH, without its wait
--   usual_fetch_p99_ms (ms): its usual p99
--   shrunk_partitions (partitions): partitions down to their min.insync.replicas

WITH users AS (
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
addresses AS (
    SELECT cluster_id, ip, CAST(CAST(quota AS BIGINT) AS STRING) AS quota
    FROM current_client_quotas
    WHERE
        ip IS NOT NULL
        AND config_key = 'connection_creation_rate'
        -- A rate that others set is never raised.
        AND quota < 2147483648
),
limits AS (
    SELECT
        offenders.*,
        own.quota AS user_quota,
        addresses.quota AS address_quota
    FROM producer_id_offenders AS offenders
    LEFT JOIN users AS own
        ON offenders.cluster_id = own.cluster_id
            AND substr(offenders.principal, 6) = own.user
    LEFT JOIN users AS of_all
        ON offenders.cluster_id = of_all.cluster_id AND of_all.is_default_user
    LEFT JOIN addresses
        ON offenders.cluster_id = addresses.cluster_id
            AND offenders.client_address = addresses.ip
    WHERE
        offenders.step <> 'producer_ids_rate'
        OR (
            offenders.nth_of_principal = 1
            -- The default of all users limits it so much already.
            AND (
                own.quota IS NOT NULL
                OR of_all.quota IS NULL
                OR CAST(of_all.quota AS DOUBLE) > offenders.quota_per_s
            )
        )
)

SELECT
    cluster_id,
    CASE step WHEN 'address' THEN 'ip' ELSE 'user' END AS entity_type,
    CASE step WHEN 'address' THEN client_address ELSE substr(principal, 6) END AS entity_name,
    CASE step WHEN 'client_quota' THEN client_pattern END AS entity_client_id,
    CASE step
        WHEN 'producer_ids_rate' THEN 'producer_ids_rate'
        WHEN 'address' THEN 'connection_creation_rate'
        ELSE 'request_percentage'
    END AS config_key,
    CASE
        WHEN step = 'producer_ids_rate' AND CAST(user_quota AS DOUBLE) <= quota_per_s
            THEN user_quota
        WHEN step = 'producer_ids_rate' THEN CAST(quota_per_s AS STRING)
        -- So many connections as the quota of ids needs: its source opens one for an id or two.
        WHEN step = 'address'
            THEN CAST(
                CAST(
                    greatest(ceil(quota_per_s * allocating_connections / producer_ids), 1) AS BIGINT
                ) AS STRING
            )
    END AS config_value,
    CASE step WHEN 'producer_ids_rate' THEN user_quota WHEN 'address' THEN address_quota END
        AS prior_value,
    CASE
        WHEN harm = 'heap' THEN 'producer_ids_fill_heap'
        WHEN harm = 'latency' THEN 'producer_ids_slow_clients'
        ELSE 'producer_ids_over_quota'
    END AS reason_code,
    producer_ids,
    rate_per_s,
    quota_per_s,
    throttle_time_ms,
    brokers,
    broker_id,
    forecast_bytes,
    bound_bytes,
    produce_p99_ms,
    usual_produce_p99_ms,
    fetch_p99_ms,
    usual_fetch_p99_ms,
    shrunk_partitions,
    cause AS reason_detail,
    concat(principal, CASE WHEN source LIKE ' at %' THEN '' ELSE ' as ' END, source) AS subject,
    'producer_id_offenders' AS evidence_table,
    concat('principal=', principal, ' client_address=', client_address) AS evidence_key,
    since,
    10 AS priority,
    blocked_reason,
    CASE WHEN step <> 'client_quota' THEN ids_per_s END AS offence,
    -- So that all others can connect at once: a broker measures over ten seconds or more.
    CASE step WHEN 'address' THEN greatest(ceil(other_connections / 1e1), 1e0) END AS least_value
FROM limits
