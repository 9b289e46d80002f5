-- kind: mart
-- grain: one row per hour, group, topic and whether commits were of transactions
-- area: groups
-- level: sampled_log
-- description: What groups commit, how often, and how fast they get on, by the offsets of their
--   commits. A row without a topic counts requests whose body was not kept.
-- columns:
--   from group_commits: cluster_id
--   hour: start of the hour
--   from group_commits: group_id
--   topic: name of the topic; null: not known
--   unnamed_topic_id: id of the topic if its name is not known; null otherwise
--   is_transactional: minutes with commits of transactions (TXN_OFFSET_COMMIT)
--   commits: commits of partitions that brokers took
--   failed_commits: commits of partitions that brokers refused
--   committed_records: offsets by which the commits got on since the commit before; resets to later
--     offsets count too; null: there is no commit before
--   records_per_s: committed_records by the time that they took; null: not known
--   commit_interval_s: mean time between minutes' last commits of a partition, in s; null: one alone
--   minutes_back: minutes of a partition in which a commit went back to an earlier offset
--   partitions: partitions with commits
--   clients: clients that committed
WITH minutes AS (
    SELECT
        cluster_id, event_time, group_id, topic, topic_id, partition, is_transactional,
        sum(commits) AS commits, sum(failed_commits) AS failed_commits,
        max(max_offset) AS max_offset, max(last_commit_time) AS last_commit_time,
        max(CASE WHEN went_back THEN 1 ELSE 0 END) AS went_back
    FROM group_commits
    GROUP BY cluster_id, event_time, group_id, topic, topic_id, partition, is_transactional
),
steps AS (
    SELECT
        *,
        max_offset - lag(max_offset) OVER by_partition AS step_records,
        unix_millis(last_commit_time) - unix_millis(lag(last_commit_time) OVER by_partition)
            AS step_ms
    FROM minutes
    WINDOW by_partition AS (
        PARTITION BY cluster_id, group_id, topic, topic_id, partition, is_transactional
        ORDER BY event_time
    )
),
hours AS (
    SELECT
        cluster_id, date_trunc('hour', event_time) AS hour, group_id, topic,
        CASE WHEN topic IS NULL THEN topic_id END AS unnamed_topic_id, is_transactional,
        sum(commits) AS commits, sum(failed_commits) AS failed_commits,
        sum(CASE WHEN step_records >= 0 THEN step_records END) AS committed_records,
        avg(step_ms) / 1e3 AS commit_interval_s,
        sum(
            CASE WHEN step_records < 0 OR went_back = 1 THEN 1 ELSE 0 END
        ) AS minutes_back,
        count(DISTINCT partition) AS partitions
    FROM steps
    GROUP BY
        cluster_id, date_trunc('hour', event_time), group_id, topic,
        CASE WHEN topic IS NULL THEN topic_id END, is_transactional
),
rates AS (
    -- Partitions get on beside each other, so their rates add up.
    SELECT
        cluster_id, hour, group_id, topic, unnamed_topic_id, is_transactional,
        sum(records / nullif(took_ms, 0) * 1e3) AS records_per_s
    FROM (
        SELECT
            cluster_id, date_trunc('hour', event_time) AS hour, group_id, topic,
            CASE WHEN topic IS NULL THEN topic_id END AS unnamed_topic_id, is_transactional,
            partition, sum(step_records) AS records, sum(step_ms) AS took_ms
        FROM steps
        WHERE step_records >= 0 AND step_ms > 0
        GROUP BY
            cluster_id, date_trunc('hour', event_time), group_id, topic,
            CASE WHEN topic IS NULL THEN topic_id END, is_transactional, partition
    ) AS by_partition
    GROUP BY cluster_id, hour, group_id, topic, unnamed_topic_id, is_transactional
),
clients AS (
    SELECT
        cluster_id, date_trunc('hour', event_time) AS hour, group_id, topic,
        CASE WHEN topic IS NULL THEN topic_id END AS unnamed_topic_id, is_transactional,
        count(DISTINCT concat_ws('|', principal, client_id)) AS clients
    FROM group_commits
    GROUP BY
        cluster_id, date_trunc('hour', event_time), group_id, topic,
        CASE WHEN topic IS NULL THEN topic_id END, is_transactional
)
SELECT
    h.cluster_id, h.hour, h.group_id, h.topic, h.unnamed_topic_id, h.is_transactional, h.commits,
    h.failed_commits, h.committed_records, r.records_per_s, h.commit_interval_s, h.minutes_back,
    h.partitions, c.clients
FROM hours AS h
LEFT JOIN rates AS r
    ON r.cluster_id = h.cluster_id AND r.hour = h.hour AND r.group_id = h.group_id
        AND r.topic IS NOT DISTINCT FROM h.topic
        AND r.unnamed_topic_id IS NOT DISTINCT FROM h.unnamed_topic_id
        AND r.is_transactional = h.is_transactional
INNER JOIN clients AS c
    ON c.cluster_id = h.cluster_id AND c.hour = h.hour AND c.group_id = h.group_id
        AND c.topic IS NOT DISTINCT FROM h.topic
        AND c.unnamed_topic_id IS NOT DISTINCT FROM h.unnamed_topic_id
        AND c.is_transactional = h.is_transactional
