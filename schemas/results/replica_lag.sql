-- kind: result
-- grain: one row per ten seconds, leader, follower and partition in which it fetched
-- area: replication
-- level: sampled_log
-- question: Followers behind. Which followers are behind their leaders, how far, and do they catch up?
-- description: How far followers that are behind are behind their leaders, one row {per}; none of
--   followers that are not
-- key: cluster_id, event_time, broker_id, replica_id, topic_id, topic, partition
-- time: event_time
-- partitioning: event_date
-- facts: fetches
-- relevant: replica_id IS NOT NULL
-- bucket: 10 s
-- split_by: cluster_id, broker_id
-- lookups:
--   topic_names: changes nothing
--   topics: changes nothing
-- unnamed:
--   replica_lag
-- columns:
--   from topic_names: cluster_id, event_date
--   event_time TIMESTAMP: start of the ten seconds
--   broker_id INT: leader that was fetched from
--   replica_id INT: follower that fetched
--   topic_id STRING: id of the topic; null: requests have its name, and nothing has its id
--   topic STRING: name of the topic; null: no request, answer or snapshot has a name of topic_id
--     yet
--   partition INT: number of the partition
--   fetches BIGINT: answers with the partition
--   bytes BIGINT: record bytes that came
--   last_bytes BIGINT: record bytes that the last of them brought: last_offset does not show them
--     yet
--   first_offset BIGINT: log end offset of the follower at the first of them
--   last_offset BIGINT: log end offset of the follower at the last of them
--   last_time TIMESTAMP: time of the last of them
--   high_watermark BIGINT: high watermark of the leader's last answer
--   lag BIGINT: high_watermark less last_offset: offsets left then
--   max_lag BIGINT: most offsets left at any of them

-- How far followers that are behind are behind their leaders, from their own fetches
-- (SumReplicaLag of KIP-73).
WITH each AS (
    SELECT
        cluster_id, event_time, broker_id, replica_id, weight_of(weight) AS weight,
        unnest(partitions, max_depth := 2)
    FROM (SELECT * EXCLUDE (error_code) FROM fetches)
),
lags AS (
    SELECT
        cluster_id, CAST(floored(event_time, $bucket_s) AS DATE) AS event_date,
        floored(event_time, $bucket_s) AS event_time, broker_id, replica_id,
        topic_id, topic, "partition",
        sum(weight) AS fetches,
        coalesce(sum(bytes * weight), 0) AS bytes,
        arg_max(
            coalesce(bytes, 0) * weight, (event_time, high_watermark, fetch_offset)
        ) AS last_bytes,
        min(fetch_offset) AS first_offset,
        arg_max(fetch_offset, (event_time, high_watermark, fetch_offset)) AS last_offset,
        max(event_time) AS last_time,
        arg_max(high_watermark, (event_time, high_watermark, fetch_offset)) AS high_watermark,
        lag_of(
            arg_max(high_watermark, (event_time, high_watermark, fetch_offset)),
            arg_max(fetch_offset, (event_time, high_watermark, fetch_offset))
        ) AS lag,
        max(lag_of(high_watermark, fetch_offset)) AS max_lag
    FROM each
    -- A follower in sync fetches at or past the high watermark.
    WHERE coalesce(error_code, 0) = 0 AND high_watermark > fetch_offset
    GROUP BY ALL
)
FROM with_names(lags, topics_by_id)
