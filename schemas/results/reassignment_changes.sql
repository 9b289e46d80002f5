-- kind: result
-- grain: one row per request, partition and replica
-- area: replication
-- level: sampled_log
-- description: Where requests place replicas (ALTER_PARTITION_REASSIGNMENTS) and which of them are
--   in sync (ALTER_PARTITION), one row {per}
-- key: cluster_id, event_time, broker_id, change, topic_id, topic, partition, replica_id
-- time: event_time
-- partitioning: event_date
-- facts: requests
-- relevant: api IN ('ALTER_PARTITION', 'ALTER_PARTITION_REASSIGNMENTS')
-- bucket: 1 min
-- split_by: cluster_id, broker_id
-- lookups:
--   topic_names: changes nothing
--   topics: changes nothing
-- unnamed:
--   reassignment_changes
-- columns:
--   from requests: cluster_id
--   from topic_names: event_date
--   event_time TIMESTAMP: when the broker completed the request
--   broker_id INT: broker or controller that answered
--   change STRING: requested: the partition is to have this replica; cancelled: its move is to
--     stop; in_sync: the leader requests this replica in the ISR; capped: a request too long to be
--     read here
--   topic_id STRING: id of the topic; null: requests have its name, and nothing has its id
--   topic STRING: name of the topic; null: no request, answer or snapshot has a name of topic_id
--     yet
--   from replicas: partition
--   replica_id INT: broker that is to have a replica, or that is in sync
--   place INT: of a requested replica: 0 the preferred leader; null else
--   error_code INT: answer for the partition: 0 done; 108 done, and it has another leader now
--   from requests: principal, client_id

-- Where requests place replicas, and which replicas they report in sync, from the requests' bodies.
WITH bodies AS (
    SELECT
        cluster_id, event_time, broker_id, principal, client_id,
        api = 'ALTER_PARTITION_REASSIGNMENTS' AS is_placement,
        from_json(json_or_null(body), '{
            "request": {"topics": [{"name": "VARCHAR", "topicId": "VARCHAR", "partitions": [{
                "partitionIndex": "JSON", "replicas": ["JSON"], "newIsr": ["JSON"],
                "newIsrWithEpochs": [{"brokerId": "JSON"}]
            }]}]},
            "response": {
                "errorCode": "JSON",
                "responses": [{"name": "VARCHAR", "partitions": [
                    {"partitionIndex": "JSON", "errorCode": "JSON"}]}],
                "topics": [{"topicId": "VARCHAR", "partitions": [
                    {"partitionIndex": "JSON", "errorCode": "JSON"}]}]
            }
        }') AS body
    FROM requests
),
-- One row per topic of a request; without a topic where the body is capped. A placement has topics
-- by name, ALTER_PARTITION has them by id.
each_topic AS (
    SELECT
        * EXCLUDE (topic), topic.partitions AS partitions,
        if(is_placement, topic.name, topic.topicId) AS named
    FROM (SELECT *, unnest(or_null(body.request.topics)) AS topic FROM bodies)
),
-- One row per partition of a request, with its replicas and its error code in the answer.
each_partition AS (
    SELECT
        *, json_int(part.partitionIndex) AS partition_id,
        -- Before version 2 of ALTER_PARTITION the ISR is plain broker ids.
        if(is_placement, part.replicas,
            coalesce([one.brokerId FOR one IN part.newIsrWithEpochs], part.newIsr)) AS replica_ids,
        if(is_placement,
            [answer.partitions FOR answer IN body.response.responses IF answer.name = named],
            [answer.partitions FOR answer IN body.response.topics IF answer.topicId = named]
        ) AS answers,
        [json_int(answer.errorCode) FOR answer IN flatten(answers)
            IF json_int(answer.partitionIndex) = partition_id][1] AS partition_error
    FROM (SELECT * EXCLUDE (partitions), unnest(or_null(partitions)) AS part FROM each_topic)
),
-- One row per replica of a partition; without a replica where there is none.
each_replica AS (
    SELECT
        *, unnest(or_null(range(len(replica_ids)))) AS place,
        CASE
            WHEN part IS NULL THEN 'capped'
            WHEN NOT is_placement THEN 'in_sync'
            WHEN coalesce(len(replica_ids), 0) = 0 THEN 'cancelled'
            ELSE 'requested'
        END AS change
    FROM each_partition
),
-- A request that comes twice counts once.
changes AS (
    SELECT
        cluster_id, CAST(event_time AS DATE) AS event_date, event_time, broker_id, change,
        if(is_placement, NULL, named) AS topic_id, if(is_placement, named, NULL) AS topic,
        partition_id AS "partition", json_int(replica_ids[place + 1]) AS replica_id,
        max(if(is_placement, place, NULL)) AS place,
        max(coalesce(partition_error, json_int(body.response.errorCode))) AS error_code,
        max(principal) AS principal, max(client_id) AS client_id
    FROM each_replica
    GROUP BY ALL
)
FROM with_names(changes, topics_by_id)
