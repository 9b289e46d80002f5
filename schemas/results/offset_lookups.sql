-- kind: result
-- grain: one row per minute, client, broker, partition, position and error
-- area: racks
-- level: sampled_log
-- description: Offsets that clients and followers looked up (LIST_OFFSETS), and epochs they checked
--   (OFFSET_FOR_LEADER_EPOCH), one row {per}. A row without a topic counts requests whose body was
--   too long to keep
-- key: cluster_id, event_time, principal, client_id, replica_id, broker_id, api, topic, partition,
--   position, error_code
-- time: event_time
-- partitioning: event_date
-- facts: requests
-- relevant: api IN ('LIST_OFFSETS', 'OFFSET_FOR_LEADER_EPOCH')
-- bucket: 1 min
-- split_by: cluster_id, principal, client_id
-- columns:
--   from requests: cluster_id
--   event_date DATE: UTC date of event_time
--   event_time TIMESTAMP: start of the minute
--   from requests: principal, client_id
--   replica_id INT: node id of a follower; null for clients
--   broker_id INT: broker that answered
--   api STRING: LIST_OFFSETS or OFFSET_FOR_LEADER_EPOCH
--   topic STRING: name of the topic
--   partition INT: number of the partition
--   position STRING: what was requested: earliest, latest, max_timestamp, earliest_local,
--     latest_tiered, earliest_pending_upload, by_timestamp, unknown; epoch_end:
--     OFFSET_FOR_LEADER_EPOCH
--   error_code INT: error code of the partition's answer, 0 none; null: no answer
--   requests BIGINT: requests for it
--   last_offset BIGINT: offset of the last answer; null: none
--   diverged_answers BIGINT: epoch_end: answers that name another epoch than the request, or none:
--     the log was cut there (KIP-320); 0 for other positions

-- Offsets that clients and followers look up (LIST_OFFSETS), and epochs that they check
-- (OFFSET_FOR_LEADER_EPOCH), by minute. A body is JSON of the request and the response.
-- The two APIs name the same things differently.
WITH bodies AS (
    SELECT
        cluster_id, floored(event_time, 60) AS event_time, event_time AS answered_at,
        principal, client_id, broker_id, api, weight_of(weight) AS weight,
        from_json(json_or_null(body), '{
            "request": {"replicaId": "JSON", "topics": [{
                "name": "VARCHAR", "topic": "VARCHAR", "partitions": [{
                    "partitionIndex": "JSON", "partition": "JSON", "timestamp": "JSON",
                    "leaderEpoch": "JSON"}]}]},
            "response": {"topics": [{
                "name": "VARCHAR", "topic": "VARCHAR", "partitions": [{
                    "partitionIndex": "JSON", "partition": "JSON", "errorCode": "JSON",
                    "offset": "JSON", "endOffset": "JSON", "leaderEpoch": "JSON"}]}]}}') AS parts
    FROM requests
),
-- A row: a request, with a number that joins it with its partitions.
numbered AS MATERIALIZED (
    SELECT
        * EXCLUDE (parts),
        row_number() OVER () AS request_number,
        json_int(parts.request.replicaId) AS node_id,
        parts.request['topics'] AS requested_topics,
        parts.response['topics'] AS answered_topics,
        -- Too long to keep, or without the partitions that every request has.
        coalesce(
            list_bool_or([topic.partitions IS NULL FOR topic IN requested_topics]),
            requested_topics IS NULL) AS is_capped
    FROM bodies
),
-- A row: a partition that a request names.
requested AS (
    SELECT
        request_number,
        coalesce(topic.name, topic.topic) AS topic,
        coalesce(json_int(part.partitionIndex), json_int(part."partition")) AS "partition",
        json_bigint(part."timestamp") AS requested_time,
        json_int(part.leaderEpoch) AS epoch
    FROM (
        SELECT request_number, topic, unnest(topic.partitions) AS part
        FROM (
            SELECT request_number, unnest(requested_topics) AS topic
            FROM numbered
            WHERE NOT is_capped
        )
    )
),
-- A row: a partition of a response. Of two answers for one partition the first in order counts.
answered AS (
    SELECT
        request_number,
        coalesce(topic.name, topic.topic) AS topic,
        coalesce(json_int(part.partitionIndex), json_int(part."partition")) AS "partition",
        json_int(part.errorCode) AS error_code,
        json_int(part.leaderEpoch) AS epoch,
        nullif(coalesce(json_bigint(part."offset"), json_bigint(part.endOffset)), -1) AS "offset"
    FROM (
        SELECT request_number, topic, unnest(topic.partitions) AS part
        FROM (SELECT request_number, unnest(answered_topics) AS topic FROM numbered)
    )
    QUALIFY row_number() OVER (
        PARTITION BY request_number, topic, "partition"
        ORDER BY error_code NULLS FIRST, epoch NULLS FIRST, "offset" NULLS FIRST) = 1
),
-- A row: a partition that a request names, with its answer; or a capped request.
lookups AS (
    SELECT
        n.* EXCLUDE (requested_topics, answered_topics),
        q.topic, q."partition", a.error_code, a."offset",
        -- By timestamps below 0 of org.apache.kafka.common.requests.ListOffsetsRequest.
        CASE
            WHEN is_capped THEN NULL
            WHEN api = 'OFFSET_FOR_LEADER_EPOCH' THEN 'epoch_end'
            WHEN q.requested_time >= 0 THEN 'by_timestamp'
            WHEN q.requested_time = -1 THEN 'latest'
            WHEN q.requested_time = -2 THEN 'earliest'
            WHEN q.requested_time = -3 THEN 'max_timestamp'
            WHEN q.requested_time = -4 THEN 'earliest_local'
            WHEN q.requested_time = -5 THEN 'latest_tiered'
            WHEN q.requested_time = -6 THEN 'earliest_pending_upload'
            ELSE 'unknown'
        END AS position,
        -- The log was cut: it ends before the epoch, or has none.
        api = 'OFFSET_FOR_LEADER_EPOCH' AND a.error_code = 0
            AND (a."offset" IS NULL OR coalesce(a.epoch, -1) <> q.epoch) AS is_diverged
    FROM numbered n
    LEFT JOIN requested q USING (request_number)
    LEFT JOIN answered a
        ON a.request_number = q.request_number AND a.topic = q.topic
        AND a."partition" = q."partition"
    WHERE is_capped OR q.request_number IS NOT NULL
)
SELECT
    cluster_id, CAST(event_time AS DATE) AS event_date, event_time, principal, client_id,
    if(node_id >= 0, node_id, NULL) AS replica_id,
    broker_id, api, topic, "partition", position, error_code,
    sum(weight) AS requests,
    max({answered_at: answered_at, "offset": "offset"}) FILTER ("offset" IS NOT NULL)."offset"
        AS last_offset,
    coalesce(sum(weight) FILTER (is_diverged), 0) AS diverged_answers
FROM lookups
GROUP BY ALL
