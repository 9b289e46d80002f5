-- kind: result
-- grain: one row per minute, partition and replica
-- area: racks
-- level: sampled_log
-- description: Offsets of each replica, one row {per}: from the answers of brokers to FETCH and
--   from the fetches of followers. A partition in which nothing changes has no row (KIP-227)
-- key: cluster_id, event_time, topic_id, topic, partition, broker_id
-- time: event_time
-- partitioning: event_date
-- facts: fetches
-- bucket: 1 min
-- split_by: cluster_id, broker_id
-- split_or_by: cluster_id, replica_id
-- lookups:
--   topic_names: changes nothing
--   topics: from event_time, reaches back
-- unnamed:
--   replica_offsets
-- columns:
--   from topic_names: cluster_id, event_date, event_time
--   topic_id STRING: id of the topic; null: requests have its name, and nothing has its id
--   topic STRING: name of the topic; null: no request, answer or snapshot has a name of topic_id
--     yet
--   partition INT: number of the partition
--   broker_id INT: broker of the replica
--   answers BIGINT: answers with its offsets, to consumers and followers
--   answers_to_followers BIGINT: of those, to followers: it led the partition
--   follower_fetches BIGINT: answers it got as a follower of this partition
--   min_log_start_offset BIGINT: least log start offset of answers and fetches
--   max_log_start_offset BIGINT: greatest log start offset of answers and fetches
--   min_high_watermark BIGINT: least high watermark in its answers
--   max_high_watermark BIGINT: greatest high watermark in its answers
--   min_log_end_offset BIGINT: least log end offset: what a follower fetches from; null: it did not
--     follow
--   max_log_end_offset BIGINT: greatest log end offset; null: it did not follow

-- Offsets of each replica by fetches, minute by minute. A broker reports its own replica in answers
-- without an error. A follower reports its own in all of its fetches, also those that fail: it
-- fetches from its log end. To Kafka an offset below 0 is none.
WITH answered AS (
    -- A row: a partition of an answer.
    SELECT *, coalesce(part.error_code, 0) = 0 AS is_valid
    FROM (
        SELECT
            cluster_id, event_time, broker_id, replica_id, weight_of(weight) AS weight,
            unnest(partitions) AS part
        FROM fetches
    )
),
reports AS (
    -- A row: what a broker, and a client or follower of it, report of a partition in a minute.
    SELECT
        cluster_id, floored(event_time, 60) AS event_time,
        floored(event_time, 60) + INTERVAL 1 MINUTE AS minute_end,
        part.topic AS topic, part.topic_id AS topic_id,
        part."partition" AS "partition", broker_id, replica_id AS follower_id,
        sum(weight) AS fetches,
        coalesce(sum(weight) FILTER (is_valid), 0) AS answers,
        min(part.log_start_offset) FILTER (is_valid AND part.log_start_offset >= 0)
            AS min_log_start_offset,
        max(part.log_start_offset) FILTER (is_valid AND part.log_start_offset >= 0)
            AS max_log_start_offset,
        min(part.high_watermark) FILTER (is_valid AND part.high_watermark >= 0)
            AS min_high_watermark,
        max(part.high_watermark) FILTER (is_valid AND part.high_watermark >= 0)
            AS max_high_watermark,
        min(part.follower_log_start_offset) FILTER (part.follower_log_start_offset >= 0)
            AS min_follower_log_start_offset,
        max(part.follower_log_start_offset) FILTER (part.follower_log_start_offset >= 0)
            AS max_follower_log_start_offset,
        min(part.fetch_offset) FILTER (part.fetch_offset >= 0) AS min_fetch_offset,
        max(part.fetch_offset) FILTER (part.fetch_offset >= 0) AS max_fetch_offset
    FROM answered
    GROUP BY ALL
),
by_topic AS (
    FROM with_topics(reports, topics, topics_by_id)
),
by_replica AS (
    SELECT
        cluster_id, event_time, topic, topic_id, "partition", broker_id, answers,
        if(follower_id IS NULL, 0, answers) AS answers_to_followers, 0 AS follower_fetches,
        min_log_start_offset, max_log_start_offset, min_high_watermark, max_high_watermark,
        NULL::BIGINT AS min_log_end_offset, NULL::BIGINT AS max_log_end_offset
    FROM by_topic
    WHERE answers > 0
    UNION ALL
    SELECT
        cluster_id, event_time, topic, topic_id, "partition", follower_id, 0, 0, fetches,
        min_follower_log_start_offset, max_follower_log_start_offset, NULL, NULL,
        min_fetch_offset, max_fetch_offset
    FROM by_topic
    WHERE follower_id IS NOT NULL
)
SELECT
    cluster_id, CAST(event_time AS DATE) AS event_date, event_time, topic, topic_id, "partition",
    broker_id,
    sum(answers) AS answers,
    sum(answers_to_followers) AS answers_to_followers,
    sum(follower_fetches) AS follower_fetches,
    min(min_log_start_offset) AS min_log_start_offset,
    max(max_log_start_offset) AS max_log_start_offset,
    min(min_high_watermark) AS min_high_watermark,
    max(max_high_watermark) AS max_high_watermark,
    min(min_log_end_offset) AS min_log_end_offset,
    max(max_log_end_offset) AS max_log_end_offset
FROM by_replica
GROUP BY ALL
