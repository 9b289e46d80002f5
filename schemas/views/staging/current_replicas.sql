-- kind: staging
-- grain: one row per replica of a partition
-- area: cluster
-- level: admin_api
-- question: Replicas. Which broker and rack has which replica, is it in sync, and since when?
-- description: The state of each replica in the last snapshot, and what the request log has about when
--   it came to be in sync, or out of sync.
-- history: reassignment_changes
-- columns:
--   from replicas: cluster_id, topic_id, topic, partition, broker_id, is_preferred, is_leader,
--     is_in_sync, is_offline
--   valid_from: time of the snapshot that saw this state first: it began before
--   since: when is_in_sync became so: when a leader requested it (ALTER_PARTITION), or of a replica that
--     a move adds when the move was requested; null: see since_unknown
--   since_unknown: why since is null, as a code: no_request (the request log does not show it) or
--     changed_later (a request after valid_from says otherwise); null: since is known
--   move_role: what an ongoing move does with the replica: adding or removing; null: nothing
--   rack: broker.rack of its broker; null: it has none, or the broker is not registered
--   partition_racks: different racks of the replicas of the partition: 1 with several replicas means
--     that the loss of one rack takes all of them; null: the rack of one of them is not known
WITH states AS (
    SELECT
        *,
        event_time AS valid_from,
        row_number() OVER (
            PARTITION BY cluster_id, topic_id, partition, broker_id ORDER BY event_time DESC
        ) AS age,
        lead(event_time) OVER (
            PARTITION BY cluster_id, topic_id, partition, broker_id ORDER BY event_time
        ) AS valid_to,
        min(event_time) OVER (PARTITION BY cluster_id, topic_id, partition) AS partition_seen
    FROM replicas
),
latest AS (
    SELECT * FROM states WHERE age = 1 AND NOT is_removed
),
moves AS (
    SELECT cluster_id, topic, partition, broker_id, role AS move_role
    FROM (
        SELECT
            *,
            row_number() OVER (
                PARTITION BY cluster_id, topic, partition, broker_id ORDER BY event_time DESC
            ) AS age
        FROM moving_replicas
    ) AS aged
    WHERE age = 1 AND NOT is_removed
),
placements AS (
    SELECT
        cluster_id, topic, partition, replica_id AS broker_id, max(event_time) AS requested_at
    FROM reassignment_changes
    WHERE change = 'requested' AND error_code = 0
    GROUP BY cluster_id, topic, partition, replica_id
),
-- A replica is new to a move that was requested when snapshots knew the partition without it.
placed AS (
    SELECT
        states.cluster_id,
        states.topic_id,
        states.partition,
        states.broker_id,
        max(placements.requested_at) AS requested_at,
        NOT bool_or(
            NOT (
                states.partition_seen <= placements.requested_at
                AND (
                    states.is_removed
                    OR states.event_time > placements.requested_at
                    OR coalesce(states.valid_to <= placements.requested_at, FALSE)
                )
            )
        ) AS is_new
    FROM states
    INNER JOIN placements USING (cluster_id, topic, partition, broker_id)
    GROUP BY states.cluster_id, states.topic_id, states.partition, states.broker_id
),
reports AS (
    SELECT cluster_id, topic_id, partition, event_time, array_agg(DISTINCT replica_id) AS nodes
    FROM reassignment_changes
    WHERE change = 'in_sync' AND error_code IN (0, 108)
    GROUP BY cluster_id, topic_id, partition, event_time
),
reported AS (
    SELECT
        latest.cluster_id,
        latest.topic_id,
        latest.partition,
        latest.broker_id,
        reports.event_time,
        array_contains(reports.nodes, latest.broker_id) AS was_in
    FROM latest
    INNER JOIN reports USING (cluster_id, topic_id, partition)
),
in_order AS (
    SELECT
        *,
        lag(was_in) OVER (
            PARTITION BY cluster_id, topic_id, partition, broker_id ORDER BY event_time
        ) AS was_in_before,
        row_number() OVER (
            PARTITION BY cluster_id, topic_id, partition, broker_id ORDER BY event_time DESC
        ) AS nth
    FROM reported
),
logged AS (
    SELECT
        cluster_id,
        topic_id,
        partition,
        broker_id,
        bool_or(CASE WHEN nth = 1 THEN was_in END) AS is_in,
        max(event_time) AS reported_at,
        min(CASE WHEN was_in THEN event_time END) AS first_in_at,
        max(CASE WHEN was_in <> was_in_before THEN event_time END) AS changed_at
    FROM in_order
    GROUP BY cluster_id, topic_id, partition, broker_id
),
racks AS (
    SELECT cluster_id, broker_id, rack
    FROM (
        SELECT
            *,
            row_number() OVER (PARTITION BY cluster_id, broker_id ORDER BY event_time DESC) AS age
        FROM brokers
    ) AS aged
    WHERE age = 1 AND NOT is_removed
),
partition_racks AS (
    SELECT
        latest.cluster_id,
        latest.topic_id,
        latest.partition,
        CASE WHEN count(racks.rack) = count(*) THEN count(DISTINCT racks.rack) END
            AS partition_racks
    FROM latest
    LEFT JOIN racks USING (cluster_id, broker_id)
    GROUP BY latest.cluster_id, latest.topic_id, latest.partition
),
timed AS (
    SELECT
        latest.*,
        racks.rack,
        partition_racks.partition_racks,
        moves.move_role,
        logged.is_in <> latest.is_in_sync AND logged.reported_at > latest.valid_from
            AS is_changed_later,
        CASE
            WHEN logged.is_in <> latest.is_in_sync THEN NULL
            WHEN NOT latest.is_in_sync
                AND (placed.is_new OR moves.move_role = 'adding')
                AND (logged.changed_at IS NULL OR logged.changed_at < placed.requested_at)
                THEN placed.requested_at
            WHEN logged.changed_at IS NOT NULL THEN logged.changed_at
            WHEN logged.is_in AND placed.is_new AND logged.first_in_at >= placed.requested_at
                THEN logged.first_in_at
        END AS since
    FROM latest
    LEFT JOIN moves USING (cluster_id, topic, partition, broker_id)
    LEFT JOIN placed USING (cluster_id, topic_id, partition, broker_id)
    LEFT JOIN logged USING (cluster_id, topic_id, partition, broker_id)
    LEFT JOIN racks USING (cluster_id, broker_id)
    LEFT JOIN partition_racks USING (cluster_id, topic_id, partition)
)

SELECT
    *,
    CASE
        WHEN since IS NOT NULL THEN NULL
        WHEN is_changed_later THEN 'changed_later'
        ELSE 'no_request'
    END AS since_unknown
FROM timed
