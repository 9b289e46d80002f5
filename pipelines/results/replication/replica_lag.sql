-- How far followers that are behind are behind their leaders, from their own fetches
-- (SumReplicaLag of KIP-73).
WITH each AS (
    SELECT
        cluster_id, event_time, broker_id, replica_id, unnest(partitions, max_depth := 2)
    FROM (SELECT * EXCLUDE (error_code) FROM fetches)
),
lags AS (
    SELECT
        cluster_id, CAST(floored(event_time, $period_s) AS DATE) AS event_date,
        floored(event_time, $period_s) AS event_time, broker_id, replica_id,
        topic_id, topic, "partition",
        count(*) AS fetches,
        coalesce(sum(bytes), 0) AS bytes,
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
