-- kind: answer
-- grain: one row per replica that the last reassignment of a partition requested
-- area: replication
-- level: sampled_log
-- question: Moves. Which replicas were moved, by whom, and when will they be done?
-- description: Who moved which replica when (kafka-reassign-partitions), and how far the move is.
--   Rates are those of the last two minutes with fetches of the replica, in the last week. The
--   estimate uses only what came after the throttle was changed last. What fetches do not show is
--   as sizes of logs in snapshots have it (ongoing_moves).
-- key: cluster_id, topic, partition, replica_id
-- time: requested_time
-- clustering: requested_time, topic
-- lookbacks:
--   traffic: 1 h
--   replication_traffic: 7 d
--   fetches: 10 min
--   replica_lag: 7 d
--   replica_sizes: 30 d
--   pipeline_progress: 7 d
-- columns:
--   from reassignment_changes: cluster_id
--   topic STRING: name of the topic; its id if no name is known
--   from reassignment_changes: partition, replica_id
--   leader_id INT: leader that the replica fetched from last; null: it was not seen behind
--   state STRING: done (the leader requested it in the ISR), in_place (it was in sync before),
--     cancelled, moving, never_converges (it fetches, and what is left does not shrink because
--     writes are faster), stuck (no fetch for 33 s or more while others fetched) or waiting
--     (requested, nothing seen yet)
--   requested_time TIMESTAMP: when the reassignment was requested
--   requested_by STRING: principal that requested it
--   requested_by_client_id STRING: its client.id: untrusted text
--   joined_time TIMESTAMP: when the leader requested it in the ISR; null: not yet
--   offsets_left BIGINT: offsets that it is yet to read before it is in sync, by replica_lag, or by
--     replication_traffic where that is newer; 0 if it is done or in_place; null: cancelled, not
--     known, or older than the snapshot that bytes_left is of
--   bytes_left DOUBLE: offsets_left times the mean size of the records that came, in bytes, or by
--     bytes_left_source; null: cancelled, or not known
--   bytes_left_source STRING: how bytes_left is known: fetches, or snapshot (sizes of logs in the
--     last one); null: bytes_left is
--   left_known_at TIMESTAMP: time of which offsets_left and bytes_left are: of a fetch, of the start
--     of the last minute with fetches, or of the snapshot; null: nothing is left, or none is known
--   bytes_per_s DOUBLE: record bytes that came, per second; null: not known
--   written_bytes_per_s DOUBLE: record bytes written into the partition, per second: the least that
--     a throttle must let through for each follower; null: not known
--   eta_s DOUBLE: time until it is in sync, in seconds, at the pace at which offsets_left shrinks,
--     or by snapshots if fetches show no pace; null: see eta_unknown
--   eta_unknown STRING: why eta_s is null, as a code: ended (done, in_place or cancelled), stands
--     (stuck or waiting: no fetch brings it nearer), never_converges, or no_pace (neither fetches
--     nor snapshots show one)
--   eta_error_s DOUBLE: by how much eta_s can be wrong, in seconds: twice the standard error that
--     follows from how the steps differ; null: not known
--   last_fetch_time TIMESTAMP: time of its last fetch while behind; null: none was seen

