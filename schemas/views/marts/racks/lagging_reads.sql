-- kind: mart
-- grain: one row per consumer, partition and follower that the consumer read from while the follower
--   fell behind
-- area: racks
-- level: sampled_log
-- description: Consumers that stayed on a follower that fell further and further behind its leader
--   (KIP-392), in the last day: its lag grew from minute to minute at least three times in a row, with
--   records read in each minute. A follower that catches up within minutes is left out.
-- columns:
--   from preferred_replicas: cluster_id, principal, client_id, topic_id, topic, partition
--   broker_id: follower that the consumer read from
--   from preferred_replicas: leader_id
--   lagging_minutes: minutes of such runs: the one before the first growth, and those of the growths
--   first_seen: first of those minutes
--   last_seen: last of those minutes
--   max_hw_lag: greatest hw_lag in them: high watermark of the leader minus that of the follower, in
--     offsets
WITH newest AS (
    SELECT cluster_id, max(event_time) AS event_time
    FROM preferred_replicas
    GROUP BY cluster_id
),
minutes AS (
    SELECT
        reads.cluster_id,
        reads.event_time,
        reads.principal,
        reads.client_id,
        reads.topic_id,
        reads.topic,
        reads.partition,
        reads.broker_id,
        max(reads.leader_id) AS leader_id,
        max(reads.hw_lag) AS hw_lag
    FROM preferred_replicas AS reads
    INNER JOIN newest USING (cluster_id)
    WHERE
        unix_millis(reads.event_time) > unix_millis(newest.event_time) - 86400000
        AND reads.hw_lag IS NOT NULL
        AND reads.fetches > 0
    GROUP BY 1, 2, 3, 4, 5, 6, 7, 8
),
steps AS (
    SELECT
        *,
        CASE
            WHEN hw_lag > lag(hw_lag) OVER series
                AND unix_millis(event_time) - lag(unix_millis(event_time)) OVER series = 60000
                THEN 1
            ELSE 0
        END AS grew
    FROM minutes
    WINDOW series AS (
        PARTITION BY cluster_id, principal, client_id, topic_id, topic, partition, broker_id
        ORDER BY event_time
    )
),
runs AS (
    SELECT
        *,
        sum(grew) OVER (
            PARTITION BY cluster_id, principal, client_id, topic_id, topic, partition, broker_id
            ORDER BY event_time
            ROWS BETWEEN 2 PRECEDING AND CURRENT ROW
        ) AS growths
    FROM steps
),
lagged AS (
    -- A run of three growths is of four minutes.
    SELECT
        *,
        max(growths) OVER (
            PARTITION BY cluster_id, principal, client_id, topic_id, topic, partition, broker_id
            ORDER BY event_time
            ROWS BETWEEN CURRENT ROW AND 3 FOLLOWING
        ) AS next_growths
    FROM runs
)

SELECT
    *,
    max(leader_id) AS leader_id,
    count(*) AS lagging_minutes,
    min(event_time) AS first_seen,
    max(event_time) AS last_seen,
    max(hw_lag) AS max_hw_lag
FROM lagged
WHERE next_growths = 3
GROUP BY ALL
