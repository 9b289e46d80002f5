-- kind: intermediate
-- grain: one row per config of a replication throttle that should change
-- description: Which configs of replication throttles to change (KIP-73): rates, by
--   replication_rate_advice, while replicas are moved or behind; rates and lists that are left over, by
--   throttle_checks; and lists that lack moved replicas, by throttled_replica_proposals. A plan asks
--   for rates only if conf's replication.manage allows it. Of what is left over it asks only for what
--   this pipeline's own login or one of replication.cleanup_principals set, entry by entry where a list
--   also has entries of others. The rows have the columns of desired_configs.
-- columns:
--   from throttled_replica_proposals: cluster_id
--   entity_type: broker or topic
--   entity_name: node id of the broker, or name of the topic
--   config_key: config of a rate or of a list of throttled replicas
--   config_value: value that is wanted, a rate in bytes per second or a list; null: the config is to be
--     removed, or, if blocked_reason is set, no value is right
--   prior_value: value now; null: not set on the entity itself
--   from throttled_replica_proposals: reason, evidence_table, evidence_key
--   since: since when the reason exists
--   from throttled_replica_proposals: priority, blocked_reason
--   lease_s: how long the request holds unless it is renewed, in seconds; null: it has no end
--   renew_only: true: a plan only renews what this pipeline set while the replicas are still moved,
--     and changes nothing; false where a person must decide (replication.manage, a malformed list,
--     settings of others) and for a rate that no list uses
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
    WHERE checks.finding = 'left_over_rate'
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
            AND checks.finding = 'left_over_list'
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
        -- DataFusion gathers nulls too, and joins none.
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
        ) AS is_to_go_on,
        CASE
            WHEN advice.are_clients_healthy THEN ''
            ELSE concat(
                '; clients suffer: p99 of PRODUCE ',
                coalesce(CAST(CAST(advice.produce_p99_ms AS BIGINT) AS STRING), '-'),
                ' ms, usually ',
                coalesce(CAST(CAST(advice.usual_produce_p99_ms AS BIGINT) AS STRING), '-'),
                ', of FETCH ',
                coalesce(CAST(CAST(advice.fetch_p99_ms AS BIGINT) AS STRING), '-'),
                ' ms, usually ',
                coalesce(CAST(CAST(advice.usual_fetch_p99_ms AS BIGINT) AS STRING), '-'),
                ', partitions down to their min.insync.replicas ',
                CAST(advice.shrunk_partitions AS STRING)
            )
        END AS suffering
    FROM replication_rate_advice AS advice
    INNER JOIN replication_policy AS bounds ON advice.cluster_id = bounds.cluster_id
),
rates AS (
    SELECT
        advice.*,
        concat(
            advice.reason, ': of ',
            CAST(CAST(coalesce(advice.capacity_bytes_per_s, 0e0) / 1e6 AS DECIMAL(18, 1)) AS STRING),
            ' MB/s (', coalesce(advice.capacity_source, 'not known'), ') other traffic takes ',
            CAST(CAST(advice.other_bytes_per_s / 1e6 AS DECIMAL(18, 1)) AS STRING),
            ', what it holds is written at ',
            CAST(CAST(advice.floor_bytes_per_s / 1e6 AS DECIMAL(18, 1)) AS STRING),
            CASE
                WHEN advice.rate IS NULL THEN ', and no rate stands'
                ELSE concat(
                    ', and ', CAST(CAST(advice.rate / 1e6 AS DECIMAL(18, 1)) AS STRING),
                    ' MB/s stand, set by ',
                    coalesce(substr(advice.rate_set_by, 1, 100), 'nobody the log tells')
                )
            END,
            advice.suffering
        ) AS why,
        CASE
            WHEN advice.reason = 'capacity_unknown'
                THEN 'no capacity in conf (replication), and no traffic it could be learned from'
            WHEN advice.reason LIKE 'floor_exceeds_capacity%'
                THEN concat(
                    'what its lists hold, or 1 MB/s, is more than what is left of it: ',
                    'move fewer at once',
                    CASE
                        WHEN advice.capacity_source = 'learned'
                            THEN ', or tell conf its capacity: it is the most it ever carried so far'
                        ELSE ''
                    END,
                    advice.suffering
                )
            WHEN NOT advice.is_listed
                THEN 'no list names its replicas, and a rate alone does nothing'
            WHEN advice.reason = 'held'
                THEN 'its rate was changed so short a time ago that nobody sees yet what that did'
            WHEN NOT advice.is_managed THEN 'replication.manage of conf is false'
        END AS blocked_reason
    FROM advised AS advice
    WHERE
        advice.is_used
        AND (advice.is_moving OR advice.rate IS NOT NULL)
        -- A rate that is right already is asked for as it stands, so that its lease goes on.
        AND (advice.reason <> 'kept' OR advice.is_to_go_on)
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
    why AS reason,
    'replication_rate_advice' AS evidence_table,
    concat('broker_id=', CAST(broker_id AS STRING), ' side=', side) AS evidence_key,
    since,
    CASE WHEN reason = 'floor' OR reason LIKE '%clients_suffer' THEN 5 ELSE 25 END AS priority,
    CASE
        WHEN recommended IS NULL OR reason = 'held' THEN blocked_reason
        WHEN blocked_reason IS NOT NULL
            THEN concat(
                blocked_reason, '; ', CAST(CAST(recommended / 1e6 AS DECIMAL(18, 1)) AS STRING),
                ' MB/s fit, by ', why
            )
    END AS blocked_reason,
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
    concat(
        'left over: nothing that it holds was moved or behind of late; set by ',
        coalesce(substr(set_by, 1, 100), 'somebody before the request log began')
    ) AS reason,
    'throttle_checks' AS evidence_table,
    concat('finding=left_over_rate side=', side, ' broker_id=', CAST(broker_id AS STRING))
        AS evidence_key,
    coalesce(set_at, event_time) AS since,
    40 AS priority,
    CASE
        WHEN NOT is_ours
            THEN concat(
                'left over, but set by ',
                coalesce(substr(set_by, 1, 100), 'somebody before the request log began'),
                ', who is not in replication.cleanup_principals of conf'
            )
        WHEN rate_source = 'dynamic_default'
            THEN 'left over as the default of all brokers, which no plan touches'
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
    concat(
        'left over: nothing that it names was moved or behind of late; ',
        CAST(entries_of_ours AS STRING), ' of ',
        CAST(entries_in_all AS STRING), ' entries were named by ',
        coalesce(substr(set_by, 1, 100), 'us')
    ) AS reason,
    'throttle_checks' AS evidence_table,
    concat('finding=left_over_list topic=', topic, ' side=', side)
        AS evidence_key,
    coalesce(set_at, event_time) AS since,
    40 AS priority,
    CASE
        WHEN entries_of_ours = 0
            THEN concat(
                'left over, but set by ',
                coalesce(substr(set_by_other, 1, 100), 'somebody before the request log began'),
                ', who is not in replication.cleanup_principals of conf'
            )
    END AS blocked_reason,
    CAST(NULL AS BIGINT) AS lease_s,
    false AS renew_only
FROM old_lists
UNION ALL
SELECT * FROM throttled_replica_proposals
