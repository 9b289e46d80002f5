-- kind: result
-- grain: one row per minute, member and client
-- area: groups
-- level: sampled_log
-- description: Members of groups and clients that commit for one, one row {per}, from the bodies of
--   requests. Other columns than counts are those of the newest request that has them. Without
--   bodies (ingest.without_body) a row has no member_id
-- key: cluster_id, event_time, group_id, member_id, principal, client_id
-- time: event_time
-- partitioning: event_date
-- facts: requests
-- relevant: group_id IS NOT NULL AND api IN ('JOIN_GROUP', 'SYNC_GROUP', 'HEARTBEAT',
--   'LEAVE_GROUP', 'CONSUMER_GROUP_HEARTBEAT', 'SHARE_GROUP_HEARTBEAT', 'STREAMS_GROUP_HEARTBEAT',
--   'OFFSET_COMMIT', 'TXN_OFFSET_COMMIT')
-- bucket: 1 min
-- split_by: cluster_id, kafka_string(group_id)
-- lookups:
--   topic_names: changes nothing
--   topics: changes nothing
-- unnamed:
--   group_members: ids of [part.topic_id FOR part IN assigned_partitions IF part.topic IS NULL]
--     where group_type <> 'classic' AND assigned_partitions IS NOT NULL
-- columns:
--   from requests: cluster_id
--   from topic_names: event_date, event_time
--   group_id STRING: id of the group as its client gave it: untrusted text
--   member_id STRING: id of the member; null: a client without one, such as a commit by hand or of
--     a consumer that assigns partitions itself
--   from requests: principal, client_id
--   group_type STRING: classic, consumer (KIP-848), share (KIP-932) or streams (KIP-1071), as the
--     requests show it; null: commits alone, which do not
--   group_instance_id STRING: group.instance.id of a static member; null: none was named
--   from requests: client_address
--   rack_id STRING: client.rack of the member, by its heartbeat or its subscription; null: none
--     named
--   from requests: client_software_name, client_software_version
--   coordinator_id INT: broker that answered: the group's coordinator
--   joins BIGINT: JOIN_GROUP requests, and heartbeats that join
--   syncs BIGINT: SYNC_GROUP requests
--   heartbeats BIGINT: heartbeats of any type, without those that join or leave
--   leaves BIGINT: LEAVE_GROUP requests, and heartbeats that leave
--   commits BIGINT: OFFSET_COMMIT and TXN_OFFSET_COMMIT requests
--   errors BIGINT: requests that failed: by the error of the answer, or of any partition of a
--     commit; without MEMBER_ID_REQUIRED, which gives a new member its id
--   rebalancing_answers BIGINT: of these, REBALANCE_IN_PROGRESS (27): join the group again
--   fenced_answers BIGINT: of these, the broker no longer takes the member for one:
--     ILLEGAL_GENERATION (22), UNKNOWN_MEMBER_ID (25), FENCED_INSTANCE_ID (82), FENCED_MEMBER_EPOCH
--     (110), UNRELEASED_INSTANCE_ID (111), STALE_MEMBER_EPOCH (113)
--   throttle_time_ms BIGINT: sum of the throttle times in its answers
--   group_epoch INT: classic: generation of the group; else epoch of the member, which follows the
--     group's; null: no answer names it
--   session_timeout_ms INT: classic: session.timeout.ms; null: no join names it
--   max_poll_interval_ms INT: rebalance timeout, which is max.poll.interval.ms in clients; null:
--     none was named
--   heartbeat_interval_ms INT: interval that the broker asked for; null: classic, whose clients
--     choose it
--   assignor STRING: classic: protocol that the group chose, such as range; consumer: assignor that
--     the member asks for; null: none was named
--   subscribed_topics ARRAY<STRING>: topics of the newest request that names some, sorted; of
--     Streams its source topics; null: none does, or its bytes cannot be read
--   subscribed_regex STRING: consumer: pattern of topics that it subscribes to; null: none was
--     named
--   assigned_partitions ARRAY<STRUCT<topic: STRING, topic_id: STRING, partition: INT>>: partitions
--     that the newest answer with an assignment gives it, sorted, each with the name or the id of
--     its topic; empty: none; null: no answer names them, or its bytes cannot be read
--   unreadable_protocols BIGINT: subscriptions and assignments whose bytes are not Kafka's consumer
--     protocol: of Kafka Connect, broken, or hidden by the privacy key
--   process_id STRING: streams: id of the process; null: none was named
--   active_tasks ARRAY<STRING>: streams: active tasks that the newest answer assigns, as
--     subtopology_partition, sorted; null: no answer names them
--   standby_tasks ARRAY<STRING>: streams: the same of standby tasks
--   warmup_tasks ARRAY<STRING>: streams: the same of warm-up tasks
--   last_request_time TIMESTAMP: when the broker completed its last request

