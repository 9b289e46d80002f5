-- kind: result
-- grain: one row per minute
-- area: replication
-- level: sampled_log
-- description: What each follower read of a partition from its leader, one row {per}; and, with no
--   follower_id, what was produced into the partition
-- key: cluster_id, event_time, leader_id, follower_id, topic_id, topic, partition
-- time: event_time
-- partitioning: event_date
-- facts: requests
-- relevant: api = 'PRODUCE' OR (api = 'FETCH' AND replica_id IS NOT NULL) OR api IN
--   ('INCREMENTAL_ALTER_CONFIGS', 'ALTER_CONFIGS', 'CREATE_TOPICS', 'DELETE_TOPICS', 'METADATA',
--   'DESCRIBE_TOPIC_PARTITIONS', 'CREATE_TOPICS')
-- bucket: 1 min
-- split_by: cluster_id, broker_id
-- runs_forward: yes
-- lookups:
--   config_alterations: changes nothing
--   configs: from event_time, reaches back
--   topic_names: changes nothing
--   topics: changes nothing
-- unnamed:
--   replication_traffic
-- columns:
--   from topic_names: cluster_id, event_date, event_time
--   leader_id INT: broker that was read from, or written to
--   follower_id INT: broker that read; null: bytes that clients produced
--   topic_id STRING: id of the topic; null: requests have its name, and nothing has its id
--   topic STRING: name of the topic; null: no request, answer or snapshot has a name of topic_id
--     yet
--   partition INT: number of the partition
--   fetches BIGINT: fetches whose request or answer has it; or PRODUCEs
--   bytes BIGINT: record bytes, as compressed by the producer (PartitionBytesInRate)
--   leader_throttled_bytes BIGINT: those of them that the leader's list covers (KIP-73)
--   follower_throttled_bytes BIGINT: those of them that the follower's list covers
--   first_fetch_offset BIGINT: least offset it requested
--   last_fetch_offset BIGINT: greatest offset it requested: its log end by then
--   first_fetch_time TIMESTAMP: time of the first fetch that names an offset; null: none does
--   last_fetch_time TIMESTAMP: time of the last fetch that names an offset; null: none does
--   last_bytes BIGINT: record bytes that came with that fetch or after it: last_fetch_offset does
--     not show them yet; null: no fetch names an offset
--   first_high_watermark BIGINT: lowest high watermark in its answers
--   high_watermark BIGINT: highest high watermark in its answers
--   offset_lag BIGINT: high_watermark less last_fetch_offset, at least 0; null: one of them is not
--     known
--   behind_fetches BIGINT: fetches from below the high watermark they were answered with: no
--     replica in sync does that
--   stalled_fetches BIGINT: fetches that requested it and returned nothing, though an earlier
--     answer shows more
--   omitted_fetches BIGINT: fetches that removed it from their session (KIP-227)

-- What each follower read of a partition from its leader, and what was produced into it, by minute.
WITH seconds AS (
    SELECT
        * REPLACE (floored(event_time, 60) AS event_time),
        -- The highest high watermark of earlier seconds of the minute. What comes to be there
        -- later was not stalled.
        max(high_watermark) OVER (
            PARTITION BY cluster_id, floored(event_time, 60), leader_id, follower_id, topic,
                topic_id, "partition"
            ORDER BY event_time
            RANGE BETWEEN UNBOUNDED PRECEDING AND INTERVAL 1 SECOND PRECEDING
        ) AS known_end
    FROM partition_seconds
)
SELECT
    cluster_id, CAST(event_time AS DATE) AS event_date, event_time, leader_id, follower_id,
    topic_id, topic, "partition",
    sum(fetches) AS fetches,
    sum(bytes) AS bytes,
    sum(leader_throttled_bytes) AS leader_throttled_bytes,
    sum(follower_throttled_bytes) AS follower_throttled_bytes,
    min(first_fetch_offset) AS first_fetch_offset,
    max(last_fetch_offset) AS last_fetch_offset,
    min(first_fetch_time) AS first_fetch_time,
    max(last_fetch_time) AS last_fetch_time,
    -- A follower that gets records names its new offset in its next fetch.
    CASE
        WHEN max(last_time) >= max(last_fetch_time)
            THEN arg_max(last_size, (last_time, last_size))
        WHEN max(last_fetch_time) IS NOT NULL THEN 0
    END AS last_bytes,
    min(first_high_watermark) AS first_high_watermark,
    max(high_watermark) AS high_watermark,
    -- Past the high watermark is not behind.
    CASE WHEN lag_of(max(high_watermark), max(last_fetch_offset)) IS NOT NULL
        THEN greatest(lag_of(max(high_watermark), max(last_fetch_offset)), 0) END AS offset_lag,
    sum(behind_fetches) AS behind_fetches,
    coalesce(sum(empty_fetches) FILTER (empty_offset < known_end), 0) AS stalled_fetches,
    sum(omitted_fetches) AS omitted_fetches
FROM seconds
GROUP BY ALL