WITH by_topic AS (
    SELECT *
    FROM reassignment_changes AS changes
    WHERE changes.error_code IN (0, 108)
),
requested AS (
    SELECT
        *,
        dense_rank() OVER (
            PARTITION BY cluster_id, topic, partition ORDER BY event_time DESC
        ) AS nth
    FROM by_topic
    WHERE change = 'requested'
),
ends AS (
    SELECT
        requested.cluster_id,
        requested.topic,
        requested.partition,
        requested.replica_id,
        min(CASE WHEN later.change = 'cancelled' THEN later.event_time END) AS cancelled_time,
        min(CASE WHEN later.change = 'in_sync' THEN later.event_time END) AS joined_time
    FROM requested
    INNER JOIN by_topic AS later
        ON requested.cluster_id = later.cluster_id
            AND requested.topic = later.topic
            AND requested.partition = later.partition
            AND later.event_time >= requested.event_time
            AND (later.change = 'cancelled' OR requested.replica_id = later.replica_id)
    WHERE requested.nth = 1
    GROUP BY requested.cluster_id, requested.topic, requested.partition, requested.replica_id
),
was_there AS (
    SELECT DISTINCT requested.cluster_id, requested.topic, requested.partition, requested.replica_id
    FROM requested
    INNER JOIN replica_history AS history
        ON requested.cluster_id = history.cluster_id
            AND requested.topic = history.topic
            AND requested.partition = history.partition
            AND requested.replica_id = history.broker_id
            AND history.valid_from <= requested.event_time
    WHERE
        requested.nth = 1
        AND history.is_in_sync
        AND (history.valid_to IS NULL OR history.valid_to > requested.event_time)
),
clocks AS (
    SELECT cluster_id, max(event_time) AS newest
    FROM (
        SELECT cluster_id, event_time FROM traffic
        UNION ALL
        SELECT cluster_id, last_time AS event_time FROM replica_lag
        UNION ALL
        SELECT cluster_id, event_time FROM reassignment_changes
    ) AS times
    GROUP BY cluster_id
),
fetched AS (
    -- A row is how far fetches were read: requests may be read further, and none of its fetches yet.
    SELECT cluster_id, max(event_time) AS fetched_to
    FROM (
        SELECT cluster_id, event_time FROM fetches
        UNION ALL
        SELECT cluster_id, last_time AS event_time FROM replica_lag
    ) AS times
    GROUP BY cluster_id
),
behind AS (
    SELECT
        requested.cluster_id,
        requested.topic,
        requested.partition,
        requested.replica_id,
        late.broker_id,
        late.event_time AS started_at,
        late.fetches,
        late.bytes,
        late.first_offset,
        late.last_offset,
        late.high_watermark,
        late.lag,
        late.last_time,
        max(late.last_time) OVER (
            PARTITION BY
                requested.cluster_id, requested.topic, requested.partition, requested.replica_id
        ) AS newest
    FROM requested
    INNER JOIN topic_ids USING (cluster_id, topic)
    INNER JOIN replica_lag AS late
        ON topic_ids.cluster_id = late.cluster_id
            AND topic_ids.topic_id = late.topic_id
            AND requested.partition = late.partition
            AND requested.replica_id = late.replica_id
            AND late.last_time >= requested.event_time
    INNER JOIN clocks
        ON late.cluster_id = clocks.cluster_id
            AND unix_micros(late.last_time) > unix_micros(clocks.newest) - 604800000000
    WHERE requested.nth = 1
),
altered AS (
    SELECT
        behind.cluster_id,
        behind.topic,
        behind.partition,
        behind.replica_id,
        max(changes.event_time) AS altered_time
    FROM behind
    INNER JOIN throttle_changes AS changes
        ON behind.cluster_id = changes.cluster_id
            AND behind.last_time = behind.newest
            AND changes.event_time <= behind.newest
            AND CASE
                WHEN changes.entity_type = 'topic' THEN changes.entity_name = behind.topic
                ELSE changes.entity_name
                    IN ('', CAST(behind.broker_id AS STRING), CAST(behind.replica_id AS STRING))
            END
    WHERE changes.error_code = 0 AND changes.config_key LIKE '%.replication.throttled.%'
    GROUP BY behind.cluster_id, behind.topic, behind.partition, behind.replica_id
),
recent AS (
    SELECT
        behind.*,
        (unix_micros(behind.last_time) - unix_micros(behind.newest)) / 1e6 AS at_s,
        -- Brokers measure over eleven seconds, so what was before a throttle changed is felt as long.
        CASE
            WHEN altered.altered_time IS NULL
                OR unix_micros(behind.started_at) >= unix_micros(altered.altered_time) + 11000000
                THEN CAST(behind.lag AS DOUBLE)
        END AS steady_lag
    FROM behind
    LEFT JOIN altered USING (cluster_id, topic, partition, replica_id)
    WHERE unix_micros(behind.last_time) > unix_micros(behind.newest) - 120000000
),
stepped AS (
    SELECT
        *,
        lag(steady_lag) OVER (
            PARTITION BY cluster_id, topic, partition, replica_id ORDER BY last_time
        ) - steady_lag AS step,
        min(at_s) OVER (PARTITION BY cluster_id, topic, partition, replica_id) AS first_at_s
    FROM recent
),
paces AS (
    SELECT
        cluster_id,
        topic,
        partition,
        replica_id,
        max(CASE WHEN at_s = 0 THEN broker_id END) AS leader_id,
        max(CASE WHEN at_s = 0 THEN lag END) AS offsets_left,
        max(CASE WHEN at_s = 0 THEN last_offset END) AS log_end,
        max(newest) AS newest,
        count(steady_lag) AS points,
        sum(bytes) AS bytes,
        -- What came with the first fetches came before them.
        sum(CASE WHEN at_s > first_at_s THEN bytes END) AS later_bytes,
        sum(fetches) AS fetches,
        CAST(max(last_offset) AS DOUBLE) - CAST(min(first_offset) AS DOUBLE) AS offsets,
        -- One fetch alone shows no pace.
        CASE WHEN min(at_s) < 0 THEN greatest(-min(at_s), 1e0) END AS seconds,
        -- No slope of one time: Spark says null, and DuckDB NaN.
        CASE
            WHEN min(CASE WHEN steady_lag IS NOT NULL THEN at_s END)
                < max(CASE WHEN steady_lag IS NOT NULL THEN at_s END)
                THEN regr_slope(steady_lag, at_s)
        END AS lag_per_s,
        CASE WHEN min(at_s) < max(at_s) THEN regr_slope(CAST(high_watermark AS DOUBLE), at_s) END
            AS written_per_s,
        count(step) AS steps,
        avg(step) AS mean_step,
        stddev_samp(step) AS step_spread
    FROM stepped
    GROUP BY cluster_id, topic, partition, replica_id
),
minutes AS (
    SELECT
        requested.cluster_id,
        requested.topic,
        requested.partition,
        requested.replica_id,
        seen.event_time,
        seen.fetches,
        seen.bytes,
        seen.first_fetch_offset,
        seen.last_fetch_offset,
        seen.offset_lag,
        row_number() OVER (
            PARTITION BY
                requested.cluster_id, requested.topic, requested.partition, requested.replica_id
            ORDER BY seen.event_time DESC, seen.last_fetch_offset DESC
        ) AS age
    FROM requested
    INNER JOIN replication_traffic AS seen
        ON requested.cluster_id = seen.cluster_id
            AND requested.topic = seen.topic
            AND requested.partition = seen.partition
            AND requested.replica_id = seen.follower_id
            AND seen.event_time >= date_trunc('minute', requested.event_time)
    WHERE requested.nth = 1 AND seen.offset_lag IS NOT NULL
),
newest_minutes AS (
    SELECT
        cluster_id,
        topic,
        partition,
        replica_id,
        max(event_time) AS minute,
        max(CASE WHEN age = 1 THEN offset_lag END) AS offset_lag,
        max(CASE WHEN age = 1 THEN last_fetch_offset END) AS log_end,
        -- What the last answer brought shows in no offset yet.
        coalesce(
            sum(CASE WHEN age > 1 THEN bytes END) * 1e0
            / nullif(
                max(CASE WHEN age = 1 THEN first_fetch_offset END) - min(first_fetch_offset), 0
            ),
            sum(bytes) * (1e0 - 1e0 / nullif(sum(fetches), 0))
            / nullif(max(last_fetch_offset) - min(first_fetch_offset), 0)
        ) AS bytes_per_offset
    FROM minutes
    GROUP BY cluster_id, topic, partition, replica_id
),
moves AS (
    SELECT
        requested.*,
        was_there.replica_id IS NOT NULL AS was_in_sync,
        ends.joined_time,
        ends.cancelled_time,
        paces.leader_id,
        paces.points,
        -- A log only grows while it is behind, so the farther end is the newer one.
        CASE
            WHEN newest_minutes.minute > paces.newest OR newest_minutes.log_end > paces.log_end
                OR paces.newest IS NULL
                THEN newest_minutes.offset_lag
            ELSE paces.offsets_left
        END AS offsets_behind,
        greatest(newest_minutes.minute, paces.newest) AS behind_known_at,
        coalesce(
            paces.bytes * (1e0 - 1e0 / paces.fetches) / nullif(paces.offsets, 0),
            newest_minutes.bytes_per_offset
        ) AS bytes_per_offset,
        paces.later_bytes / paces.seconds AS bytes_per_s,
        paces.written_per_s,
        paces.lag_per_s,
        -- Of the mean step so far, and of all the steps to come.
        CASE
            WHEN paces.mean_step > 0
                THEN 2e0 * paces.step_spread * sqrt((paces.offsets_left / paces.mean_step + paces.steps)
                    * paces.offsets_left / paces.mean_step / paces.steps)
        END AS error_offsets,
        paces.newest AS last_fetch_time,
        coalesce(paces.newest, requested.event_time) AS last_contact,
        fetched.fetched_to
    FROM requested
    LEFT JOIN ends USING (cluster_id, topic, partition, replica_id)
    LEFT JOIN was_there USING (cluster_id, topic, partition, replica_id)
    LEFT JOIN paces USING (cluster_id, topic, partition, replica_id)
    LEFT JOIN newest_minutes USING (cluster_id, topic, partition, replica_id)
    LEFT JOIN fetched USING (cluster_id)
    WHERE requested.nth = 1
),
states AS (
    SELECT
        *,
        CASE
            WHEN was_in_sync THEN 'in_place'
            WHEN joined_time IS NOT NULL THEN 'done'
            WHEN cancelled_time IS NOT NULL THEN 'cancelled'
            WHEN unix_micros(fetched_to) - unix_micros(last_contact) > 33000000 THEN 'stuck'
            WHEN last_fetch_time IS NULL THEN 'waiting'
            WHEN points >= 4 AND lag_per_s >= 0 THEN 'never_converges'
            ELSE 'moving'
        END AS state
    FROM moves
),
measured AS (
    SELECT
        states.*,
        CASE
            WHEN states.state IN ('done', 'in_place') THEN 0
            WHEN states.state <> 'cancelled' THEN states.offsets_behind
        END AS seen_left,
        CASE WHEN states.state <> 'cancelled' THEN CAST(sizes.bytes_left AS DOUBLE) END
            AS snapshot_bytes_left,
        sizes.snapshot_time,
        sizes.eta_s AS snapshot_eta_s
    FROM states
    LEFT JOIN ongoing_moves AS sizes
        ON states.cluster_id = sizes.cluster_id
            AND states.topic = sizes.topic
            AND states.partition = sizes.partition
            AND states.replica_id = sizes.replica_id
            AND states.event_time <= sizes.snapshot_time
),
estimated AS (
    SELECT
        *,
        -- Nothing times a size that is not known is nothing.
        CASE WHEN seen_left = 0 THEN 0e0 ELSE seen_left * bytes_per_offset END AS fetched_left,
        -- Offsets of one time and bytes of another do not go together.
        coalesce(
            snapshot_bytes_left IS NOT NULL
            AND (seen_left IS NULL OR seen_left > 0 AND bytes_per_offset IS NULL)
            AND (behind_known_at IS NULL OR snapshot_time >= behind_known_at),
            FALSE
        ) AS is_by_snapshot,
        CASE
            WHEN state = 'moving' AND lag_per_s < 0 THEN seen_left / -lag_per_s
            WHEN state = 'moving' THEN snapshot_eta_s
        END AS seconds_left
    FROM measured
)

