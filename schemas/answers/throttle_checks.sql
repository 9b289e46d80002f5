-- kind: answer
-- grain: one row per finding about the replication throttles that are set
-- area: replication
-- level: sampled_log
-- question: Faults of throttles. What is wrong with the replication throttles that are set?
-- description: What is wrong, or can be, with the replication throttles of a cluster (KIP-73).
-- key: cluster_id, finding, topic, side, broker_id
-- time: event_time
-- clustering: event_time, finding
-- lookbacks:
--   replication_traffic: 10 min, replication.stale_throttle_s * 1 s
--   replication_throttles: 10 min, replication.stale_throttle_s * 1 s
-- columns:
--   from replication_throttles: cluster_id
--   finding STRING: list_without_rate, rate_without_list, static_rate_ignored (these do nothing);
--     broker_gone, malformed_list (these name no replica); wildcard_list (covers ordinary catching
--     up too); moved_unlisted (a replica is moved, and no throttle of this side or of the other limits
--     it); rate_below_1_mb (too low for brokers to measure well);
--     response_too_large (see throttle_sizing); stale_list, stale_rate (nothing that the list, or
--     any list, covers was moved or behind for conf's replication.stale_throttle_s, 600 by default)
--   topic STRING: topic of the list; null: the finding is not about one
--   side STRING: leader or follower
--   broker_id INT: broker that the finding is about; null: it is not about one
--   rate DOUBLE: rate that is set, in bytes per second; null: none
--   set_at TIMESTAMP: when the list was set, or the rate where the finding is about the rate; null:
--     before the request log started
--   age_s DOUBLE: time from set_at to the end of event_time, in seconds; null: set_at is not known
--   set_by STRING: principal that set it; null: not known
--   set_by_client_id STRING: its client.id: untrusted text; null: not known
--   replicas BIGINT: sides of replications that the finding is about; brokers for
--     response_too_large
--   malformed_entries STRING: entries of malformed_list that name no replica; null for other
--     findings
--   missing_entries STRING: entries that the list of moved_unlisted lacks, by commas; null for other
--     findings
--   response_max_bytes BIGINT: replica.fetch.response.max.bytes of the brokers, in bytes; Kafka's
--     default if no snapshot has it
--   largest_response_max_bytes BIGINT: largest value of replica.fetch.response.max.bytes that fits,
--     in bytes
--   bounded_by STRING: what limits that value: quota or network
--   event_time TIMESTAMP: last minute with data about replication

WITH conf AS (
    SELECT cluster_id, max(CAST(setting_value AS BIGINT)) AS stale_after_s
    FROM current_settings
    WHERE setting = 'replication.stale_throttle_s'
    GROUP BY cluster_id
),
recent AS (
    SELECT
        throttles.*,
        newest.event_time AS now,
        coalesce(conf.stale_after_s, 600) AS stale_after_s,
        throttles.event_time = newest.event_time AND throttles.is_configured AS is_now,
        coalesce(other.is_limited_there, false) AS is_limited_there,
        CASE
            WHEN throttles.is_moving OR coalesce(NOT throttles.in_isr, false)
                OR coalesce(throttles.offset_lag, 0) > 0 THEN 1
            ELSE 0
        END AS is_used
    FROM replication_throttles AS throttles
    INNER JOIN replication_time AS newest ON throttles.cluster_id = newest.cluster_id
    LEFT JOIN conf ON throttles.cluster_id = conf.cluster_id
    LEFT JOIN otherwise_limited_replication AS other ON throttles.cluster_id = other.cluster_id
        AND throttles.event_time = other.event_time AND throttles.topic = other.topic
        AND throttles.partition = other.partition AND throttles.side = other.side
        AND throttles.broker_id = other.broker_id
        AND throttles.peer_broker_id = other.peer_broker_id
    WHERE unix_millis(throttles.event_time)
        >= unix_millis(newest.event_time) - coalesce(conf.stale_after_s, 600) * 1000
),
used AS (
    SELECT
        cluster_id,
        side,
        max(is_used) AS is_used,
        max(CASE WHEN is_now AND listed <> 'unlisted' THEN 1 ELSE 0 END) AS is_listed
    FROM recent
    GROUP BY cluster_id, side
),
in_use AS (
    SELECT cluster_id, max(is_used) AS is_used
    FROM used
    GROUP BY cluster_id
),
set_up AS (
    SELECT
        recent.*,
        recent.reason AS finding,
        recent.reason LIKE '%rate%' AND recent.reason <> 'list_without_rate' AS is_of_rate
    FROM recent
    -- USING puts its columns first in Spark, and the others of this union have them in place.
    INNER JOIN used ON recent.cluster_id = used.cluster_id AND recent.side = used.side
    WHERE recent.is_now AND (
        (recent.topic IS NULL AND used.is_listed = 0 AND recent.reason = 'rate_without_list')
        OR (recent.listed <> 'unlisted' AND recent.reason IN (
            'list_without_rate', 'static_rate_ignored', 'broker_gone'
        ))
    )
    UNION ALL
    SELECT *, 'malformed_list' AS finding, false AS is_of_rate
    FROM recent
    WHERE is_now AND list_malformed IS NOT NULL
    UNION ALL
    SELECT *, 'wildcard_list' AS finding, false AS is_of_rate
    FROM recent
    WHERE is_now AND listed = 'wildcard'
    UNION ALL
    SELECT *, 'rate_below_1_mb' AS finding, true AS is_of_rate
    FROM recent
    WHERE is_now AND rate < 1e6 AND rate_source IN ('dynamic_broker', 'dynamic_default')
    UNION ALL
    SELECT *, 'moved_unlisted' AS finding, false AS is_of_rate
    FROM recent
    WHERE event_time = now AND is_moving AND topic IS NOT NULL AND listed = 'unlisted'
        AND NOT is_limited_there
),
findings AS (
    SELECT
        cluster_id,
        now,
        finding,
        CASE WHEN finding = 'rate_below_1_mb' THEN NULL ELSE topic END AS topic,
        side,
        CASE
            WHEN finding IN ('malformed_list', 'wildcard_list') THEN NULL
            ELSE broker_id
        END AS broker_id,
        CASE WHEN is_of_rate THEN rate_set_at ELSE list_set_at END AS set_at,
        CASE WHEN is_of_rate THEN rate_set_by ELSE list_set_by END AS set_by,
        CASE WHEN is_of_rate THEN rate_set_by_client_id ELSE list_set_by_client_id END
            AS set_by_client_id,
        rate,
        list_malformed,
        CASE WHEN finding = 'moved_unlisted' THEN concat(partition, ':', broker_id) END
            AS missing_entry
    FROM set_up
),
lists AS (
    SELECT
        cluster_id,
        now,
        topic,
        side,
        max(stale_after_s) AS stale_after_s,
        max(list_set_at) AS set_at,
        max(list_set_by) AS set_by,
        max(list_set_by_client_id) AS set_by_client_id,
        count(CASE WHEN is_now THEN 1 END) AS replicas
    FROM recent
    WHERE topic IS NOT NULL AND listed <> 'unlisted'
    GROUP BY cluster_id, now, topic, side
    HAVING max(is_used) = 0 AND count(CASE WHEN is_now THEN 1 END) > 0
),
rates AS (
    SELECT
        recent.cluster_id,
        recent.now,
        recent.side,
        recent.broker_id,
        max(recent.stale_after_s) AS stale_after_s,
        max(recent.rate) AS rate,
        max(recent.rate_set_at) AS set_at,
        max(recent.rate_set_by) AS set_by,
        max(recent.rate_set_by_client_id) AS set_by_client_id,
        count(*) AS replicas
    FROM recent
    INNER JOIN in_use USING (cluster_id)
    WHERE recent.is_now AND in_use.is_used = 0
        AND recent.rate_source IN ('dynamic_broker', 'dynamic_default')
    GROUP BY recent.cluster_id, recent.now, recent.side, recent.broker_id
),
all_findings AS (
    SELECT
        cluster_id,
        now,
        finding,
        topic,
        side,
        broker_id,
        max(rate) AS rate,
        max(set_at) AS set_at,
        max(set_by) AS set_by,
        max(set_by_client_id) AS set_by_client_id,
        count(*) AS replicas,
        max(list_malformed) AS malformed_entries,
        nullif(array_join(array_sort(collect_set(missing_entry)), ','), '') AS missing_entries
    FROM findings
    GROUP BY cluster_id, now, finding, topic, side, broker_id
    UNION ALL
    SELECT
        cluster_id,
        now,
        'stale_list' AS finding,
        topic,
        side,
        CAST(NULL AS INT) AS broker_id,
        CAST(NULL AS DOUBLE) AS rate,
        set_at,
        set_by,
        set_by_client_id,
        replicas,
        CAST(NULL AS STRING) AS malformed_entries,
        CAST(NULL AS STRING) AS missing_entries
    FROM lists
    WHERE set_at IS NULL OR unix_millis(now) - unix_millis(set_at) >= stale_after_s * 1000
    UNION ALL
    SELECT
        cluster_id,
        now,
        'stale_rate' AS finding,
        CAST(NULL AS STRING) AS topic,
        side,
        broker_id,
        rate,
        set_at,
        set_by,
        set_by_client_id,
        replicas,
        CAST(NULL AS STRING) AS malformed_entries,
        CAST(NULL AS STRING) AS missing_entries
    FROM rates
    WHERE set_at IS NULL OR unix_millis(now) - unix_millis(set_at) >= stale_after_s * 1000
    UNION ALL
    SELECT
        cluster_id,
        event_time AS now,
        'response_too_large' AS finding,
        CAST(NULL AS STRING) AS topic,
        'leader' AS side,
        CAST(NULL AS INT) AS broker_id,
        leader_rate AS rate,
        CASE WHEN false THEN event_time END AS set_at,
        CAST(NULL AS STRING) AS set_by,
        CAST(NULL AS STRING) AS set_by_client_id,
        brokers AS replicas,
        CAST(NULL AS STRING) AS malformed_entries,
        CAST(NULL AS STRING) AS missing_entries
    FROM throttle_sizing
    WHERE NOT fits
)

SELECT
    *,
    all_findings.cluster_id,
    CASE
        WHEN set_at IS NOT NULL THEN (unix_millis(now) + 60000 - unix_millis(set_at)) / 1e3
    END AS age_s,
    now AS event_time
FROM all_findings
LEFT JOIN throttle_sizing AS sizing
    ON all_findings.cluster_id = sizing.cluster_id
        AND all_findings.finding = 'response_too_large'
