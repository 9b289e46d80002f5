-- kind: proposal
-- grain: one row per config of a replication throttle that should change
-- area: replication
-- level: sampled_log
-- description: Which configs of replication throttles to change (KIP-73): rates, by
--   replication_rate_advice, while replicas are moved or behind; stale rates and lists, by
--   throttle_checks; and lists without moved replicas, by throttled_replica_proposals. A plan can
--   set rates only if conf's replication.manage allows it. Of stale ones it can remove only what
--   this pipeline's own login or one of replication.cleanup_principals set, entry by entry where a
--   list also has entries of others. It only renews what it set where a move
--   goes on and no value is right, and nothing where a person must decide.
-- lookbacks:
--   replication_traffic: 10 min
--   replication_throttles: 10 min
-- evidence:
--   other_bytes_per_s (bytes/s): traffic of the broker beside what the throttle limits
--   capacity_bytes_per_s (bytes/s): what the broker can carry, by reason_detail (conf or latency)
--   written_bytes_per_s (bytes/s): what is written into the throttled replicas
--   rate_bytes_per_s (bytes/s): rate that is set now
--   produce_p99_ms (ms): greatest p99 of PRODUCE in these minutes
--   usual_produce_p99_ms (ms): its usual p99
--   fetch_p99_ms (ms): greatest p99 of consumer FETCH in these minutes
--   usual_fetch_p99_ms (ms): its usual p99
--   shrunk_partitions (partitions): partitions of the broker that came down to their
--     min.insync.replicas recently; null: its clients are well
--   own_entries (entries): entries of the list that this pipeline may remove
--   entries (entries): all entries of the list
--   replicas (replicas): replicas that are moved and that the list does not name

WITH cleaners AS (
    SELECT cluster_id, substr(setting, 21) AS principal
    FROM current_settings
    WHERE setting LIKE 'replication.cleanup.%'
),
sources AS (
    SELECT
        throttles.cluster_id,
        throttles.broker_id,
        throttles.side,
        max(throttles.rate_source) AS rate_source
    FROM replication_throttles AS throttles
    INNER JOIN replication_time AS newest USING (cluster_id, event_time)
    GROUP BY throttles.cluster_id, throttles.broker_id, throttles.side
),
old_rates AS (
    SELECT
        checks.*,
        sources.rate_source,
        cleaners.principal IS NOT NULL AS is_ours
    FROM throttle_checks AS checks
    LEFT JOIN sources USING (cluster_id, broker_id, side)
    LEFT JOIN cleaners
        ON checks.cluster_id = cleaners.cluster_id AND checks.set_by = cleaners.principal
    WHERE checks.finding = 'stale_rate'
),
old_entries AS (
    SELECT
        entries.*,
        checks.event_time,
        cleaners.principal IS NOT NULL AS is_ours
    FROM throttled_replica_setters AS entries
    INNER JOIN throttle_checks AS checks USING (cluster_id, topic, side)
    LEFT JOIN cleaners
        ON entries.cluster_id = cleaners.cluster_id AND entries.set_by = cleaners.principal
    LEFT JOIN throttled_replica_proposals AS grows
        ON entries.cluster_id = grows.cluster_id
            AND entries.topic = grows.entity_name
            AND concat(entries.side, '.replication.throttled.replicas') = grows.config_key
    WHERE checks.finding = 'stale_list' AND grows.entity_name IS NULL
),
old_lists AS (
    SELECT
        cluster_id,
        topic,
        side,
        max(CASE WHEN is_ours THEN set_by END) AS set_by,
        max(CASE WHEN NOT is_ours THEN set_by END) AS set_by_other,
        max(CASE WHEN is_ours THEN set_at END) AS set_at,
        max(event_time) AS event_time,
        count(*) AS entries_in_all,
        count(CASE WHEN is_ours THEN 1 END) AS entries_of_ours,
        array_join(array_sort(array_agg(entry)), ',') AS entries,
        -- Of no entries, Spark joins an empty text.
        nullif(array_join(array_sort(array_agg(CASE WHEN NOT is_ours THEN entry END)), ','), '')
            AS entries_of_others
    FROM old_entries
    GROUP BY cluster_id, topic, side
),
advised AS (
    SELECT
        advice.*,
        bounds.is_managed,
        bounds.lease_s,
        coalesce(
            bounds.is_managed
            AND advice.is_listed
            AND advice.is_moving
            AND advice.rate_source = 'dynamic_broker',
            false
        ) AS is_to_go_on
    FROM replication_rate_advice AS advice
    INNER JOIN replication_policy AS bounds USING (cluster_id)
),
rates AS (
    SELECT
        advice.*,
        CASE
            WHEN advice.reason = 'capacity_unknown' THEN 'capacity_unknown'
            WHEN advice.reason LIKE 'floor_exceeds_capacity%' THEN 'floor_exceeds_capacity'
            WHEN NOT advice.is_listed THEN 'rate_without_list'
            WHEN advice.reason = 'cooldown' THEN 'changed_recently'
            WHEN NOT advice.is_managed THEN 'not_managed'
        END AS blocked_reason
    FROM advised AS advice
    WHERE
        advice.is_used
        AND (advice.is_moving OR advice.rate IS NOT NULL)
        -- A rate that is right already is proposed unchanged, so that its lease is renewed.
        AND (advice.reason <> 'unchanged' OR advice.is_to_go_on)
)