SELECT
    *,
    event_time AS requested_time,
    principal AS requested_by,
    client_id AS requested_by_client_id,
    CASE WHEN NOT is_by_snapshot THEN seen_left END AS offsets_left,
    CASE WHEN is_by_snapshot THEN snapshot_bytes_left ELSE fetched_left END AS bytes_left,
    CASE
        WHEN is_by_snapshot THEN 'snapshot'
        WHEN fetched_left IS NOT NULL THEN 'fetches'
    END AS bytes_left_source,
    CASE
        WHEN state IN ('done', 'in_place', 'cancelled') THEN NULL
        WHEN is_by_snapshot THEN snapshot_time
        WHEN seen_left IS NOT NULL THEN behind_known_at
    END AS left_known_at,
    CASE WHEN written_per_s < 0 THEN 0e0 ELSE written_per_s * bytes_per_offset END
        AS written_bytes_per_s,
    seconds_left AS eta_s,
    CASE
        WHEN state IN ('done', 'in_place', 'cancelled') THEN 'ended'
        WHEN state IN ('stuck', 'waiting') THEN 'stands'
        WHEN state = 'never_converges' THEN 'never_converges'
        WHEN seconds_left IS NULL THEN 'no_pace'
    END AS eta_unknown,
    CASE WHEN state = 'moving' AND lag_per_s < 0 THEN error_offsets / -lag_per_s END AS eta_error_s
FROM estimated
