-- kind: mart
-- grain: one row per topic
-- area: quotas
-- level: admin_api
-- question: Unused topics. Which topics does nobody use: no records produced, none fetched, for how long?
-- description: When clients last moved records of each topic of the last snapshot, as far as the log of
--   requests reaches back. No use for 30 days: known_idle_s > 30 * 86400. Followers do not count. A
--   consumer that waits for records moves none: see groups. Reads of share groups have no bytes in
--   the log: see share_fetches. A log that is sampled can miss a topic with few requests.
-- history: traffic
-- first: known_idle_s
-- columns:
--   from current_topics: cluster_id, topic, topic_id, is_internal
--   last_produced: start of the last minute in which a client produced records; null: none in the log
--   last_fetched: start of the last minute in which a client fetched records; null: none in the log
--   idle_s: time from the last of both to log_until, in seconds; null: see idle_unknown
--   idle_unknown: why idle_s is null, as a code: no_log (there is no request log), internal (brokers write
--     it themselves), not_in_log (nobody moved records since known_since, and nothing shows what was
--     before)
--   known_since: from when on the log can show a use: its first minute, or the first snapshot with the
--     topic, if that is later; null: no_log
--   known_idle_s: time for which nobody moved records, as far as the log shows it, in seconds: idle_s, or
--     from known_since to log_until; null: no_log, internal
--   log_until: start of the newest minute of the log with records; null: no_log
--   groups: groups that have a member with a partition of the topic, or an offset in one, by the last
--     snapshot
WITH moved AS (
    SELECT
        cluster_id,
        topic,
        topic_id,
        max(CASE WHEN direction = 'produced' THEN event_time END) AS last_produced,
        max(CASE WHEN direction = 'consumed' THEN event_time END) AS last_fetched
    FROM traffic
    GROUP BY cluster_id, topic, topic_id
),
log AS (
    SELECT cluster_id, min(event_time) AS log_since, max(event_time) AS log_until
    FROM traffic
    GROUP BY cluster_id
),
found AS (
    SELECT cluster_id, topic_id, min(event_time) AS found_at
    FROM topics
    GROUP BY cluster_id, topic_id
),
used AS (
    SELECT
        topics.cluster_id,
        topics.topic_id,
        max(moved.last_produced) AS last_produced,
        max(moved.last_fetched) AS last_fetched
    FROM current_topics AS topics
    INNER JOIN moved
        ON topics.cluster_id = moved.cluster_id
            AND CASE
                WHEN moved.topic_id IS NULL THEN topics.topic = moved.topic
                ELSE topics.topic_id = moved.topic_id
            END
    GROUP BY topics.cluster_id, topics.topic_id
),
readers AS (
    SELECT cluster_id, topic, count(DISTINCT group_id) AS groups
    FROM (
        SELECT cluster_id, group_id, topic
        FROM (
            SELECT
                *,
                row_number() OVER (
                    PARTITION BY cluster_id, group_id, topic, partition ORDER BY event_time DESC
                ) AS age
            FROM group_offsets
        ) AS aged
        WHERE age = 1 AND NOT is_removed
        UNION ALL
        SELECT cluster_id, group_id, assigned.topic
        FROM (
            SELECT *, explode(assigned_partitions) AS assigned
            FROM current_group_assignments
        ) AS members
    ) AS named
    GROUP BY cluster_id, topic
),
known AS (
    SELECT
        topics.*,
        used.last_produced,
        used.last_fetched,
        greatest(used.last_produced, used.last_fetched) AS last_used,
        greatest(log.log_since, found.found_at) AS known_since,
        log.log_until,
        coalesce(readers.groups, 0) AS groups
    FROM current_topics AS topics
    LEFT JOIN log ON topics.cluster_id = log.cluster_id
    LEFT JOIN used
        ON topics.cluster_id = used.cluster_id AND topics.topic_id = used.topic_id
    LEFT JOIN found
        ON topics.cluster_id = found.cluster_id AND topics.topic_id = found.topic_id
    LEFT JOIN readers
        ON topics.cluster_id = readers.cluster_id AND topics.topic = readers.topic
)

SELECT
    *,
    (unix_micros(log_until) - unix_micros(last_used)) / 1e6 AS idle_s,
    CASE
        WHEN log_until IS NULL THEN 'no_log'
        WHEN last_used IS NULL AND is_internal THEN 'internal'
        WHEN last_used IS NULL THEN 'not_in_log'
    END AS idle_unknown,
    CASE WHEN log_until IS NOT NULL THEN known_since END AS known_since,
    CASE
        WHEN last_used IS NOT NULL OR NOT coalesce(is_internal, false)
            THEN (
                unix_micros(log_until)
                - unix_micros(coalesce(last_used, least(known_since, log_until)))
            ) / 1e6
    END AS known_idle_s
FROM known
