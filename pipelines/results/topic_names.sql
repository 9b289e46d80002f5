-- Which topic ids brokers sent for which topics, by minute. METADATA and CREATE_TOPICS answer with
-- both.
WITH answers AS (
    -- A row is a request, in its minute, with its parsed body.
    SELECT
        cluster_id, floored(event_time, 60) AS event_time, from_json(json_or_null(body), '{
            "request": {"validateOnly": "BOOLEAN"},
            "response": {"topics": [{"name": "VARCHAR", "topicId": "VARCHAR"}]}
        }') AS body
    FROM requests
),
named AS (
    -- A row is a topic with name and id. A request that only validates has an id that no topic
    -- gets.
    SELECT
        cluster_id, event_time, unnest(list_filter(
            body.response.topics,
            lambda t: t.name IS NOT NULL AND t."topicId" <> 'AAAAAAAAAAAAAAAAAAAAAA'
        )) AS topic
    FROM answers
    WHERE NOT coalesce(body.request."validateOnly", false)
    UNION ALL BY NAME
    -- Or a request whose body was too large to be kept.
    SELECT cluster_id, event_time
    FROM answers
    WHERE NOT coalesce(body.request."validateOnly", false) AND body.response.topics IS NULL
)
SELECT
    cluster_id, CAST(event_time AS DATE) AS event_date, event_time, topic."topicId" AS topic_id,
    max(topic.name) AS topic, count(*) AS requests
FROM named
GROUP BY ALL
