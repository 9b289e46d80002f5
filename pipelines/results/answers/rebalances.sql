WITH newest AS (
    SELECT cluster_id, max(event_time) AS event_time FROM group_member_events GROUP BY cluster_id
),
events AS (
    SELECT
        e.cluster_id, e.group_id, e.group_type, e.group_epoch, e.member_id, e.principal,
        e.client_id, e.coordinator_id, e.event, e.error_code, e.assignor, e.members, e.reason,
        e.subscribed_topics, e.event_time,
        unix_millis(e.event_time) AS ms,
        coalesce(e.received_time, e.event_time) AS received_time,
        unix_millis(coalesce(e.received_time, e.event_time)) AS received_ms
    FROM group_member_events AS e
    INNER JOIN newest AS n ON n.cluster_id = e.cluster_id
    WHERE unix_millis(e.event_time) > unix_millis(n.event_time) - 172800000
        AND e.group_type IS NOT NULL AND e.member_id IS NOT NULL
),
-- A group that was removed and made again starts over with its epochs: a life. Answers of one
-- generation are within seconds of each other.
anchors AS (
    SELECT
        cluster_id, group_id, group_type, ms,
        group_epoch < lag(group_epoch) OVER (
            PARTITION BY cluster_id, group_id, group_type ORDER BY ms, group_epoch
        ) AS starts_over
    FROM events
    WHERE group_epoch IS NOT NULL
        AND event = CASE WHEN group_type = 'classic' THEN 'generation_started' ELSE 'joined' END
),
boundaries AS (
    SELECT cluster_id, group_id, group_type, ms - 10000 AS from_ms
    FROM anchors
    WHERE starts_over
    UNION ALL
    SELECT DISTINCT cluster_id, group_id, group_type, CAST(0 AS BIGINT)
    FROM events
),
lives AS (
    SELECT
        cluster_id, group_id, group_type, from_ms,
        coalesce(
            lead(from_ms) OVER (
                PARTITION BY cluster_id, group_id, group_type ORDER BY from_ms
            ),
            9000000000000000
        ) AS until_ms
    FROM boundaries
),
placed AS (
    SELECT e.*, l.from_ms AS life
    FROM events AS e
    INNER JOIN lives AS l
        ON l.cluster_id = e.cluster_id AND l.group_id = e.group_id AND l.group_type = e.group_type
            AND e.ms >= l.from_ms AND e.ms < l.until_ms
),
starts AS (
    SELECT
        cluster_id, group_id, group_type, life, group_epoch, min(ms) AS start_ms,
        max(members) AS members, max(assignor) AS assignor
    FROM placed
    WHERE event = 'generation_started' AND group_epoch IS NOT NULL
    GROUP BY cluster_id, group_id, group_type, life, group_epoch
),
-- The first assignment of each member at each epoch.
synced AS (
    SELECT
        cluster_id, group_id, group_type, life, group_epoch, member_id, min(ms) AS synced_ms,
        min(event_time) AS synced_at
    FROM placed
    WHERE event = 'synced' AND group_epoch IS NOT NULL
    GROUP BY cluster_id, group_id, group_type, life, group_epoch, member_id
),
-- A row is a member of a generation, or that reached an epoch. A join that is answered later than
-- the others got a generation that was there.
joins AS (
    SELECT
        p.*,
        row_number() OVER (
            PARTITION BY
                p.cluster_id, p.group_id, p.group_type, p.life, p.group_epoch, p.member_id
            ORDER BY p.received_ms, p.ms, p.event
        ) AS nth
    FROM placed AS p
    INNER JOIN starts AS s
        ON s.cluster_id = p.cluster_id AND s.group_id = p.group_id
            AND s.group_type = p.group_type AND s.life = p.life
            AND s.group_epoch = p.group_epoch AND abs(p.ms - s.start_ms) <= 10000
    WHERE p.group_type = 'classic' AND p.event IN ('joined', 'rejoined')
    UNION ALL
    SELECT
        p.*,
        row_number() OVER (
            PARTITION BY
                p.cluster_id, p.group_id, p.group_type, p.life, p.group_epoch, p.member_id
            ORDER BY p.ms, p.received_ms
        ) AS nth
    FROM placed AS p
    WHERE p.group_type <> 'classic' AND p.event = 'synced' AND p.group_epoch IS NOT NULL
),
reached AS (
    SELECT
        j.cluster_id, j.group_id, j.group_type, j.life, j.group_epoch, j.member_id, j.principal,
        j.client_id, j.coordinator_id, j.reason, j.subscribed_topics, j.ms,
        CASE WHEN j.group_type = 'classic' THEN j.received_time ELSE j.event_time END AS started_at,
        CASE
            WHEN j.group_type = 'classic' THEN coalesce(s.synced_at, j.event_time)
            ELSE j.event_time
        END AS ended_at,
        CASE WHEN j.group_type = 'classic' THEN j.received_ms ELSE j.ms END AS start_ms,
        CASE WHEN j.group_type = 'classic' THEN s.synced_ms ELSE j.ms END AS synced_ms
    FROM joins AS j
    LEFT JOIN synced AS s
        ON s.cluster_id = j.cluster_id AND s.group_id = j.group_id
            AND s.group_type = j.group_type AND s.life = j.life
            AND s.group_epoch = j.group_epoch AND s.member_id = j.member_id
    WHERE j.nth = 1
),
epochs AS (
    SELECT
        r.cluster_id, r.group_id, r.group_type, r.life, r.group_epoch,
        min(r.start_ms) AS start_ms, max(coalesce(r.synced_ms, r.ms)) AS end_ms,
        min(r.started_at) AS started_at, max(r.ended_at) AS ended_at,
        max(r.coordinator_id) AS coordinator_id,
        count(*) AS seen_members, count(r.synced_ms) AS synced_members,
        lag(r.group_epoch) OVER (
            PARTITION BY r.cluster_id, r.group_id, r.group_type, r.life ORDER BY r.group_epoch
        ) AS prior_epoch,
        lag(min(r.start_ms)) OVER (
            PARTITION BY r.cluster_id, r.group_id, r.group_type, r.life ORDER BY r.group_epoch
        ) AS prior_start_ms
    FROM reached AS r
    GROUP BY r.cluster_id, r.group_id, r.group_type, r.life, r.group_epoch
),
left_members AS (
    SELECT cluster_id, group_id, group_type, life, member_id, max(received_ms) AS left_ms
    FROM placed
    WHERE event = 'left' AND error_code = 0
    GROUP BY cluster_id, group_id, group_type, life, member_id
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
newest_epochs AS (
    SELECT cluster_id, group_id, group_type, life, member_id, max(group_epoch) AS newest_epoch
    FROM reached
    GROUP BY cluster_id, group_id, group_type, life, member_id
),
-- A row is a member of the epoch before, and what became of it.
prior_members AS (
    SELECT
        e.cluster_id, e.group_id, e.group_type, e.life, e.group_epoch, e.start_ms,
        p.member_id, p.principal, p.client_id, p.subscribed_topics,
        n.start_ms AS rejoined_ms, n.subscribed_topics AS new_topics, l.left_ms,
        h.newest_epoch > e.group_epoch AS came_later,
        CASE
            WHEN e.group_type = 'classic' THEN true
            ELSE r.last_ms + 2 * coalesce(r.interval_ms, 5000) < e.start_ms
        END AS fell_silent
    FROM epochs AS e
    INNER JOIN reached AS p
        ON p.cluster_id = e.cluster_id AND p.group_id = e.group_id
            AND p.group_type = e.group_type AND p.life = e.life AND p.group_epoch = e.prior_epoch
    LEFT JOIN reached AS n
        ON n.cluster_id = e.cluster_id AND n.group_id = e.group_id
            AND n.group_type = e.group_type AND n.life = e.life
            AND n.group_epoch = e.group_epoch AND n.member_id = p.member_id
    LEFT JOIN left_members AS l
        ON l.cluster_id = e.cluster_id AND l.group_id = e.group_id
            AND l.group_type = e.group_type AND l.life = e.life AND l.member_id = p.member_id
            AND l.left_ms >= p.start_ms
    LEFT JOIN newest_epochs AS h
        ON h.cluster_id = e.cluster_id AND h.group_id = e.group_id
            AND h.group_type = e.group_type AND h.life = e.life AND h.member_id = p.member_id
    LEFT JOIN last_requests AS r
        ON r.cluster_id = e.cluster_id AND r.group_id = e.group_id AND r.member_id = p.member_id
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
        p.cluster_id, p.group_id, p.group_type, p.life, p.group_epoch, p.member_id, p.principal,
        p.client_id, p.left_ms AS ms, 2 AS rank, 'member_left' AS trigger,
        CAST(NULL AS STRING) AS reason
    FROM prior_members AS p
    INNER JOIN prior_counts AS c
        ON c.cluster_id = p.cluster_id AND c.group_id = p.group_id
            AND c.group_type = p.group_type AND c.life = p.life
            AND c.group_epoch = p.group_epoch
    WHERE p.left_ms <= p.start_ms AND c.survivors > 0 AND p.rejoined_ms IS NULL
    UNION ALL
    -- Classic: the first request to join it.
    SELECT
        r.cluster_id, r.group_id, r.group_type, r.life, r.group_epoch, r.member_id, r.principal,
        r.client_id, r.start_ms, 3 AS rank,
        CASE
            WHEN p.member_id IS NULL THEN 'member_joined'
            WHEN p.subscribed_topics <> p.new_topics
                OR r.reason LIKE 'the subscription has changed%' THEN 'subscription_changed'
            WHEN r.reason LIKE 'cached metadata has changed%' THEN 'partitions_changed'
        END AS trigger,
        r.reason
    FROM epochs AS e
    INNER JOIN reached AS r
        ON r.cluster_id = e.cluster_id AND r.group_id = e.group_id
            AND r.group_type = e.group_type AND r.life = e.life
            AND r.group_epoch = e.group_epoch AND r.start_ms = e.start_ms
    LEFT JOIN prior_members AS p
        ON p.cluster_id = r.cluster_id AND p.group_id = r.group_id
            AND p.group_type = r.group_type AND p.life = r.life
            AND p.group_epoch = r.group_epoch AND p.member_id = r.member_id
    WHERE r.group_type = 'classic' AND (e.prior_epoch IS NOT NULL OR e.group_epoch = 1)
    UNION ALL
    -- The other types: the joining member is the first to know the epoch.
    SELECT
        e.cluster_id, e.group_id, e.group_type, e.life, e.group_epoch, p.member_id, p.principal,
        p.client_id, p.ms,
        CASE WHEN p.group_epoch = e.group_epoch THEN 1 ELSE 5 END,
        'member_joined' AS trigger, p.reason
    FROM epochs AS e
    INNER JOIN placed AS p
        ON p.cluster_id = e.cluster_id AND p.group_id = e.group_id
            AND p.group_type = e.group_type AND p.life = e.life
    WHERE e.group_type <> 'classic' AND p.event = 'joined'
        AND (
            p.group_epoch = e.group_epoch
            OR p.ms BETWEEN e.prior_start_ms AND e.start_ms AND p.ms > e.start_ms - 60000
        )
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
    ) AS p
        ON p.cluster_id = e.cluster_id AND p.group_id = e.group_id
            AND p.group_type = e.group_type AND p.life = e.life
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
        e.start_ms, e.end_ms, e.started_at, e.ended_at, s.assignor,
        CASE
            WHEN e.group_type <> 'classic'
                OR s.assignor IN (
                    'cooperative-sticky', 'stream', 'compatible', 'sessioned'
                ) THEN 'no_stop'
            WHEN s.assignor IS NULL OR s.assignor NOT IN (
                'range', 'roundrobin', 'sticky', 'default'
            ) THEN 'unknown_assignor'
            WHEN coalesce(c.survivors, 0) = 0 THEN 'no_members_before'
            WHEN e.synced_members < s.members THEN 'incomplete'
        END AS stopped_reason,
        c.stop_ms, coalesce(s.members, e.seen_members) AS members,
        CASE WHEN k.trigger IS NULL THEN 'unknown' ELSE k.trigger END AS trigger,
        k.member_id AS trigger_member_id,
        k.client_id AS trigger_client_id, k.principal AS trigger_principal,
        coalesce(k.reason, l.reason) AS reason,
        CASE
            WHEN e.group_type = 'classic' THEN e.synced_members >= s.members
            ELSE coalesce(c.missing_members, 0) = 0
        END AS is_complete
    FROM epochs AS e
    LEFT JOIN starts AS s
        ON s.cluster_id = e.cluster_id AND s.group_id = e.group_id
            AND s.group_type = e.group_type AND s.life = e.life
            AND s.group_epoch = e.group_epoch
    LEFT JOIN prior_counts AS c
        ON c.cluster_id = e.cluster_id AND c.group_id = e.group_id
            AND c.group_type = e.group_type AND c.life = e.life
            AND c.group_epoch = e.group_epoch
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
    cluster_id, group_id, group_type, group_epoch, coordinator_id,
    started_at, ended_at, end_ms - start_ms AS duration_ms,
    CASE WHEN stopped_reason IS NULL THEN end_ms - stop_ms END AS stopped_ms,
    stopped_reason, assignor, CAST(members AS INT) AS members, trigger, trigger_member_id,
    trigger_client_id, trigger_principal, reason, is_complete
FROM rows
