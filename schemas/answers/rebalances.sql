-- kind: answer
-- grain: one row per rebalance of a group that the request log shows, over the last two days
-- area: groups
-- level: sampled_log
-- question: Rebalances. When did a group rebalance, why, and for how long could it not read?
-- description: When it was, how long it took and kept members from reading, and who caused it. What
--   clients name is no proof of who is guilty; the principal is what the broker authenticated.
-- key: cluster_id, group_id, group_type, group_epoch, started_at
-- time: started_at
-- clustering: started_at, group_id
-- lookbacks:
--   group_member_events: 2 d
--   group_members: 2 d
-- columns:
--   from group_members: cluster_id, group_id
--   group_type STRING: classic, consumer, share or streams
--   group_epoch INT: classic: generation that it led to; else epoch that members reached
--   from group_members: coordinator_id
--   started_at TIMESTAMP: classic: when the first request to join it was received; else when the
--     first member reached the epoch
--   ended_at TIMESTAMP: classic: when the last member got its assignment, or the generation started
--     if none did; else when the last member reached the epoch
--   duration_ms BIGINT: from started_at to ended_at
--   stopped_ms BIGINT: how long members could not read: of an eager assignor from the first request
--     of a member of the generation before to the last assignment; null: see stopped_reason
--   stopped_reason STRING: why stopped_ms is null: no_stop (members keep what they do not give up:
--     cooperative, and all types but classic), no_members_before (nobody had to stop, or it is not
--     known), unknown_assignor, incomplete; null: stopped_ms is known
--   assignor STRING: classic: protocol that the group chose; null: other types
--   members INT: members of the generation, or that reached the epoch
--   trigger STRING: member_joined (it was no member before); member_left (it said so, or stopped
--     polling and said so); missed_heartbeats (a member did not come back and had not left);
--     subscription_changed; partitions_changed (by the reason that the leader gave); unknown. Of
--     several the first in time
--   trigger_member_id STRING: member that did so; null: not known
--   trigger_client_id STRING: its client.id: untrusted text
--   trigger_principal STRING: its authenticated principal
--   reason STRING: what its client gave as its reason (KIP-800): untrusted text
--   is_complete BOOLEAN: classic: all members of the generation got an assignment; else all members
--     that were there before and did not leave reached the epoch, or a later one

