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
--     replication_traffic where that is newer by 30 s; 0 if it is done or in_place; null: cancelled,
--     not known, or older than the snapshot that bytes_left is of
--   bytes_left DOUBLE: offsets_left times the mean size of the records that came, in bytes, or by
--     bytes_left_source; null: cancelled, or not known
--   bytes_left_source STRING: how bytes_left is known: fetches, or snapshot (sizes of logs in the
--     last one); null: bytes_left is
--   left_known_at TIMESTAMP: time of which offsets_left and bytes_left are: of last_fetch_time, or of
--     the snapshot; null: nothing is left, or none is known
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
minutes AS (
    SELECT
        requested.replica_id,
        traffic_of_minute.*,
        row_number() OVER (
            PARTITION BY
                requested.cluster_id, requested.topic, requested.partition, requested.replica_id
            ORDER BY traffic_of_minute.first_fetch_time
        ) AS age
    FROM requested
    LEFT JOIN ends USING (cluster_id, topic, partition, replica_id)
    INNER JOIN replication_traffic AS traffic_of_minute
        ON requested.cluster_id = traffic_of_minute.cluster_id
            AND requested.topic = traffic_of_minute.topic
            AND requested.partition = traffic_of_minute.partition
            AND requested.replica_id = traffic_of_minute.follower_id
            AND traffic_of_minute.last_fetch_time >= requested.event_time
    WHERE requested.nth = 1
        AND traffic_of_minute.offset_lag > 0
        AND traffic_of_minute.last_bytes IS NOT NULL
        AND (ends.joined_time IS NULL OR traffic_of_minute.last_fetch_time <= ends.joined_time)
        AND (ends.cancelled_time IS NULL
            OR traffic_of_minute.last_fetch_time <= ends.cancelled_time)
),
seen AS (
    SELECT
        requested.cluster_id,
        requested.topic,
        requested.partition,
        requested.replica_id,
        TRUE AS is_fine,
        late.broker_id,
        late.event_time AS started_at,
        late.last_time,
        late.bytes,
        late.last_bytes,
        late.first_offset,
        late.last_offset,
        late.high_watermark,
        late.lag,
        CAST(late.lag AS DOUBLE) AS offsets_behind
    FROM requested
    INNER JOIN topic_ids USING (cluster_id, topic)
    INNER JOIN replica_lag AS late
        ON topic_ids.cluster_id = late.cluster_id
            AND topic_ids.topic_id = late.topic_id
            AND requested.partition = late.partition
            AND requested.replica_id = late.replica_id
            AND late.last_time >= requested.event_time
    WHERE requested.nth = 1
    UNION ALL
    SELECT
        cluster_id,
        topic,
        partition,
        replica_id,
        FALSE AS is_fine,
        leader_id AS broker_id,
        last_fetch_time AS started_at,
        last_fetch_time AS last_time,
        bytes,
        last_bytes,
        -- From the minute before on, or from its own first offset, which is a row below.
        CAST(NULL AS BIGINT) AS first_offset,
        last_fetch_offset AS last_offset,
        high_watermark,
        offset_lag AS lag,
        CAST(offset_lag AS DOUBLE) AS offsets_behind
    FROM minutes
    UNION ALL
    SELECT
        cluster_id,
        topic,
        partition,
        replica_id,
        FALSE AS is_fine,
        leader_id AS broker_id,
        first_fetch_time AS started_at,
        first_fetch_time AS last_time,
        0 AS bytes,
        0 AS last_bytes,
        first_fetch_offset AS first_offset,
        first_fetch_offset AS last_offset,
        first_high_watermark AS high_watermark,
        CAST(NULL AS BIGINT) AS lag,
        CAST(first_high_watermark AS DOUBLE) - CAST(first_fetch_offset AS DOUBLE) AS offsets_behind
    FROM minutes
    WHERE age = 1 AND first_fetch_time < last_fetch_time
),
-- Minutes show a pace less finely, so they count only where fetches were not read as far.
chosen AS (
    SELECT
        *,
        CASE
            WHEN is_fine THEN max(CASE WHEN NOT is_fine THEN last_time END) OVER of_replica
            ELSE max(CASE WHEN is_fine THEN last_time END) OVER of_replica
        END AS newest_of_others,
        max(last_time) OVER (
            PARTITION BY cluster_id, topic, partition, replica_id, is_fine
        ) AS newest,
        min(last_time) OVER (
            PARTITION BY cluster_id, topic, partition, replica_id, is_fine
        ) AS first_time
    FROM seen
    WINDOW of_replica AS (PARTITION BY cluster_id, topic, partition, replica_id)
),
behind AS (
    SELECT chosen.*
    FROM chosen
    INNER JOIN clocks
        ON chosen.cluster_id = clocks.cluster_id
            AND unix_micros(chosen.last_time) > unix_micros(clocks.newest) - 604800000000
    WHERE chosen.newest_of_others IS NULL
        OR CASE
            WHEN chosen.is_fine
                THEN unix_micros(chosen.newest_of_others) <= unix_micros(chosen.newest) + 30000000
            ELSE unix_micros(chosen.newest) > unix_micros(chosen.newest_of_others) + 30000000
        END
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
                OR behind.first_time >= altered.altered_time
                OR unix_micros(behind.started_at) >= unix_micros(altered.altered_time) + 11000000
                THEN behind.offsets_behind
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
        -- What the last answer brought shows in no offset yet.
        bytes - last_bytes + coalesce(
            lag(last_bytes) OVER (
                PARTITION BY cluster_id, topic, partition, replica_id ORDER BY last_time
            ),
            0
        ) AS shown_bytes,
        CASE
            WHEN last_bytes IS NOT NULL
                THEN CAST(last_offset AS DOUBLE) - coalesce(
                    CAST(lag(last_offset) OVER (
                        PARTITION BY cluster_id, topic, partition, replica_id ORDER BY last_time
                    ) AS DOUBLE),
                    CAST(first_offset AS DOUBLE)
                )
        END AS shown_offsets,
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
        max(newest) AS newest,
        count(steady_lag) AS points,
        sum(CASE WHEN shown_offsets IS NOT NULL THEN shown_bytes END)
            / nullif(sum(shown_offsets), 0e0) AS bytes_per_offset,
        -- What came with the first fetches came before them.
        sum(CASE WHEN at_s > first_at_s THEN bytes END) AS later_bytes,
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
moves AS (
    SELECT
        requested.*,
        was_there.replica_id IS NOT NULL AS was_in_sync,
        ends.joined_time,
        ends.cancelled_time,
        paces.leader_id,
        paces.points,
        paces.offsets_left AS offsets_behind,
        paces.bytes_per_offset,
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
            AND (last_fetch_time IS NULL OR snapshot_time >= last_fetch_time),
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
        WHEN seen_left IS NOT NULL THEN last_fetch_time
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