SELECT
    cluster_id,
    'broker' AS entity_type,
    CAST(broker_id AS STRING) AS entity_name,
    concat(side, '.replication.throttled.rate') AS config_key,
    CAST(CAST(ceil(recommended) AS DECIMAL(38, 0)) AS STRING) AS config_value,
    CASE
        WHEN rate_source = 'dynamic_broker' THEN CAST(CAST(rate AS DECIMAL(38, 0)) AS STRING)
    END AS prior_value,
    reason AS reason_code,
    other_bytes_per_s,
    capacity_bytes_per_s,
    floor_bytes_per_s AS written_bytes_per_s,
    rate AS rate_bytes_per_s,
    produce_p99_ms,
    usual_produce_p99_ms,
    fetch_p99_ms,
    usual_fetch_p99_ms,
    CASE WHEN NOT are_clients_healthy THEN shrunk_partitions END AS shrunk_partitions,
    capacity_source AS reason_detail,
    rate_set_by AS subject,
    'replication_rate_advice' AS evidence_table,
    concat('broker_id=', CAST(broker_id AS STRING), ' side=', side) AS evidence_key,
    since,
    CASE WHEN reason = 'floor' OR reason LIKE '%clients_degraded' THEN 5 ELSE 25 END AS priority,
    blocked_reason,
    lease_s,
    blocked_reason IS NOT NULL AND is_to_go_on AS renew_only,
    CASE
        WHEN reason = 'clients_degraded'
            THEN greatest(
                produce_p99_ms / nullif(usual_produce_p99_ms, 0),
                fetch_p99_ms / nullif(usual_fetch_p99_ms, 0)
            )
    END AS offence
FROM rates
UNION ALL
SELECT
    cluster_id,
    'broker' AS entity_type,
    CAST(broker_id AS STRING) AS entity_name,
    concat(side, '.replication.throttled.rate') AS config_key,
    CAST(CAST(rate AS DECIMAL(38, 0)) AS STRING) AS prior_value,
    'stale_rate' AS reason_code,
    rate AS rate_bytes_per_s,
    set_by AS subject,
    'throttle_checks' AS evidence_table,
    concat('finding=stale_rate side=', side, ' broker_id=', CAST(broker_id AS STRING))
        AS evidence_key,
    coalesce(set_at, event_time) AS since,
    40 AS priority,
    CASE
        WHEN NOT is_ours THEN 'set_by_other'
        WHEN rate_source = 'dynamic_default' THEN 'default_of_all_brokers'
    END AS blocked_reason
FROM old_rates
UNION ALL
SELECT
    cluster_id,
    'topic' AS entity_type,
    topic AS entity_name,
    concat(side, '.replication.throttled.replicas') AS config_key,
    entries_of_others AS config_value,
    entries AS prior_value,
    'stale_list' AS reason_code,
    entries_of_ours AS own_entries,
    entries_in_all AS entries,
    CASE WHEN entries_of_ours = 0 THEN set_by_other ELSE set_by END AS subject,
    'throttle_checks' AS evidence_table,
    concat('finding=stale_list topic=', topic, ' side=', side) AS evidence_key,
    coalesce(set_at, event_time) AS since,
    40 AS priority,
    CASE WHEN entries_of_ours = 0 THEN 'set_by_other' END AS blocked_reason
FROM old_lists
UNION ALL
SELECT * FROM throttled_replica_proposals
