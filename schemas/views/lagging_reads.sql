-- One row per consumer, partition and follower that it stayed on while that fell behind: hw_lag grew
-- from minute to minute three times in a row or more, and records were read there in each of them. A
-- follower that catches up within minutes is not listed: it fetches in one go what a burst brought.
-- lagging_minutes: minutes that ended such three or more.
WITH newest AS (
    SELECT cluster_id, max(event_time) AS event_time
    FROM preferred_replicas
    GROUP BY cluster_id
),
minutes AS (
    SELECT
        found.cluster_id,
        found.event_time,
        found.principal,
        found.client_id,
        found.topic_id,
        coalesce(found.topic, topic_ids.topic, found.topic_id) AS topic,
        found.partition,
        found.broker_id,
        max(found.leader_id) AS leader_id,
        max(found.hw_lag) AS hw_lag
    FROM preferred_replicas AS found
    INNER JOIN newest ON found.cluster_id = newest.cluster_id
    LEFT JOIN topic_ids
        ON found.cluster_id = topic_ids.cluster_id AND found.topic_id = topic_ids.topic_id
    WHERE
        unix_millis(found.event_time) > unix_millis(newest.event_time) - 86400000
        AND found.hw_lag IS NOT NULL
        AND found.fetches > 0
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
)

SELECT
    cluster_id,
    principal,
    client_id,
    topic_id,
    topic,
    partition,
    broker_id,
    max(leader_id) AS leader_id,
    count(*) AS lagging_minutes,
    min(event_time) AS first_seen,
    max(event_time) AS last_seen,
    max(hw_lag) AS max_hw_lag
FROM runs
WHERE growths = 3
GROUP BY cluster_id, principal, client_id, topic_id, topic, partition, broker_id
