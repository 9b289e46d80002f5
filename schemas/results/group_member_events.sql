-- kind: result
-- grain: one row per event
-- area: groups
-- level: sampled_log
-- question: Events of members. Who joined, left or was removed from each group, and when?
-- description: What became of members of groups, one row {per}, from the bodies of requests.
--   Refused requests are one row per minute, member, client, API and error
-- key: cluster_id, source_topic, source_partition, source_offset, source_line, position
-- time: event_time
-- partitioning: event_date
-- facts: requests
-- relevant: group_id IS NOT NULL AND api IN ('JOIN_GROUP', 'SYNC_GROUP', 'HEARTBEAT',
--   'LEAVE_GROUP', 'CONSUMER_GROUP_HEARTBEAT', 'SHARE_GROUP_HEARTBEAT', 'STREAMS_GROUP_HEARTBEAT',
--   'OFFSET_COMMIT', 'TXN_OFFSET_COMMIT')
-- bucket: 1 min
-- split_by: cluster_id, kafka_string(group_id)
-- columns:
--   from requests: cluster_id
--   event_date DATE: UTC date of event_time
--   event_time TIMESTAMP: when the broker completed the request
--   group_id STRING: id of the group as its client gave it: untrusted text
--   group_type STRING: classic, consumer (KIP-848), share (KIP-932) or streams (KIP-1071), as the
--     requests show it; null: commits alone, which do not
--   member_id STRING: id of the member; null: a client without one, such as a commit by hand or of
--     a consumer that assigns partitions itself
--   group_instance_id STRING: group.instance.id of a static member; null: none was named
--   from requests: principal, client_id, client_address
--   coordinator_id INT: broker that answered: the group's coordinator
--   api STRING: API of the request
--   event STRING: joined (a new member: it got its id, or joined at epoch 0); rejoined (JOIN_GROUP
--     with an id was answered with a generation; so does a new member that just got its id);
--     generation_started (the leader's answer to that: all members are there); synced (it got its
--     assignment of group_epoch, or reached that epoch); assignment_changed (an answer assigns
--     partitions or tasks); subscription_changed (a heartbeat of a member names topics: they
--     changed, or it repeats them after an error); left; left_temporarily (a static member that is
--     to come back); fenced (refused by its generation, epoch or instance); expired_notice
--     (UNKNOWN_MEMBER_ID: the broker removed it)
--   group_epoch INT: classic: generation of the group; else epoch of the member, which follows the
--     group's; null: no answer names it
--   reason STRING: what the client gave as its reason (KIP-800): untrusted text
--   error_code INT: error code of the answer, 0 none
--   received_time TIMESTAMP: when the broker received the request, by the time it took: a join
--     waits for the others; null: the line has no time
--   requests BIGINT: requests of the row, 1 except for refused ones
--   assignor STRING: classic: protocol that the group chose, such as range; consumer: assignor that
--     the member asks for; null: none was named
--   members INT: generation_started: members of the generation; null: other events
--   subscribed_topics ARRAY<STRING>: topics of the newest request that names some, sorted; of
--     Streams its source topics; null: none does, or its bytes cannot be read
--   partitions INT: assignment_changed: number of partitions or tasks assigned; null: other events,
--     or bytes that cannot be read
--   position INT: place of the event in its request
--   from requests: source_topic, source_partition, source_offset
--   source_line INT: number of the line in its record; null: the record is one

-- What became of members of groups. An answer may show several events: `position` is their order.
WITH read AS (
    SELECT
        r.* REPLACE (coalesce(r.error_code, 0) AS error_code),
        coalesce(r.named_topics, p.protocol_topics) AS subscribed_topics,
        p.protocol_partitions, p.is_readable
    FROM group_requests r
    LEFT JOIN consumer_protocols p USING (api, protocol_bytes)
),
refused AS (
    -- A client may repeat what is refused a thousand times a second: a row per minute.
    SELECT
        * REPLACE (sum(requests) OVER of_minute AS requests),
        if(error_code = 25, 'expired_notice', 'fenced') AS event, 0 AS nth_event
    FROM read
    WHERE error_code = 25 OR is_fenced(error_code)
    WINDOW of_minute AS (
        PARTITION BY cluster_id, group_id, member_id, principal, client_id, client_address, api,
            error_code, floored(event_time, 60))
    QUALIFY row_number() OVER (
        PARTITION BY cluster_id, group_id, member_id, principal, client_id, client_address, api,
            error_code, floored(event_time, 60)
        ORDER BY nth) = 1
),
taken AS (
    SELECT *, unnest([
        -- The order of events of one answer.
        CASE WHEN kind = 'join' AND is_new THEN 'joined' END,
        CASE WHEN api = 'JOIN_GROUP' AND NOT is_new THEN 'rejoined' END,
        CASE WHEN listed_members > 0 THEN 'generation_started' END,
        CASE
            WHEN kind = 'leave' THEN if(member_epoch = -2, 'left_temporarily', 'left')
        END,
        CASE WHEN kind = 'heartbeat' AND (
            named_topics IS NOT NULL OR subscribed_regex IS NOT NULL)
            THEN 'subscription_changed' END,
        CASE WHEN kind = 'sync' OR kind IN ('join', 'heartbeat') AND group_type <> 'classic'
            AND answered_epoch > member_epoch THEN 'synced' END,
        CASE WHEN protocol_bytes IS NOT NULL AND kind = 'sync' OR assignment IS NOT NULL
            OR active_tasks IS NOT NULL THEN 'assignment_changed' END
    ]) AS event, unnest(range(1, 8)) AS nth_event
    FROM (
        SELECT *, error_code = 79 OR api <> 'JOIN_GROUP' OR is_without_id AS is_new
        FROM read
        WHERE error_code = 0 AND kind <> 'commit' OR error_code = 79
    )
),
events AS (
    SELECT * FROM refused
    UNION ALL BY NAME
    SELECT * EXCLUDE (is_new) FROM taken WHERE event IS NOT NULL
)
SELECT
    cluster_id, CAST(event_time AS DATE) AS event_date, event_time, group_id, group_type, member_id,
    group_instance_id, principal, client_id, client_address, broker_id AS coordinator_id, api, event,
    coalesce(answered_epoch, requested_epoch) AS group_epoch,
    reason, error_code, received_time, requests,
    if(event IN ('generation_started', 'joined', 'rejoined'), assignor, NULL) AS assignor,
    if(event = 'generation_started', listed_members, NULL) AS members,
    if(event IN ('joined', 'rejoined', 'subscription_changed'), subscribed_topics, NULL)
        AS subscribed_topics,
    CASE WHEN event = 'assignment_changed' THEN coalesce(
        len(protocol_partitions), list_sum([len(t.partitions) FOR t IN assignment]),
        len(active_tasks), if(assignment IS NOT NULL, 0, NULL)) END AS partitions,
    (place - 1) * 8 + nth_event AS position,
    source_topic, source_partition, source_offset, source_line
FROM events