-- Members of groups, and clients that commit for one, by minute.
WITH requested AS (
    SELECT
        r.* REPLACE (coalesce(r.rack_id, p.protocol_rack) AS rack_id),
        floored(r.event_time, 60) AS minute,
        coalesce(r.error_code, 0) NOT IN (0, 79) AS is_refused,
        coalesce(r.named_topics, p.protocol_topics) AS topics,
        p.is_readable,
        coalesce(p.protocol_partitions, flatten([
            [{'topic': CAST(NULL AS VARCHAR), 'topic_id': left(t.topicId, 32_767),
              'partition': json_int(n)} FOR n IN t.partitions]
            FOR t IN r.assignment])) AS assigned
    FROM group_requests r
    LEFT JOIN consumer_protocols p USING (api, protocol_bytes)
),
members AS MATERIALIZED (
    SELECT
        cluster_id, minute, group_id, member_id, principal, client_id,
        max(group_type) AS group_type,
        arg_max(group_instance_id, nth) AS group_instance_id,
        arg_max(client_address, nth) AS client_address,
        arg_max(rack_id, nth) AS rack_id,
        arg_max(client_software_name, nth) AS client_software_name,
        arg_max(client_software_version, nth) AS client_software_version,
        arg_max(broker_id, nth) AS coordinator_id,
        coalesce(sum(requests) FILTER (kind = 'join'), 0) AS joins,
        coalesce(sum(requests) FILTER (kind = 'sync'), 0) AS syncs,
        coalesce(sum(requests) FILTER (kind = 'heartbeat'), 0) AS heartbeats,
        coalesce(sum(requests) FILTER (kind = 'leave'), 0) AS leaves,
        coalesce(sum(requests) FILTER (kind = 'commit'), 0) AS commits,
        coalesce(sum(requests) FILTER (is_refused), 0) AS errors,
        coalesce(sum(requests) FILTER (error_code = 27), 0) AS rebalancing_answers,
        coalesce(sum(requests) FILTER (is_fenced(error_code) OR error_code = 25), 0)
            AS fenced_answers,
        sum(throttle_time_ms * requests) AS throttle_time_ms,
        arg_max(coalesce(answered_epoch, if(is_refused, NULL, requested_epoch)), nth)
            AS group_epoch,
        arg_max(session_timeout_ms, nth) AS session_timeout_ms,
        arg_max(max_poll_interval_ms, nth) AS max_poll_interval_ms,
        arg_max(heartbeat_interval_ms, nth) AS heartbeat_interval_ms,
        arg_max(assignor, nth) AS assignor,
        arg_max(topics, nth) AS subscribed_topics,
        arg_max(subscribed_regex, nth) AS subscribed_regex,
        arg_max(assigned, nth) AS assigned,
        count(*) FILTER (NOT is_readable) AS unreadable_protocols,
        arg_max(process_id, nth) AS process_id,
        arg_max(active_tasks, nth) AS active_tasks,
        arg_max(standby_tasks, nth) AS standby_tasks,
        arg_max(warmup_tasks, nth) AS warmup_tasks,
        max(event_time) AS last_request_time
    FROM requested
    GROUP BY ALL
),
numbered AS MATERIALIZED (SELECT *, row_number() OVER () AS member_number FROM members),
parts AS (
    SELECT cluster_id, member_number, unnest(part)
    FROM (SELECT cluster_id, member_number, unnest(assigned) AS part FROM numbered)
),
named AS (
    SELECT member_number, list_sort(list_distinct(list(
        {'topic': topic, 'topic_id': topic_id, 'partition': "partition"}))) AS assigned_partitions
    FROM with_names(parts, topics_by_id)
    GROUP BY member_number
)
SELECT
    m.*, CAST(m.minute AS DATE) AS event_date, m.minute AS event_time,
    coalesce(n.assigned_partitions, m.assigned) AS assigned_partitions
FROM numbered m
LEFT JOIN named n USING (member_number)
