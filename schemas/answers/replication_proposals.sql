-- kind: answer
-- grain: one row per config of a replication throttle that should change
-- area: replication
-- level: sampled_log
-- description: Which configs of replication throttles to change (KIP-73): rates, by
--   replication_rate_advice, while replicas are moved or behind; stale rates and lists, by
--   throttle_checks; and lists without moved replicas, by throttled_replica_proposals. A plan can
--   set rates only if conf's replication.manage allows it. Of stale ones it can remove only what
--   this pipeline's own login or one of replication.cleanup_principals set, entry by entry where a
--   list also has entries of others.
-- key: cluster_id, entity_type, entity_name, config_key
-- time: since
-- clustering: since, entity_type
-- lookbacks:
--   replication_traffic: 10 min
--   replication_throttles: 10 min
-- columns:
--   from throttled_replica_proposals: cluster_id
--   entity_type STRING: broker or topic
--   entity_name STRING: node id of the broker, or name of the topic
--   config_key STRING: config of a rate or of a list of throttled replicas
--   config_value STRING: desired value, a rate in bytes per second or a list; null: the config is
--     to be removed, or, if blocked_reason is set, no value is right
--   prior_value STRING: value now; null: not set on the entity itself
--   reason_code STRING: a reason of replication_rate_advice, stale_rate, stale_list or
--     moved_unlisted
--   other_bytes_per_s DOUBLE: traffic of the broker beside what the throttle limits, in bytes per
--     second; null: the reason is none of replication_rate_advice
--   capacity_bytes_per_s DOUBLE: what the broker can carry, in bytes per second; null: not known,
--     or as above
--   capacity_source STRING: conf or latency (see replication_demand); null: as capacity_bytes_per_s
--   written_bytes_per_s DOUBLE: what is written into the throttled replicas, in bytes per second;
--     null: not part of the reason
--   rate_bytes_per_s DOUBLE: rate that is set now, in bytes per second; null: none, or not part of
--     the reason
--   set_by STRING: principal that set the rate or named entries of the list; null: not known
--   matching BIGINT: replicas that the list does not name, for moved_unlisted; entries that this
--     pipeline may remove, for stale_list; null for other reasons
--   total BIGINT: entries of the list, for stale_list; null for other reasons
--   produce_p99_ms DOUBLE: greatest p99 of PRODUCE in those minutes, in ms; null: none
--   usual_produce_p99_ms DOUBLE: usual p99 of PRODUCE, in ms; null: none
--   fetch_p99_ms DOUBLE: greatest p99 of consumer FETCH in those minutes, in ms; null: none
--   usual_fetch_p99_ms DOUBLE: usual p99 of consumer FETCH, in ms; null: none
--   shrunk_partitions BIGINT: partitions of the broker that came down to their min.insync.replicas
--     recently; null: clients of the broker are well, or the reason is none of
--     replication_rate_advice
--   from throttled_replica_proposals: evidence_table, evidence_key
--   since TIMESTAMP: since when the reason exists
--   from throttled_replica_proposals: priority
--   blocked_reason STRING: why a plan must not set it, as a code; null: a plan can. For rates:
--     capacity_unknown, floor_exceeds_capacity, rate_without_list, changed_recently, not_managed.
--     For stale ones: set_by_other, default_of_all_brokers. For lists without moved replicas: as in
--     throttled_replica_proposals
--   lease_s BIGINT: length of the lease, in seconds; null: it has no end
--   renew_only BOOLEAN: true: a plan only renews what this pipeline set while the replicas are
--     still moved, and changes nothing; false where a person must decide (replication.manage, a
--     malformed list, settings of others) and for a rate that no list uses

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
    INNER JOIN replication_time AS newest
        ON throttles.cluster_id = newest.cluster_id
            AND throttles.event_time = newest.event_time
    GROUP BY throttles.cluster_id, throttles.broker_id, throttles.side
),
old_rates AS (
    SELECT
        checks.*,
        sources.rate_source,
        cleaners.principal IS NOT NULL AS is_ours
    FROM throttle_checks AS checks
    LEFT JOIN sources
        ON checks.cluster_id = sources.cluster_id
            AND checks.broker_id = sources.broker_id
            AND checks.side = sources.side
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
    INNER JOIN throttle_checks AS checks
        ON entries.cluster_id = checks.cluster_id
            AND entries.topic = checks.topic
            AND entries.side = checks.side
            AND checks.finding = 'stale_list'
    LEFT JOIN cleaners
        ON entries.cluster_id = cleaners.cluster_id AND entries.set_by = cleaners.principal
    LEFT JOIN throttled_replica_proposals AS grows
        ON entries.cluster_id = grows.cluster_id
            AND entries.topic = grows.entity_name
            AND concat(entries.side, '.replication.throttled.replicas') = grows.config_key
    WHERE grows.entity_name IS NULL
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
    INNER JOIN replication_policy AS bounds ON advice.cluster_id = bounds.cluster_id
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
    capacity_source,
    floor_bytes_per_s AS written_bytes_per_s,
    rate AS rate_bytes_per_s,
    rate_set_by AS set_by,
    CAST(NULL AS BIGINT) AS matching,
    CAST(NULL AS BIGINT) AS total,
    produce_p99_ms,
    usual_produce_p99_ms,
    fetch_p99_ms,
    usual_fetch_p99_ms,
    CASE WHEN NOT are_clients_healthy THEN shrunk_partitions END AS shrunk_partitions,
    'replication_rate_advice' AS evidence_table,
    concat('broker_id=', CAST(broker_id AS STRING), ' side=', side) AS evidence_key,
    since,
    CASE WHEN reason = 'floor' OR reason LIKE '%clients_degraded' THEN 5 ELSE 25 END AS priority,
    blocked_reason,
    lease_s,
    blocked_reason IS NOT NULL AND is_to_go_on AS renew_only
FROM rates
UNION ALL
SELECT
    cluster_id,
    'broker' AS entity_type,
    CAST(broker_id AS STRING) AS entity_name,
    concat(side, '.replication.throttled.rate') AS config_key,
    CAST(NULL AS STRING) AS config_value,
    CAST(CAST(rate AS DECIMAL(38, 0)) AS STRING) AS prior_value,
    'stale_rate' AS reason_code,
    CAST(NULL AS DOUBLE) AS other_bytes_per_s,
    CAST(NULL AS DOUBLE) AS capacity_bytes_per_s,
    CAST(NULL AS STRING) AS capacity_source,
    CAST(NULL AS DOUBLE) AS written_bytes_per_s,
    rate AS rate_bytes_per_s,
    set_by,
    CAST(NULL AS BIGINT) AS matching,
    CAST(NULL AS BIGINT) AS total,
    CAST(NULL AS DOUBLE) AS produce_p99_ms,
    CAST(NULL AS DOUBLE) AS usual_produce_p99_ms,
    CAST(NULL AS DOUBLE) AS fetch_p99_ms,
    CAST(NULL AS DOUBLE) AS usual_fetch_p99_ms,
    CAST(NULL AS BIGINT) AS shrunk_partitions,
    'throttle_checks' AS evidence_table,
    concat('finding=stale_rate side=', side, ' broker_id=', CAST(broker_id AS STRING))
        AS evidence_key,
    coalesce(set_at, event_time) AS since,
    40 AS priority,
    CASE
        WHEN NOT is_ours THEN 'set_by_other'
        WHEN rate_source = 'dynamic_default' THEN 'default_of_all_brokers'
    END AS blocked_reason,
    CAST(NULL AS BIGINT) AS lease_s,
    false AS renew_only
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
    CAST(NULL AS DOUBLE) AS other_bytes_per_s,
    CAST(NULL AS DOUBLE) AS capacity_bytes_per_s,
    CAST(NULL AS STRING) AS capacity_source,
    CAST(NULL AS DOUBLE) AS written_bytes_per_s,
    CAST(NULL AS DOUBLE) AS rate_bytes_per_s,
    CASE WHEN entries_of_ours = 0 THEN set_by_other ELSE set_by END AS set_by,
    entries_of_ours AS matching,
    entries_in_all AS total,
    CAST(NULL AS DOUBLE) AS produce_p99_ms,
    CAST(NULL AS DOUBLE) AS usual_produce_p99_ms,
    CAST(NULL AS DOUBLE) AS fetch_p99_ms,
    CAST(NULL AS DOUBLE) AS usual_fetch_p99_ms,
    CAST(NULL AS BIGINT) AS shrunk_partitions,
    'throttle_checks' AS evidence_table,
    concat('finding=stale_list topic=', topic, ' side=', side)
        AS evidence_key,
    coalesce(set_at, event_time) AS since,
    40 AS priority,
    CASE
        WHEN entries_of_ours = 0 THEN 'set_by_other'
    END AS blocked_reason,
    CAST(NULL AS BIGINT) AS lease_s,
    false AS renew_only
FROM old_lists
UNION ALL
SELECT
    cluster_id,
    entity_type,
    entity_name,
    config_key,
    config_value,
    prior_value,
    reason_code,
    CAST(NULL AS DOUBLE) AS other_bytes_per_s,
    CAST(NULL AS DOUBLE) AS capacity_bytes_per_s,
    CAST(NULL AS STRING) AS capacity_source,
    written_bytes_per_s,
    rate_bytes_per_s,
    CAST(NULL AS STRING) AS set_by,
    replicas AS matching,
    CAST(NULL AS BIGINT) AS total,
    CAST(NULL AS DOUBLE) AS produce_p99_ms,
    CAST(NULL AS DOUBLE) AS usual_produce_p99_ms,
    CAST(NULL AS DOUBLE) AS fetch_p99_ms,
    CAST(NULL AS DOUBLE) AS usual_fetch_p99_ms,
    CAST(NULL AS BIGINT) AS shrunk_partitions,
    evidence_table,
    evidence_key,
    since,
    priority,
    blocked_reason,
    lease_s,
    renew_only
FROM throttled_replica_proposals
