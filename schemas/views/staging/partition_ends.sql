-- kind: staging
-- grain: one row per partition and time at which its end is known
-- area: groups
-- level: admin_api
-- description: How far the records of partitions reach, and when: by snapshots, and by the answers to
--   FETCH of a request log. A snapshot stores only changes, so a change has a second row: the end
--   before it was still the end at the snapshot before. The last snapshot has a row too.
-- columns:
--   from partition_offsets: cluster_id, topic, partition
--   known_at: a time at which the partition ended there; of a request log the end of the minute; of a
--     snapshot when it began to read offsets: it reads the ends after those of all groups, so an end
--     may be seconds newer where there are many groups
--   end_offset: high watermark at that time
--   known_by: snapshot or fetches
WITH taken AS (
    SELECT * FROM snapshot_times WHERE table_name = 'partition_offsets'
),
changes AS (
    SELECT
        *,
        lag(log_end_offset) OVER series AS end_before,
        lead(event_time) OVER series AS changed_next
    FROM partition_offsets
    WINDOW series AS (PARTITION BY cluster_id, topic, partition ORDER BY event_time)
),
points AS (
    SELECT
        cluster_id,
        topic,
        partition,
        event_time AS known_at,
        log_end_offset AS end_offset,
        'snapshot' AS known_by
    FROM changes
    WHERE NOT is_removed
    UNION ALL
    SELECT
        changes.cluster_id,
        changes.topic,
        changes.partition,
        taken.taken_before AS known_at,
        changes.end_before AS end_offset,
        'snapshot' AS known_by
    FROM changes
    INNER JOIN taken
        ON changes.cluster_id = taken.cluster_id AND changes.event_time = taken.taken_at
    UNION ALL
    SELECT
        changes.cluster_id,
        changes.topic,
        changes.partition,
        taken.last_taken AS known_at,
        changes.log_end_offset AS end_offset,
        'snapshot' AS known_by
    FROM changes
    INNER JOIN taken
        ON changes.cluster_id = taken.cluster_id AND taken.taken_at = taken.last_taken
    WHERE changes.changed_next IS NULL AND NOT changes.is_removed
    UNION ALL
    SELECT
        cluster_id,
        topic,
        partition,
        event_time + INTERVAL '1' MINUTE AS known_at,
        max(max_high_watermark) AS end_offset,
        'fetches' AS known_by
    FROM replica_offsets
    GROUP BY cluster_id, topic, partition, event_time
)

SELECT
    *,
    max(known_by) AS known_by
FROM points
WHERE known_at IS NOT NULL AND end_offset IS NOT NULL AND topic IS NOT NULL
GROUP BY cluster_id, topic, partition, known_at, end_offset
