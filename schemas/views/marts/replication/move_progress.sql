-- kind: mart
-- grain: one row per ten seconds and replica that a move adds, while the replica is behind
-- area: replication
-- level: sampled_log
-- description: The progress of each move (reassignments) step by step: what was left, how fast it came,
--   and the estimate at that time beside the real time it took.
-- columns:
--   from reassignments: cluster_id, topic, partition, replica_id
--   leader_id: leader that the replica fetches from
--   from replica_lag: event_time
--   from reassignments: requested_by
--   offsets_left: offsets that the replica was behind the high watermark
--   bytes_left: offsets_left times the mean size of all records that came, in bytes; null: not known
--   bytes_per_s: record bytes that came since the row before, per second; null at the first row
--   eta_s: time until the replica is in sync at the pace since the row before, in seconds; null: it
--     came no nearer
--   took_s: time until it was really in sync, in seconds; null: it is not yet
WITH intervals AS (
    SELECT
        moves.cluster_id,
        moves.topic,
        moves.partition,
        moves.replica_id,
        moves.requested_by,
        moves.joined_time,
        late.broker_id AS leader_id,
        late.event_time,
        late.last_time,
        late.bytes,
        late.lag AS offsets_left,
        row_number() OVER (
            PARTITION BY moves.cluster_id, moves.topic, moves.partition, moves.replica_id
            ORDER BY late.last_time
        ) AS nth,
        sum(late.bytes) OVER of_move AS bytes_in_all,
        -- What the last answer brought shows in no offset yet.
        last_value(late.last_bytes) OVER (
            PARTITION BY moves.cluster_id, moves.topic, moves.partition, moves.replica_id
            ORDER BY late.last_time
            ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
        ) AS last_bytes,
        max(late.last_offset) OVER of_move - min(late.first_offset) OVER of_move AS offsets
    FROM reassignments AS moves
    INNER JOIN topic_ids USING (cluster_id, topic)
    INNER JOIN replica_lag AS late USING (cluster_id, topic_id, partition, replica_id)
    -- A replica that was in sync before has nothing to copy, even if it falls behind later.
    WHERE
        moves.state <> 'in_place'
        AND late.last_time >= moves.requested_time
        AND (moves.joined_time IS NULL OR late.last_time <= moves.joined_time)
    WINDOW of_move AS (
        PARTITION BY moves.cluster_id, moves.topic, moves.partition, moves.replica_id
    )
),
steps AS (
    SELECT
        intervals.*,
        former.offsets_left - intervals.offsets_left AS offsets_nearer,
        (unix_micros(intervals.last_time) - unix_micros(former.last_time)) / 1e6 AS seconds
    FROM intervals
    LEFT JOIN intervals AS former
        ON intervals.cluster_id = former.cluster_id
            AND intervals.topic = former.topic
            AND intervals.partition = former.partition
            AND intervals.replica_id = former.replica_id
            AND intervals.nth = former.nth + 1
)

SELECT
    *,
    offsets_left * 1e0 * (bytes_in_all - last_bytes) / nullif(offsets, 0) AS bytes_left,
    bytes / nullif(seconds, 0e0) AS bytes_per_s,
    CASE WHEN offsets_nearer > 0 THEN offsets_left * seconds / offsets_nearer END AS eta_s,
    (unix_micros(joined_time) - unix_micros(last_time)) / 1e6 AS took_s
FROM steps
