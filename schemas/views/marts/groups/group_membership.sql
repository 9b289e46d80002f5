-- kind: mart
-- grain: one row per group, member and client that acted for it in the last day
-- area: groups
-- level: sampled_log
-- question: Members. Who is in each group, and from where?
-- description: Who is in a group, from where, with what, and what it reads, as far as requests show
--   it. A client without a member id commits for the group without being in it. Columns that are no
--   counts are the newest of the day.
-- columns:
--   from group_members: cluster_id, group_id, member_id, principal, client_id
--   state: active; left (it said so); removed (the broker no longer knew it); joining (it asked to
--     join, and no answer made it a member: a client that starts again leaves such ids behind);
--     silent (no request in the last two minutes in which the cluster has lines of groups)
--   group_type: as in group_members
--   group_instance_id: as in group_members
--   client_address: address it connected from last
--   rack_id: client.rack of the member; null: none named
--   client_software_name: client library (KIP-511)
--   client_software_version: its version (KIP-511)
--   coordinator_id: broker that answered last
--   group_epoch: classic: generation; else epoch of the member; null: no answer names it
--   assignor: protocol that the group chose, or the member asks for; null: none was named
--   session_timeout_ms: classic: session.timeout.ms, in ms; null: no join names it
--   max_poll_interval_ms: max.poll.interval.ms of the member, in ms; null: none was named
--   heartbeat_interval_ms: interval that the broker asked for, in ms; null: classic
--   subscribed_topics: topics it subscribes to, sorted; null: no request of the day names them
--   subscribed_regex: pattern of topics it subscribes to; null: none was named
--   assigned_partitions: partitions that it has, each with the name or the id of its topic; null: no
--     answer of the day names them
--   process_id: process of Kafka Streams, by its heartbeat or its client.id; null: not Streams
--   active_tasks: streams: its active tasks; null: no answer names them
--   standby_tasks: streams: its standby tasks; null: no answer names them
--   joins: requests to join in the day
--   heartbeats: heartbeats in the day
--   commits: commits in the day
--   errors: requests in the day that failed
--   rebalancing_answers: of these, answers that asked it to join again
--   fenced_answers: of these, answers that no longer took it for a member
--   throttle_time_ms: sum of its throttle times in the day, in ms
--   unreadable_protocols: subscriptions and assignments of the day that could not be read
--   first_seen: start of its first minute in the day
--   last_seen: when the broker completed its last request
WITH newest AS (
    SELECT cluster_id, max(event_time) AS newest_minute FROM group_members GROUP BY cluster_id
),
minutes AS (
    SELECT
        m.cluster_id, m.group_id, m.member_id, m.principal, m.client_id, n.newest_minute,
        m.event_time, m.last_request_time, m.joins, m.heartbeats, m.commits, m.errors,
        m.rebalancing_answers, m.fenced_answers, m.throttle_time_ms, m.unreadable_protocols,
        last_value(m.group_type) IGNORE NULLS OVER of_day AS group_type,
        last_value(m.group_instance_id) IGNORE NULLS OVER of_day AS group_instance_id,
        last_value(m.client_address) IGNORE NULLS OVER of_day AS client_address,
        last_value(m.rack_id) IGNORE NULLS OVER of_day AS rack_id,
        last_value(m.client_software_name) IGNORE NULLS OVER of_day AS client_software_name,
        last_value(m.client_software_version) IGNORE NULLS OVER of_day AS client_software_version,
        last_value(m.coordinator_id) IGNORE NULLS OVER of_day AS coordinator_id,
        last_value(m.group_epoch) IGNORE NULLS OVER of_day AS group_epoch,
        last_value(m.assignor) IGNORE NULLS OVER of_day AS assignor,
        last_value(m.session_timeout_ms) IGNORE NULLS OVER of_day AS session_timeout_ms,
        last_value(m.max_poll_interval_ms) IGNORE NULLS OVER of_day AS max_poll_interval_ms,
        last_value(m.heartbeat_interval_ms) IGNORE NULLS OVER of_day AS heartbeat_interval_ms,
        last_value(m.subscribed_topics) IGNORE NULLS OVER of_day AS subscribed_topics,
        last_value(m.subscribed_regex) IGNORE NULLS OVER of_day AS subscribed_regex,
        last_value(m.assigned_partitions) IGNORE NULLS OVER of_day AS assigned_partitions,
        last_value(m.process_id) IGNORE NULLS OVER of_day AS process_id,
        last_value(m.active_tasks) IGNORE NULLS OVER of_day AS active_tasks,
        last_value(m.standby_tasks) IGNORE NULLS OVER of_day AS standby_tasks,
        row_number() OVER (
            PARTITION BY m.cluster_id, m.group_id, m.member_id, m.principal, m.client_id
            ORDER BY m.event_time DESC
        ) AS nth
    FROM group_members AS m
    INNER JOIN newest AS n USING (cluster_id)
    WHERE unix_millis(m.event_time) > unix_millis(n.newest_minute) - 86400000
    WINDOW of_day AS (
        PARTITION BY m.cluster_id, m.group_id, m.member_id, m.principal, m.client_id
        ORDER BY m.event_time
        ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
    )
),
totals AS (
    SELECT
        cluster_id, group_id, member_id, principal, client_id,
        sum(joins) AS joins, sum(heartbeats) AS heartbeats, sum(commits) AS commits,
        sum(errors) AS errors, sum(rebalancing_answers) AS rebalancing_answers,
        sum(fenced_answers) AS fenced_answers, sum(throttle_time_ms) AS throttle_time_ms,
        sum(unreadable_protocols) AS unreadable_protocols, min(event_time) AS first_seen
    FROM minutes
    GROUP BY cluster_id, group_id, member_id, principal, client_id
),
ends AS (
    SELECT
        cluster_id, group_id, member_id,
        max(CASE WHEN event = 'left' AND error_code = 0 THEN event_time END) AS left_at,
        max(CASE WHEN event = 'expired_notice' THEN event_time END) AS removed_at,
        max(CASE WHEN event IN ('joined', 'rejoined', 'synced') THEN event_time END) AS joined_at
    FROM group_member_events
    GROUP BY cluster_id, group_id, member_id
)
SELECT
    m.cluster_id, m.group_id, m.member_id, m.principal, m.client_id,
    CASE
        WHEN e.left_at >= coalesce(e.joined_at, e.left_at)
            AND e.left_at >= coalesce(e.removed_at, e.left_at) THEN 'left'
        WHEN e.removed_at >= coalesce(e.joined_at, e.removed_at) THEN 'removed'
        WHEN e.joined_at IS NULL AND t.joins > 0 AND t.heartbeats = 0 AND t.commits = 0
            AND m.group_epoch IS NULL THEN 'joining'
        WHEN unix_millis(m.newest_minute) - unix_millis(m.event_time) >= 120000 THEN 'silent'
        ELSE 'active'
    END AS state,
    m.group_type, m.group_instance_id, m.client_address, m.rack_id, m.client_software_name,
    m.client_software_version, m.coordinator_id, m.group_epoch, m.assignor, m.session_timeout_ms,
    m.max_poll_interval_ms, m.heartbeat_interval_ms, m.subscribed_topics, m.subscribed_regex,
    m.assigned_partitions,
    coalesce(
        m.process_id,
        nullif(
            regexp_extract(
                m.client_id,
                '^.+-([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})-StreamThread-[0-9]+-consumer$',
                1
            ),
            ''
        )
    ) AS process_id,
    m.active_tasks, m.standby_tasks, t.joins, t.heartbeats, t.commits, t.errors,
    t.rebalancing_answers, t.fenced_answers, t.throttle_time_ms, t.unreadable_protocols,
    t.first_seen, m.last_request_time AS last_seen
FROM minutes AS m
LEFT JOIN ends AS e USING (cluster_id, group_id, member_id)
INNER JOIN totals AS t
    ON t.cluster_id = m.cluster_id AND t.group_id = m.group_id
        AND t.member_id IS NOT DISTINCT FROM m.member_id
        AND t.principal IS NOT DISTINCT FROM m.principal
        AND t.client_id IS NOT DISTINCT FROM m.client_id
WHERE m.nth = 1
