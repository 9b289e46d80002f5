-- Offsets of replicas by fetches: a row is a replica of a partition in a minute. A broker reports
-- its own replica in answers without an error. A follower reports its own in all of its fetches,
-- also those that fail: it fetches from its log end. To Kafka an offset below 0 is none.
WITH reports AS (
    -- A row: what a broker, and a client or follower of it, report of a partition in a minute.
    SELECT
        cluster_id, event_time, minute_end, part.topic AS topic, part.topic_id AS topic_id,
        part."partition" AS "partition", broker_id, replica_id AS follower_id,
        count(*) AS fetches,
        count(*) FILTER (is_valid) AS answers,
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
    FROM (SELECT *, coalesce(part.error_code, 0) = 0 AS is_valid FROM answered_partitions)
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
    cluster_id, event_time, topic, topic_id, "partition", broker_id,
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
