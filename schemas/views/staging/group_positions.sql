-- kind: staging
-- grain: one row per group, partition and time at which its position is known
-- area: groups
-- level: admin_api
-- description: How far groups read, and when: by snapshots of their offsets, and by commits in a
--   request log. As in partition_ends, a change has a second row for the snapshot before it, and the
--   last snapshot has a row too. Share groups have the offset that they start at: records after it
--   may be done. Clocks of brokers differ: a commit is left out if another clock shows, within the five
--   minutes before, a later generation or, of the same one, a greater position.
-- columns:
--   from group_offsets: cluster_id, group_id
--   group_type: classic, consumer, share or streams; null: known by a commit
--   from group_offsets: topic, partition
--   known_at: a time at which the group was there; of a commit by the coordinator's clock
--   position: committed offset; of a share group its start offset
--   from group_offsets: reported_lag
WITH taken AS (
    SELECT * FROM snapshot_times WHERE table_name = 'group_offsets'
),
offsets AS (
    SELECT
        *,
        coalesce(committed_offset, start_offset) AS position
    FROM group_offsets
),
changes AS (
    SELECT
        *,
        lag(position) OVER series AS position_before,
        lag(reported_lag) OVER series AS lag_before,
        lag(group_type) OVER series AS type_before,
        lead(event_time) OVER series AS changed_next
    FROM offsets
    WINDOW series AS (PARTITION BY cluster_id, group_id, topic, partition ORDER BY event_time)
),
seen AS (
    SELECT
        cluster_id,
        group_id,
        group_type,
        topic,
        partition,
        event_time AS known_at,
        position,
        reported_lag
    FROM changes
    WHERE NOT is_removed
    UNION ALL
    SELECT
        changes.cluster_id,
        changes.group_id,
        changes.type_before AS group_type,
        changes.topic,
        changes.partition,
        taken.taken_before AS known_at,
        changes.position_before AS position,
        changes.lag_before AS reported_lag
    FROM changes
    INNER JOIN taken
        ON changes.cluster_id = taken.cluster_id AND changes.event_time = taken.taken_at
    WHERE changes.position_before IS NOT NULL
    UNION ALL
    SELECT
        changes.cluster_id,
        changes.group_id,
        changes.group_type,
        changes.topic,
        changes.partition,
        taken.last_taken AS known_at,
        changes.position,
        changes.reported_lag
    FROM changes
    INNER JOIN taken
        ON changes.cluster_id = taken.cluster_id AND taken.taken_at = taken.last_taken
    WHERE changes.changed_next IS NULL AND NOT changes.is_removed
),
points AS (
    SELECT
        *,
        -1 AS clock,
        CAST(NULL AS INT) AS group_epoch,
        CAST(NULL AS STRING) AS member_id
    FROM seen
    UNION ALL
    SELECT
        cluster_id,
        group_id,
        CAST(NULL AS STRING) AS group_type,
        topic,
        partition,
        last_commit_time AS known_at,
        last_offset AS position,
        CAST(NULL AS BIGINT) AS reported_lag,
        coordinator_id AS clock,
        group_epoch,
        member_id
    FROM group_commits
    WHERE topic IS NOT NULL
),
removed AS (
    SELECT
        cluster_id,
        group_id,
        topic,
        partition,
        max(event_time) AS removed_at
    FROM changes
    WHERE is_removed AND changed_next IS NULL
    GROUP BY cluster_id, group_id, topic, partition
),
-- What snapshots and coordinators said in the five minutes before.
compared AS (
    SELECT
        *,
        max(position) OVER five_minutes AS furthest,
        min(clock) OVER five_minutes AS first_clock,
        max(clock) OVER five_minutes AS last_clock,
        min(group_epoch) OVER five_minutes AS first_epoch,
        max(group_epoch) OVER five_minutes AS last_epoch
    FROM points
    WHERE known_at IS NOT NULL AND position IS NOT NULL
    WINDOW five_minutes AS (
        PARTITION BY cluster_id, group_id, topic, partition ORDER BY unix_micros(known_at)
        RANGE BETWEEN 300000000 PRECEDING AND CURRENT ROW
    )
)

SELECT DISTINCT
    points.cluster_id,
    points.group_id,
    points.group_type,
    points.topic,
    points.partition,
    points.known_at,
    points.position,
    points.reported_lag
FROM compared AS points
LEFT ANTI JOIN removed
    ON points.cluster_id = removed.cluster_id
    AND points.group_id = removed.group_id
    AND points.topic = removed.topic
    AND points.partition = removed.partition
    AND points.known_at <= removed.removed_at
WHERE NOT coalesce(
    clock >= 0 AND first_clock < last_clock AND CASE
        WHEN group_epoch < last_epoch THEN true
        -- Who resets the offsets of a group after a snapshot is no member.
        ELSE coalesce(first_epoch = last_epoch, true) AND furthest > position
            AND (first_clock >= 0 OR member_id IS NOT NULL)
    END, false
)