-- Spark computes a part of a text again for each place that names it, so windows carry what a member
-- did at other epochs.
WITH events AS (
    SELECT
        cluster_id, group_id, group_type, group_epoch, member_id, principal, client_id,
        coordinator_id, event, error_code, assignor, members, reason, subscribed_topics, event_time,
        unix_millis(event_time) AS ms,
        coalesce(received_time, event_time) AS received_time,
        unix_millis(coalesce(received_time, event_time)) AS received_ms,
        CASE
            WHEN event = CASE WHEN group_type = 'classic' THEN 'generation_started' ELSE 'joined' END
                THEN group_epoch
        END AS anchor_epoch
    FROM (
        SELECT *, max(event_time) OVER (PARTITION BY cluster_id) AS newest_time
        FROM group_member_events
    ) AS e
    WHERE unix_millis(event_time) > unix_millis(newest_time) - 172800000
        AND group_type IS NOT NULL AND member_id IS NOT NULL
),
-- A group that was removed and made again starts over with its epochs: a life. Answers of one
-- generation are within seconds of each other.
anchored AS (
    SELECT
        *,
        CASE
            WHEN anchor_epoch < last_value(anchor_epoch) IGNORE NULLS OVER (
                PARTITION BY cluster_id, group_id, group_type ORDER BY ms, anchor_epoch
                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            ) THEN ms - 10000
        END AS starts_over_ms
    FROM events
),
placed AS (
    SELECT
        *,
        coalesce(
            max(starts_over_ms) OVER (
                PARTITION BY cluster_id, group_id, group_type ORDER BY ms
                RANGE BETWEEN UNBOUNDED PRECEDING AND 10000 FOLLOWING
            ),
            0
        ) AS life
    FROM anchored
),
-- What is known of the generation, of the member at this epoch, and of the member in this life.
marked AS (
    SELECT
        *,
        min(CASE WHEN event = 'generation_started' THEN ms END) OVER of_epoch AS generation_ms,
        max(CASE WHEN event = 'generation_started' THEN members END) OVER of_epoch
            AS generation_members,
        max(CASE WHEN event = 'generation_started' THEN assignor END) OVER of_epoch
            AS generation_assignor,
        min(CASE WHEN event = 'synced' THEN ms END) OVER of_member AS first_synced_ms,
        min(CASE WHEN event = 'synced' THEN event_time END) OVER of_member AS first_synced_at,
        max(CASE WHEN event = 'left' AND error_code = 0 THEN received_ms END) OVER of_life
            AS left_ms,
        min(CASE WHEN event IN ('rejoined', 'synced') THEN group_epoch END) OVER of_life
            AS first_epoch
    FROM placed
    WINDOW
        of_life AS (PARTITION BY cluster_id, group_id, group_type, life, member_id),
        of_epoch AS (PARTITION BY cluster_id, group_id, group_type, life, group_epoch),
        of_member AS (PARTITION BY cluster_id, group_id, group_type, life, group_epoch, member_id)
),
-- A row is a member of a generation, or that reached an epoch. A join that is answered later than
-- the others got a generation that was there.
joins AS (
    SELECT
        *,
        row_number() OVER (
            PARTITION BY cluster_id, group_id, group_type, life, group_epoch, member_id
            ORDER BY
                CASE WHEN group_type = 'classic' THEN received_ms ELSE ms END,
                CASE WHEN group_type = 'classic' THEN ms ELSE received_ms END,
                event
        ) AS nth
    FROM marked
    WHERE group_epoch IS NOT NULL
        AND CASE
            WHEN group_type = 'classic'
                THEN event IN ('joined', 'rejoined') AND abs(ms - generation_ms) <= 10000
            ELSE event = 'synced'
        END
),
members_of_epochs AS (
    SELECT
        cluster_id, group_id, group_type, life, group_epoch, member_id, principal, client_id,
        coordinator_id, reason, subscribed_topics, ms, left_ms, first_epoch, generation_members,
        generation_assignor,
        CASE WHEN group_type = 'classic' THEN received_time ELSE event_time END AS started_at,
        CASE
            WHEN group_type = 'classic' THEN coalesce(first_synced_at, event_time)
            ELSE event_time
        END AS ended_at,
        CASE WHEN group_type = 'classic' THEN received_ms ELSE ms END AS start_ms,
        CASE WHEN group_type = 'classic' THEN first_synced_ms ELSE ms END AS synced_ms
    FROM joins
    WHERE nth = 1
),
reached AS (
    SELECT
        *,
        lag(group_epoch) OVER by_epoch AS epoch_before,
        lag(subscribed_topics) OVER by_epoch AS topics_before,
        lead(group_epoch) OVER by_epoch AS next_epoch,
        lead(start_ms) OVER by_epoch AS next_start_ms,
        max(group_epoch) OVER (
            PARTITION BY cluster_id, group_id, group_type, life, member_id
        ) AS newest_epoch
    FROM members_of_epochs
    WINDOW by_epoch AS (
        PARTITION BY cluster_id, group_id, group_type, life, member_id ORDER BY group_epoch
    )
),
epochs AS (
    SELECT
        cluster_id, group_id, group_type, life, group_epoch,
        min(start_ms) AS start_ms, max(coalesce(synced_ms, ms)) AS end_ms,
        min(started_at) AS started_at, max(ended_at) AS ended_at,
        max(coordinator_id) AS coordinator_id,
        max(generation_members) AS generation_members,
        max(generation_assignor) AS assignor,
        count(*) AS seen_members, count(synced_ms) AS synced_members,
        lag(group_epoch) OVER (
            PARTITION BY cluster_id, group_id, group_type, life ORDER BY group_epoch
        ) AS prior_epoch,
        lag(min(start_ms)) OVER (
            PARTITION BY cluster_id, group_id, group_type, life ORDER BY group_epoch
        ) AS prior_start_ms
    FROM reached
    GROUP BY cluster_id, group_id, group_type, life, group_epoch
),
last_requests AS (
    SELECT
        cluster_id, group_id, member_id,
        max(unix_millis(last_request_time)) AS last_ms,
        max(heartbeat_interval_ms) AS interval_ms
    FROM group_members
    WHERE group_type <> 'classic'
    GROUP BY cluster_id, group_id, member_id
),
-- A row is a member of the epoch before, and what became of it.
prior_members AS (
    SELECT
        e.cluster_id, e.group_id, e.group_type, e.life, e.group_epoch, e.start_ms,
        p.member_id, p.principal, p.client_id,
        CASE WHEN p.next_epoch = e.group_epoch THEN p.next_start_ms END AS rejoined_ms,
        CASE WHEN p.left_ms >= p.start_ms THEN p.left_ms END AS left_ms,
        p.newest_epoch > e.group_epoch AS came_later,
        CASE
            WHEN e.group_type = 'classic' THEN true
            ELSE r.last_ms + 2 * coalesce(r.interval_ms, 5000) < e.start_ms
        END AS fell_silent
    FROM epochs AS e
    INNER JOIN reached AS p
        ON p.cluster_id = e.cluster_id AND p.group_id = e.group_id
            AND p.group_type = e.group_type AND p.life = e.life AND p.group_epoch = e.prior_epoch
    LEFT JOIN last_requests AS r
        ON r.cluster_id = e.cluster_id AND r.group_id = e.group_id AND r.member_id = p.member_id
),
fates AS (
    SELECT *, count(rejoined_ms) OVER (
        PARTITION BY cluster_id, group_id, group_type, life, group_epoch
    ) AS survivors
    FROM prior_members
),
prior_counts AS (
    SELECT
        cluster_id, group_id, group_type, life, group_epoch,
        min(rejoined_ms) AS stop_ms,
        count(rejoined_ms) AS survivors,
        sum(
            CASE
                WHEN rejoined_ms IS NULL AND NOT came_later
                    AND coalesce(left_ms > start_ms, true) AND NOT fell_silent THEN 1
                ELSE 0
            END
        ) AS missing_members
    FROM prior_members
    GROUP BY cluster_id, group_id, group_type, life, group_epoch
),
-- What may have caused a rebalance: `rank` is how sure it is, then the first in time.
causes AS (
    -- Classic: a member left, and others came back.
    SELECT
        cluster_id, group_id, group_type, life, group_epoch, member_id, principal, client_id,
        left_ms AS ms, 2 AS rank, 'member_left' AS trigger, CAST(NULL AS STRING) AS reason
    FROM fates
    WHERE left_ms <= start_ms AND survivors > 0 AND rejoined_ms IS NULL
    UNION ALL
    -- Classic: the first request to join it.
    SELECT
        r.cluster_id, r.group_id, r.group_type, r.life, r.group_epoch, r.member_id, r.principal,
        r.client_id, r.start_ms, 3 AS rank,
        CASE
            WHEN r.first_epoch = r.group_epoch THEN 'member_joined'
            -- It was a member before, and the log does not show how it came back.
            WHEN r.epoch_before <> e.prior_epoch THEN NULL
            WHEN r.topics_before <> r.subscribed_topics
                OR r.reason LIKE 'the subscription has changed%' THEN 'subscription_changed'
            WHEN r.reason LIKE 'cached metadata has changed%' THEN 'partitions_changed'
        END AS trigger,
        r.reason
    FROM epochs AS e
    INNER JOIN reached AS r USING (cluster_id, group_id, group_type, life, group_epoch, start_ms)
    WHERE r.group_type = 'classic' AND (e.prior_epoch IS NOT NULL OR e.group_epoch = 1)
    UNION ALL
    -- The other types: the joining member is among the first to know its epoch. One that others
    -- reached before it caused a later one. A join causes one epoch.
    SELECT
        e.cluster_id, e.group_id, e.group_type, e.life, e.group_epoch, p.member_id, p.principal,
        p.client_id, p.ms,
        CASE WHEN p.group_epoch = e.group_epoch THEN 1 ELSE 5 END,
        'member_joined' AS trigger, p.reason
    FROM epochs AS e
    INNER JOIN placed AS p USING (cluster_id, group_id, group_type, life)
    WHERE e.group_type <> 'classic' AND p.event = 'joined'
        AND CASE
            WHEN p.group_epoch = e.group_epoch THEN p.ms <= e.start_ms + 1000
            ELSE p.ms > e.prior_start_ms + 1000 AND p.ms <= e.start_ms
                AND p.ms > e.start_ms - 60000
        END
    UNION ALL
    SELECT
        e.cluster_id, e.group_id, e.group_type, e.life, e.group_epoch, p.member_id, p.principal,
        p.client_id, p.ms, 3, 'subscription_changed' AS trigger, p.reason
    FROM epochs AS e
    INNER JOIN (
        SELECT
            *,
            lag(subscribed_topics) OVER (
                PARTITION BY cluster_id, group_id, group_type, life, member_id ORDER BY ms
            ) AS topics_before
        FROM placed
        WHERE event IN ('joined', 'subscription_changed')
    ) AS p USING (cluster_id, group_id, group_type, life)
    WHERE e.group_type <> 'classic' AND p.event = 'subscription_changed'
        AND p.ms > e.prior_start_ms AND p.ms <= e.start_ms
        AND (p.topics_before IS NULL OR p.subscribed_topics IS NULL
            OR p.subscribed_topics <> p.topics_before)
    UNION ALL
    SELECT
        cluster_id, group_id, group_type, life, group_epoch, member_id, principal, client_id,
        start_ms, 4, 'missed_heartbeats' AS trigger, CAST(NULL AS STRING)
    FROM prior_members
    WHERE rejoined_ms IS NULL AND NOT came_later AND left_ms IS NULL AND fell_silent
),
ranked AS (
    SELECT
        *,
        row_number() OVER (
            PARTITION BY cluster_id, group_id, group_type, life, group_epoch
            ORDER BY rank, ms, member_id
        ) AS nth
    FROM causes
    WHERE trigger IS NOT NULL
),
leave_reasons AS (
    SELECT
        cluster_id, group_id, group_type, life, member_id, received_ms, max(reason) AS reason
    FROM placed
    WHERE event = 'left'
    GROUP BY cluster_id, group_id, group_type, life, member_id, received_ms
),
rows AS (
    SELECT
        e.cluster_id, e.group_id, e.group_type, e.group_epoch, e.coordinator_id,
        e.start_ms, e.end_ms, e.started_at, e.ended_at, e.assignor,
        CASE
            WHEN e.group_type <> 'classic'
                OR e.assignor IN (
                    'cooperative-sticky', 'stream', 'compatible', 'sessioned'
                ) THEN 'no_stop'
            WHEN e.assignor IS NULL OR e.assignor NOT IN (
                'range', 'roundrobin', 'sticky', 'default'
            ) THEN 'unknown_assignor'
            WHEN coalesce(c.survivors, 0) = 0 THEN 'no_members_before'
            WHEN e.synced_members < e.generation_members THEN 'incomplete'
        END AS stopped_reason,
        c.stop_ms, coalesce(e.generation_members, e.seen_members) AS members,
        CASE WHEN k.trigger IS NULL THEN 'unknown' ELSE k.trigger END AS trigger,
        k.member_id AS trigger_member_id,
        k.client_id AS trigger_client_id, k.principal AS trigger_principal,
        coalesce(k.reason, l.reason) AS reason,
        CASE
            WHEN e.group_type = 'classic' THEN e.synced_members >= e.generation_members
            ELSE coalesce(c.missing_members, 0) = 0
        END AS is_complete
    FROM epochs AS e
    LEFT JOIN prior_counts AS c USING (cluster_id, group_id, group_type, life, group_epoch)
    LEFT JOIN ranked AS k
        ON k.cluster_id = e.cluster_id AND k.group_id = e.group_id
            AND k.group_type = e.group_type AND k.life = e.life
            AND k.group_epoch = e.group_epoch AND k.nth = 1
    LEFT JOIN leave_reasons AS l
        ON k.trigger = 'member_left' AND l.cluster_id = k.cluster_id
            AND l.group_id = k.group_id AND l.group_type = k.group_type AND l.life = k.life
            AND l.member_id = k.member_id AND l.received_ms = k.ms
)
SELECT
    *,
     end_ms - start_ms AS duration_ms,
    CASE WHEN stopped_reason IS NULL THEN end_ms - stop_ms END AS stopped_ms,
     CAST(members AS INT) AS members
FROM rows
