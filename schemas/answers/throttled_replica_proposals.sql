-- kind: proposal
-- grain: one row per list of throttled replicas that should name more replicas
-- area: replication
-- level: sampled_log
-- description: Lists of topics without replicas that are being moved while a rate for them is set,
--   so that neither side limits the move (KIP-73; see throttle_checks, moved_unlisted).
--   Entries that a list already has stay. Blocked are lists with entries that name no replica
--   (malformed_list), and rates that would never let the move end (rate_not_above_writes).
-- empty: while a throttle limits each move for which a rate is set
-- lookbacks:
--   replication_traffic: 1 h
--   replication_throttles: 1 h
-- evidence:
--   replicas (replicas): replicas that are moved and that the list does not name
--   rate_bytes_per_s (bytes/s): least rate that is set for a broker of these replicas
--   written_bytes_per_s (bytes/s): what is written into all that the list would name then, at the
--     broker where that is not below the rate; null: it is below the rate everywhere

WITH unnamed AS (
    SELECT
        throttles.*,
        CASE WHEN throttles.event_time = newest.event_time THEN 1 ELSE 0 END AS is_last
    FROM replication_throttles AS throttles
    INNER JOIN replication_time AS newest ON throttles.cluster_id = newest.cluster_id
    LEFT JOIN otherwise_limited_replication AS other ON throttles.cluster_id = other.cluster_id
        AND throttles.event_time = other.event_time AND throttles.topic = other.topic
        AND throttles.partition = other.partition AND throttles.side = other.side
        AND throttles.broker_id = other.broker_id
        AND throttles.peer_broker_id = other.peer_broker_id
    WHERE
        throttles.topic IS NOT NULL
        AND throttles.broker_id IS NOT NULL
        AND other.is_limited_there IS NULL
        AND throttles.listed = 'unlisted'
        AND throttles.is_moving
        AND throttles.is_configured
        AND throttles.rate > 0
        AND throttles.rate_source IN ('dynamic_broker', 'dynamic_default')
        AND unix_micros(throttles.event_time) > unix_micros(newest.event_time) - 3600000000
),
missing AS (
    SELECT
        cluster_id,
        topic,
        side,
        partition,
        broker_id,
        max(CASE WHEN is_last = 1 THEN rate END) AS rate,
        min(event_time) AS since,
        -- A leader is charged for each follower, a follower but once.
        CASE WHEN side = 'leader' THEN sum(is_last) ELSE 1 END AS times_written
    FROM unnamed
    GROUP BY cluster_id, topic, side, partition, broker_id
    HAVING sum(is_last) > 0
),
listed AS (
    SELECT cluster_id, broker_id, side, sum(written_bytes_per_s) AS bytes_per_s
    FROM listed_replication
    GROUP BY cluster_id, broker_id, side
),
more AS (
    SELECT
        missing.cluster_id,
        missing.broker_id,
        missing.side,
        sum(missing.times_written * writes.written_bytes_per_s) AS bytes_per_s
    FROM missing
    INNER JOIN partition_write_rates AS writes USING (cluster_id, topic, partition)
    GROUP BY missing.cluster_id, missing.broker_id, missing.side
),
rated AS (
    SELECT
        missing.*,
        coalesce(listed.bytes_per_s, 0e0) + coalesce(more.bytes_per_s, 0e0) AS floor_bytes_per_s
    FROM missing
    LEFT JOIN listed USING (cluster_id, broker_id, side)
    LEFT JOIN more USING (cluster_id, broker_id, side)
),
short AS (
    SELECT
        cluster_id,
        topic,
        side,
        min(rate) AS rate,
        max(CASE WHEN rate <= floor_bytes_per_s THEN floor_bytes_per_s END) AS floor_bytes_per_s,
        count(*) AS replicas,
        min(since) AS since
    FROM rated
    GROUP BY cluster_id, topic, side
),
broken AS (
    SELECT
        throttles.cluster_id,
        throttles.topic,
        throttles.side,
        max(CASE WHEN throttles.list_malformed IS NOT NULL THEN 1 ELSE 0 END) = 1 AS is_malformed
    FROM replication_throttles AS throttles
    INNER JOIN replication_time AS newest USING (cluster_id, event_time)
    GROUP BY throttles.cluster_id, throttles.topic, throttles.side
),
entries AS (
    SELECT
        cluster_id,
        topic,
        side,
        concat(CAST(partition AS STRING), ':', CAST(broker_id AS STRING)) AS entry,
        false AS is_listed
    FROM missing
    UNION ALL
    SELECT cluster_id, topic, side, entry, true AS is_listed
    FROM throttled_replica_setters
),
lists AS (
    SELECT
        cluster_id,
        topic,
        side,
        array_join(array_sort(array_agg(entry)), ',') AS desired_list,
        -- Of no entries, Spark joins an empty text.
        nullif(array_join(array_sort(array_agg(CASE WHEN is_listed THEN entry END)), ','), '')
            AS current_list,
        max(CASE WHEN entry = '*' THEN 1 ELSE 0 END) = 1 AS is_of_all
    FROM entries
    GROUP BY cluster_id, topic, side
)

SELECT
    lists.cluster_id,
    'topic' AS entity_type,
    lists.topic AS entity_name,
    concat(lists.side, '.replication.throttled.replicas') AS config_key,
    lists.desired_list AS config_value,
    lists.current_list AS prior_value,
    'moved_unlisted' AS reason_code,
    short.replicas,
    short.rate AS rate_bytes_per_s,
    short.floor_bytes_per_s AS written_bytes_per_s,
    'throttle_checks' AS evidence_table,
    concat('finding=moved_unlisted topic=', lists.topic, ' side=', lists.side) AS evidence_key,
    short.since,
    25 AS priority,
    CASE
        WHEN broken.is_malformed THEN 'malformed_list'
        WHEN short.floor_bytes_per_s IS NOT NULL THEN 'rate_not_above_writes'
        WHEN NOT bounds.is_managed THEN 'not_managed'
    END AS blocked_reason,
    -- A move may take days. Once it is over, the stale entries are proposed for removal.
    CAST(604800 AS BIGINT) AS lease_s,
    coalesce(
        bounds.is_managed AND NOT coalesce(broken.is_malformed, false)
        AND short.floor_bytes_per_s IS NOT NULL,
        false
    ) AS renew_only
FROM lists
INNER JOIN short USING (cluster_id, topic, side)
INNER JOIN replication_policy AS bounds USING (cluster_id)
LEFT JOIN broken USING (cluster_id, topic, side)
WHERE NOT lists.is_of_all
