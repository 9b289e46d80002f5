-- Requests of members of groups with their parsed bodies: a row per request, and for LEAVE_GROUP one
-- per member that leaves. `kind` is join, sync, heartbeat, leave or commit. Texts have at most the
-- 32,767 characters of Kafka's strings; a body has at most conf's size.
WITH parsed AS MATERIALIZED (
    SELECT
        * EXCLUDE (body, total_time_ms, throttle_time_ms, weight, group_id, api),
        left(group_id, 32_767) AS group_id, api,
        weight_of(weight) AS requests,
        event_time - to_milliseconds(total_time_ms) AS received_time,
        coalesce(CAST(round(throttle_time_ms) AS BIGINT), 0) AS throttle_time_ms,
        from_json(json_or_null(body), '{
            "request": {
                "memberId": "VARCHAR", "memberEpoch": "JSON", "generationId": "JSON",
                "generationIdOrMemberEpoch": "JSON",
                "groupInstanceId": "VARCHAR", "instanceId": "VARCHAR", "rackId": "VARCHAR",
                "sessionTimeoutMs": "JSON", "rebalanceTimeoutMs": "JSON",
                "protocolType": "VARCHAR", "reason": "VARCHAR",
                "protocols": [{"name": "VARCHAR", "metadata": "VARCHAR"}],
                "members": [{
                    "memberId": "VARCHAR", "groupInstanceId": "VARCHAR", "reason": "VARCHAR"}],
                "subscribedTopicNames": ["VARCHAR"], "subscribedTopicRegex": "VARCHAR",
                "serverAssignor": "VARCHAR", "processId": "VARCHAR",
                "topology": {"subtopologies": [{"sourceTopics": ["VARCHAR"]}]},
                "topics": [{"name": "VARCHAR", "topicId": "VARCHAR", "partitions": [
                    {"partitionIndex": "JSON", "committedOffset": "JSON"}]}]},
            "response": {
                "memberId": "VARCHAR", "memberEpoch": "JSON", "generationId": "JSON",
                "leader": "VARCHAR", "protocolName": "VARCHAR", "protocolType": "VARCHAR",
                "heartbeatIntervalMs": "JSON", "members": "JSON", "assignment": "JSON",
                "activeTasks": [{"subtopologyId": "VARCHAR", "partitions": ["JSON"]}],
                "standbyTasks": [{"subtopologyId": "VARCHAR", "partitions": ["JSON"]}],
                "warmupTasks": [{"subtopologyId": "VARCHAR", "partitions": ["JSON"]}],
                "topics": [{"name": "VARCHAR", "topicId": "VARCHAR", "partitions": [
                    {"partitionIndex": "JSON", "errorCode": "JSON"}]}]}
        }') AS parts
    FROM requests
    WHERE group_id IS NOT NULL
),
split AS (
    SELECT
        * EXCLUDE (parts), parts.request AS q, parts.response AS a,
        api IN ('OFFSET_COMMIT', 'TXN_OFFSET_COMMIT') AS is_commit,
        -- Epoch of heartbeats: 0 joins, -1 leaves, -2 leaves for a while.
        json_int(parts.request.memberEpoch) AS member_epoch,
        CASE
            WHEN api IN ('JOIN_GROUP', 'SYNC_GROUP', 'HEARTBEAT', 'LEAVE_GROUP') THEN 'classic'
            WHEN api = 'CONSUMER_GROUP_HEARTBEAT' THEN 'consumer'
            WHEN api = 'SHARE_GROUP_HEARTBEAT' THEN 'share'
            WHEN api = 'STREAMS_GROUP_HEARTBEAT' THEN 'streams'
        END AS group_type,
        -- Before version 3 LEAVE_GROUP names one member, and not in a list.
        CASE WHEN api = 'LEAVE_GROUP' THEN coalesce(parts.request.members, [{
            'memberId': parts.request.memberId, 'groupInstanceId': NULL, 'reason': NULL}]) END
            AS leaving,
        CASE WHEN api = 'LEAVE_GROUP' THEN from_json(
            parts.response.members,
            '[{"memberId": "VARCHAR", "groupInstanceId": "VARCHAR", "errorCode": "JSON"}]') END
            AS left_members
    FROM parsed
),
members AS (
    SELECT *, NULL AS leaver, 1 AS place FROM split WHERE leaving IS NULL
    UNION ALL BY NAME
    SELECT *, unnest(leaving) AS leaver, generate_subscripts(leaving, 1) AS place
    FROM split
    WHERE leaving IS NOT NULL
)
SELECT
    cluster_id, event_time, broker_id, api, group_id, principal, client_id, client_software_name,
    client_software_version, client_address, group_type, requests, received_time, throttle_time_ms,
    place, source_topic, source_partition, source_offset, source_line,
    -- The order of requests, as far as lines show one.
    {'event_time': event_time, 'source_topic': source_topic, 'source_partition': source_partition,
     'source_offset': source_offset, 'source_line': source_line, 'place': place} AS nth,
    CASE
        WHEN is_commit THEN 'commit'
        WHEN api = 'JOIN_GROUP' OR api <> 'LEAVE_GROUP' AND member_epoch = 0 THEN 'join'
        WHEN api = 'SYNC_GROUP' THEN 'sync'
        WHEN api = 'LEAVE_GROUP' OR member_epoch < 0 THEN 'leave'
        ELSE 'heartbeat'
    END AS kind,
    left(coalesce(
        nullif(q.memberId, ''), nullif(leaver.memberId, ''), nullif(a.memberId, '')), 32_767)
        AS member_id,
    nullif(q.memberId, '') IS NULL AS is_without_id,
    left(coalesce(q.groupInstanceId, leaver.groupInstanceId, q.instanceId), 32_767)
        AS group_instance_id,
    left(coalesce(q.reason, leaver.reason), 300) AS reason,
    left(nullif(q.rackId, ''), 32_767) AS rack_id,
    CASE
        WHEN is_commit THEN coalesce(
            [json_int(p.errorCode) FOR p IN flatten([t.partitions FOR t IN a.topics])
                IF json_int(p.errorCode) <> 0][1], error_code)
        ELSE coalesce(
            nullif(error_code, 0),
            json_int(list_filter(left_members, lambda m:
                coalesce(m.memberId, '') = coalesce(leaver.memberId, '')
                AND m.groupInstanceId IS NOT DISTINCT FROM leaver.groupInstanceId
            )[1].errorCode),
            error_code)
    END AS error_code,
    member_epoch,
    -- A refused request is answered with -1, or with 0.
    CASE WHEN coalesce(error_code, 0) = 0 THEN
        if(coalesce(json_int(a.generationId), json_int(a.memberEpoch)) >= 0,
            coalesce(json_int(a.generationId), json_int(a.memberEpoch)), NULL)
    END AS answered_epoch,
    if(coalesce(json_int(q.generationIdOrMemberEpoch), json_int(q.generationId), member_epoch) >= 0,
        coalesce(json_int(q.generationIdOrMemberEpoch), json_int(q.generationId), member_epoch),
        NULL) AS requested_epoch,
    if(json_int(q.sessionTimeoutMs) > 0, json_int(q.sessionTimeoutMs), NULL) AS session_timeout_ms,
    if(json_int(q.rebalanceTimeoutMs) > 0, json_int(q.rebalanceTimeoutMs), NULL)
        AS max_poll_interval_ms,
    if(json_int(a.heartbeatIntervalMs) > 0, json_int(a.heartbeatIntervalMs), NULL)
        AS heartbeat_interval_ms,
    left(coalesce(nullif(a.protocolName, ''), q.serverAssignor), 32_767) AS assignor,
    -- Members that the leader's answer lists; of other members the list is empty.
    CASE WHEN api = 'JOIN_GROUP' AND a.leader <> '' AND a.leader = a.memberId
        THEN CAST(json_array_length(a.members) AS INT) END AS listed_members,
    left(nullif(q.subscribedTopicRegex, ''), 32_767) AS subscribed_regex,
    left(q.processId, 32_767) AS process_id,
    -- A heartbeat that leaves names none.
    CASE WHEN kind <> 'leave' THEN list_sort(list_distinct(coalesce(
        q.subscribedTopicNames,
        flatten([s.sourceTopics FOR s IN q.topology.subtopologies])))) END AS named_topics,
    -- Bytes of Kafka's consumer protocol. All that a member offers have the same topics.
    CASE
        WHEN api = 'JOIN_GROUP' AND q.protocolType = 'consumer' THEN q.protocols[1].metadata
        WHEN api = 'SYNC_GROUP' AND coalesce(error_code, 0) = 0
            AND coalesce(a.protocolType, 'consumer') = 'consumer'
            THEN nullif(a.assignment ->> '$', '')
    END AS protocol_bytes,
    -- Partitions that the answer of a heartbeat assigns, with the ids of topics.
    CASE WHEN group_type IN ('consumer', 'share') AND json_type(a.assignment) = 'OBJECT' THEN
        from_json(
            a.assignment, '{"topicPartitions": [{"topicId": "VARCHAR", "partitions": ["JSON"]}]}'
        ).topicPartitions
    END AS assignment,
    CASE WHEN group_type = 'streams' THEN task_names(a.activeTasks) END AS active_tasks,
    CASE WHEN group_type = 'streams' THEN task_names(a.standbyTasks) END AS standby_tasks,
    CASE WHEN group_type = 'streams' THEN task_names(a.warmupTasks) END AS warmup_tasks,
    CASE WHEN is_commit THEN q.topics END AS requested_topics,
    CASE WHEN is_commit THEN a.topics END AS answered_topics
FROM members
