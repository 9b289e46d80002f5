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
