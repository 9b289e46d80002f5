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
