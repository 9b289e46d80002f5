-- kind: mart
-- grain: one row per replica that a reassignment adds, as of the last snapshot
-- area: replication
-- level: admin_api
-- question: Moves by snapshots. How far is each move, where there is no request log?
-- description: How far each ongoing move is, by the sizes of logs in snapshots. Without a request log
--   nothing is known between two snapshots: reassignments and move_progress are finer, and have
--   who asked for a move.
-- empty: while nothing moves
-- columns:
--   from moving_replicas: cluster_id, topic, partition
--   replica_id: broker that is to have the replica
--   leader_id: leader of the partition; null: it has none
--   state: caught_up: the replica's log is as large as its leader's, so it waits for other replicas of the
--     move, or for its leader; moving; stalled: the replica did not grow since the snapshot before;
--     seen_once: one snapshot shows no pace
--   first_seen_at: time of the first snapshot that found the move
--   snapshot_time: time of the last snapshot of sizes
--   size_bytes: size of the new replica's log; null: it has none yet, or its broker did not answer
--   leader_size_bytes: size of the leader's log; null: not known
--   bytes_left: leader_size_bytes less size_bytes, at least 0
--   bytes_per_s: what the replica grew by per second since first_seen_at; null: seen_once, or its
--     log became smaller, as retention makes it
--   leader_bytes_per_s: the same of the leader's log: what is written in the meantime
--   eta_s: time until it has all at these two paces, in seconds; null: it has all, it does not catch up,
--     or no pace is known
WITH moves AS (
    SELECT cluster_id, topic, partition, broker_id, first_seen_at
    FROM (
        SELECT
            *,
            event_time AS first_seen_at,
            row_number() OVER (
                PARTITION BY cluster_id, topic, partition, broker_id ORDER BY event_time DESC
            ) AS age
        FROM moving_replicas
    ) AS aged
    WHERE age = 1 AND NOT is_removed AND role = 'adding'
),
snapshots AS (
    SELECT cluster_id, max(event_time) AS snapshot_time
    FROM (
        SELECT cluster_id, event_time FROM replica_sizes
        UNION ALL
        SELECT cluster_id, event_time FROM pipeline_progress
        WHERE job = 'snapshot' AND target = 'replica_sizes' AND outcome = 'in'
    ) AS taken
    GROUP BY cluster_id
),
leaders AS (
    SELECT cluster_id, topic, partition, min(broker_id) AS leader_id
    FROM current_replicas
    WHERE is_leader
    GROUP BY cluster_id, topic, partition
),
logs AS (
    SELECT
        sizes.*,
        row_number() OVER (
            PARTITION BY cluster_id, topic, partition, broker_id ORDER BY event_time DESC
        ) AS age
    FROM replica_sizes AS sizes
    LEFT SEMI JOIN moves USING (cluster_id, topic, partition)
    WHERE NOT is_future
),
sized AS (
    SELECT
        moves.*,
        leaders.leader_id,
        logs.broker_id AS log_broker_id,
        logs.event_time,
        logs.size_bytes,
        logs.age,
        logs.is_removed,
        -- What a log had before the move was found is its size then.
        row_number() OVER (
            PARTITION BY
                moves.cluster_id, moves.topic, moves.partition, moves.broker_id, logs.broker_id
            ORDER BY CASE WHEN logs.event_time <= moves.first_seen_at THEN 0 ELSE 1 END,
                CASE
                    WHEN logs.event_time <= moves.first_seen_at
                        THEN -unix_micros(logs.event_time)
                    ELSE unix_micros(logs.event_time)
                END
        ) AS from_start
    FROM moves
    LEFT JOIN leaders USING (cluster_id, topic, partition)
    LEFT JOIN logs
        ON moves.cluster_id = logs.cluster_id
            AND moves.topic = logs.topic
            AND moves.partition = logs.partition
            AND logs.broker_id IN (moves.broker_id, leaders.leader_id)
),
measured AS (
    SELECT
        cluster_id,
        topic,
        partition,
        broker_id,
        leader_id,
        first_seen_at,
        max(CASE WHEN log_broker_id = broker_id AND age = 1 AND NOT is_removed THEN size_bytes END)
            AS size_bytes,
        max(CASE WHEN log_broker_id = broker_id AND age = 1 THEN event_time END) AS changed_at,
        max(CASE WHEN log_broker_id = broker_id AND from_start = 1 THEN size_bytes END)
            AS first_size_bytes,
        max(CASE WHEN log_broker_id = broker_id AND from_start = 1 THEN event_time END)
            AS first_size_at,
        max(CASE WHEN log_broker_id = leader_id AND age = 1 AND NOT is_removed THEN size_bytes END)
            AS leader_size_bytes,
        max(CASE WHEN log_broker_id = leader_id AND from_start = 1 THEN size_bytes END)
            AS first_leader_size_bytes
    FROM sized
    GROUP BY cluster_id, topic, partition, broker_id, leader_id, first_seen_at
),
timed AS (
    SELECT
        measured.*,
        snapshots.snapshot_time,
        CASE
            WHEN unix_micros(snapshots.snapshot_time) > unix_micros(measured.first_seen_at)
                THEN (unix_micros(snapshots.snapshot_time) - unix_micros(measured.first_seen_at))
                    / 1e6
        END AS seconds,
        -- A log that no snapshot had before the move had nothing then.
        CASE
            WHEN measured.first_size_at > measured.first_seen_at THEN 0
            ELSE measured.first_size_bytes
        END AS start_bytes
    FROM measured
    LEFT JOIN snapshots USING (cluster_id)
),
paces AS (
    SELECT
        *,
        CASE WHEN size_bytes >= start_bytes THEN (size_bytes - start_bytes) / seconds END
            AS bytes_per_s,
        CASE
            WHEN leader_size_bytes >= first_leader_size_bytes
                THEN (leader_size_bytes - first_leader_size_bytes) / seconds
        END AS leader_bytes_per_s,
        CASE
            WHEN leader_size_bytes < size_bytes THEN 0
            ELSE leader_size_bytes - size_bytes
        END AS bytes_left
    FROM timed
)

SELECT
    *,
    broker_id AS replica_id,
    CASE
        WHEN bytes_left = 0 THEN 'caught_up'
        WHEN seconds IS NULL THEN 'seen_once'
        WHEN changed_at IS NULL OR changed_at < snapshot_time THEN 'stalled'
        ELSE 'moving'
    END AS state,
    CASE
        WHEN bytes_left > 0 AND changed_at >= snapshot_time AND bytes_per_s > leader_bytes_per_s
            THEN bytes_left / (bytes_per_s - leader_bytes_per_s)
    END AS eta_s
FROM paces
