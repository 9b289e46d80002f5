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
    max(high_watermark) AS high_watermark,
    -- Past the high watermark is not behind.
    CASE WHEN lag_of(max(high_watermark), max(last_fetch_offset)) IS NOT NULL
        THEN greatest(lag_of(max(high_watermark), max(last_fetch_offset)), 0) END AS offset_lag,
    sum(behind_fetches) AS behind_fetches,
    coalesce(sum(empty_fetches) FILTER (empty_offset < known_end), 0) AS stalled_fetches,
    sum(omitted_fetches) AS omitted_fetches
FROM seconds
GROUP BY ALL
