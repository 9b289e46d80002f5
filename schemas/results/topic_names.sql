-- kind: result
-- grain: one row per minute and id
-- area: cluster
-- level: sampled_log
-- description: Which topic ids brokers sent clients for which topics, one row {per} (view
--   topic_ids): METADATA and CREATE_TOPICS name topics by both, also those that came and went
--   between two snapshots
-- key: cluster_id, event_time, topic_id
-- time: event_time
-- partitioning: event_date
-- facts: requests
-- relevant: api IN ('METADATA', 'DESCRIBE_TOPIC_PARTITIONS', 'CREATE_TOPICS')
-- bucket: 1 min
-- columns:
--   from topics: cluster_id
--   event_date DATE: UTC date of event_time
--   event_time TIMESTAMP: start of the minute
--   from topics: topic_id, topic
--   requests BIGINT: requests that have it; where topic_id is null those whose topics are not
--     known, since their body was capped

-- Which topic ids brokers sent for which topics, by minute. METADATA and CREATE_TOPICS answer with
-- both.
WITH answers AS (
    -- A row is a request, in its minute, with its parsed body.
    SELECT
        cluster_id, floored(event_time, 60) AS event_time, weight_of(weight) AS weight,
        from_json(json_or_null(body), '{
            "request": {"validateOnly": "BOOLEAN"},
            "response": {"topics": [{"name": "VARCHAR", "topicId": "VARCHAR"}]}
        }') AS body
    FROM requests
),
named AS (
    -- A row is a topic with name and id. A request that only validates has an id that no topic
    -- gets.
    SELECT
        cluster_id, event_time, weight, unnest(list_filter(
            body.response.topics,
            lambda t: t.name IS NOT NULL AND t."topicId" <> 'AAAAAAAAAAAAAAAAAAAAAA'
        )) AS topic
    FROM answers
    WHERE NOT coalesce(body.request."validateOnly", false)
    UNION ALL BY NAME
    -- Or a request whose body was too large to be kept.
    SELECT cluster_id, event_time, weight
    FROM answers
    WHERE NOT coalesce(body.request."validateOnly", false) AND body.response.topics IS NULL
)
SELECT
    cluster_id, CAST(event_time AS DATE) AS event_date, event_time, topic."topicId" AS topic_id,
    max(topic.name) AS topic, sum(weight) AS requests
FROM named
GROUP BY ALL
