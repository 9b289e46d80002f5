-- kind: answer
-- grain: one row per group and partition that it has an offset in, or a member: how far it is
--   behind, and whether it catches up
-- area: groups
-- level: admin_api
-- question: Lag. How far is each group behind, and does it catch up?
-- description: Lag counts what the group can still read. So it is less than what Kafka's own tools
--   print where records were deleted before the group read them, where an open transaction is in the
--   way of read_committed, and where the marker of a transaction ends the partition.
-- key: cluster_id, group_id, topic, partition
-- time: position_known_at
-- clustering: group_id, topic
-- first: lag_s, lag
-- lookbacks:
--   replica_offsets: at most 1 d
--   group_commits: at most 1 d
--   fetch_sizes: 1 h
--   active_producers: 14 d
--   transactional_ids: 14 d
--   pipeline_progress: 7 d
-- columns:
--   cluster_id STRING: Kafka cluster id, as conf or the broker gives it
--   group_id STRING: id of the group: what a client chose
--   group_type STRING: protocol of the group: classic, consumer (KIP-848), share (KIP-932) or
--     streams (KIP-1071)
--   topic STRING: name of the topic
--   partition INT: number of the partition
--   position BIGINT: committed offset: the next one to read. Of a share group its start offset:
--     records after it may be done; null: the group never committed there
--   position_known_at TIMESTAMP: last time at which the group was there, or at which a snapshot
--     found no position
--   end_offset BIGINT: high watermark of the partition: the offset after the last record that
--     consumers may read; null: not known
--   end_known_at TIMESTAMP: last time at which the partition ended there
--   lag BIGINT: records that the group can still read: from position, or from the log start where
--     that is later, to end_offset or to what blocks it; of a share group what its coordinator says
--     (KIP-1226)
--   lag_unknown_reason STRING: why lag is null: end_unknown, end_outdated (it is from before the
--     position), beyond_end (the group committed an offset that the partition does not have),
--     never_committed, control_records (what is left may be markers of transactions alone, which no
--     consumer gets), not_reported (a share group, and the broker says no lag)
--   is_lag_upper_bound BOOLEAN: whether some of these offsets may have no record for the group: the
--     topic is compacted, or has transactions
--   blocked_records BIGINT: offsets after the open transaction that stops a group that reads
--     committed records alone; 0: none does; null: not known
--   deleted_records BIGINT: offsets from position to the log start: deleted before the group read
--     them; null: not known
--   lag_s DOUBLE: seconds from when the first record left was written to end_known_at. It is
--     interpolated between the times at which the end is known
--   lag_s_unknown_reason STRING: why lag_s is null: lag_unknown, share_group (its lag has no first
--     record), older_than_history (no end is known from before that record), end_went_back (the
--     topic was made again, or lost records)
--   retention_left_s DOUBLE: seconds from end_known_at until the oldest record left reaches the
--     retention of its topic (topic_retentions): from then on Kafka may delete it, with its segment.
--     0: it has. A limit of bytes may delete it sooner. Null: lag is 0, lag_s or the retention is not
--     known, or no time limits it (retention.ms is -1, or cleanup.policy has no delete)
--   records_in_per_s DOUBLE: records written in a second, over the last ten minutes, or the last
--     two times at which the end is known; null: it is known once
--   records_out_per_s DOUBLE: how many offsets the position moved on in a second, in the same way;
--     null: it is known once, or went back
--   trend STRING: blocked (it has read all up to an open transaction); caught_up (lag is 0);
--     went_back (the group set its position to an earlier offset); growing or shrinking, where the
--     two rates differ by more than 5 %; steady; unknown
--   caught_up_in_s DOUBLE: seconds until lag is 0 at these rates; null unless it shrinks
--   members INT: members that are assigned the partition, by the last snapshot
--   member_id STRING: the member; null: none, or several
--   client_id STRING: client.id of the member: untrusted text
--   client_address STRING: address of the member

WITH newest AS (
    -- The newest position of each group in each partition.
    SELECT
        *,
        max(group_type) OVER (PARTITION BY cluster_id, group_id) AS known_type,
        row_number() OVER (
            PARTITION BY cluster_id, group_id, topic, partition
            ORDER BY known_at DESC, position DESC
        ) AS place
    FROM group_positions
),
unread AS (
    -- Members that have a partition: where the group has no position, it never committed.
    SELECT
        assigned.cluster_id,
        assigned.group_id,
        assigned.group_type,
        assigned.topic,
        assigned.partition,
        max(assigned.looked_at) AS known_at
    FROM (
        SELECT
            members.cluster_id,
            members.group_id,
            members.valid_from,
            current_groups.group_type,
            taken.looked_at,
            taken.both_looked_at,
            members.assigned.topic AS topic,
            members.assigned.partition AS partition
        FROM (
            SELECT
                cluster_id, group_id, valid_from, explode(assigned_partitions) AS assigned
            FROM current_group_assignments
        ) AS members
        INNER JOIN (
            -- A snapshot reads offsets after it began, and members have the time when it began.
            SELECT
                cluster_id,
                max(CASE WHEN table_name = 'group_offsets' THEN last_taken END) AS looked_at,
                min(last_taken) AS both_looked_at
            FROM snapshot_times
            WHERE table_name IN ('group_assignments', 'group_offsets')
            GROUP BY cluster_id
        ) AS taken USING (cluster_id)
        LEFT JOIN current_groups USING (cluster_id, group_id)
    ) AS assigned
    WHERE
        assigned.topic IS NOT NULL
        AND coalesce(assigned.group_type, 'classic') <> 'share'
        -- A member commits by and by: one that is new has had no time to.
        AND unix_micros(assigned.valid_from) <= unix_micros(assigned.both_looked_at) - 60000000
        AND assigned.looked_at IS NOT NULL
    GROUP BY ALL
),
isolation AS (
    SELECT
        readers.cluster_id,
        readers.group_id,
        sum(sizes.fetches) AS fetches,
        sum(sizes.committed_fetches) AS committed_fetches
    FROM (
        SELECT DISTINCT cluster_id, group_id, principal, client_id FROM group_commits
    ) AS readers
    INNER JOIN (
        SELECT
            *,
            max(event_time) OVER (PARTITION BY cluster_id) AS last_minute
        FROM fetch_sizes
    ) AS sizes
        ON readers.cluster_id = sizes.cluster_id
        AND readers.principal IS NOT DISTINCT FROM sizes.principal
        AND readers.client_id IS NOT DISTINCT FROM sizes.client_id
    WHERE
        sizes.replica_id IS NULL
        AND unix_micros(sizes.event_time) > unix_micros(sizes.last_minute) - 3600000000
    GROUP BY readers.cluster_id, readers.group_id
),
known_positions AS (
    SELECT
        *,
        count(position) OVER (PARTITION BY cluster_id, group_id, topic, partition) AS committed
    FROM (
        SELECT
            cluster_id,
            group_id,
            known_type AS group_type,
            topic,
            partition,
            known_at,
            position,
            reported_lag
        FROM newest
        WHERE place = 1
        UNION ALL
        SELECT
            cluster_id,
            group_id,
            group_type,
            topic,
            partition,
            known_at,
            CAST(NULL AS BIGINT) AS position,
            CAST(NULL AS BIGINT) AS reported_lag
        FROM unread
    ) AS each_position
),
positions AS (
    -- Where the group reads on: what was deleted before it came there is left out.
    SELECT
        known.*,
        CASE
            WHEN known.position IS NOT NULL
                THEN greatest(known.position, coalesce(readable.log_start_offset, known.position))
        END AS first_offset,
        readable.log_start_offset,
        readable.log_end_offset,
        readable.last_stable_offset,
        readable.other_writers
    FROM known_positions AS known
    LEFT JOIN readable_partitions AS readable USING (cluster_id, topic, partition)
    WHERE known.position IS NOT NULL OR known.committed = 0
),
last_ends AS (
    -- An end by fetches is as of the end of its minute, so one of a snapshot in it may be greater.
    -- Of fetches that leaders with clocks five minutes apart answered, the greatest end is the newest.
    SELECT
        *,
        max(known_at) OVER (PARTITION BY cluster_id, topic, partition) AS end_known_at
    FROM partition_ends
),
ends AS (
    SELECT
        cluster_id,
        topic,
        partition,
        max(end_offset) AS end_offset,
        max(end_known_at) AS end_known_at,
        -- From then on the partition may end later.
        max(
            unix_micros(known_at) - CASE WHEN known_by = 'fetches' THEN 60000000 ELSE 0 END
        ) AS end_seen_us
    FROM last_ends
    WHERE unix_micros(known_at) > unix_micros(end_known_at)
        - CASE WHEN known_by = 'fetches' THEN 300000000 ELSE 60000000 END
    GROUP BY cluster_id, topic, partition
),
-- The last time at which the partition still ended at or before the position, and the first one at
-- which it ended after it: the first unread record came between them.
crossings AS (
    SELECT
        positions.cluster_id,
        positions.group_id,
        positions.topic,
        positions.partition,
        max(unix_micros(known.known_at))
            FILTER (WHERE known.end_offset <= positions.first_offset) AS read_until_us,
        max(CASE WHEN known.end_offset <= positions.first_offset THEN known.end_offset END)
            AS read_until_offset,
        min(unix_micros(known.known_at))
            FILTER (WHERE known.end_offset > positions.first_offset) AS unread_from_us,
        min(CASE WHEN known.end_offset > positions.first_offset THEN known.end_offset END)
            AS unread_from_offset
    FROM positions
    INNER JOIN partition_ends AS known USING (cluster_id, topic, partition)
    GROUP BY positions.cluster_id, positions.group_id, positions.topic, positions.partition
),
marked AS (
    -- With the markers that may have been written since the first unread offset was.
    SELECT
        crossings.cluster_id,
        crossings.group_id,
        crossings.topic,
        crossings.partition,
        crossings.read_until_us,
        crossings.read_until_offset,
        crossings.unread_from_us,
        crossings.unread_from_offset,
        count(producers.producer_id) AS markers
    FROM crossings
    LEFT JOIN current_partition_producers AS producers
        ON crossings.cluster_id = producers.cluster_id
        AND crossings.topic = producers.topic
        AND crossings.partition = producers.partition
        AND producers.has_marker
        AND (
            producers.last_timestamp IS NULL
            OR crossings.read_until_us IS NULL
            OR unix_micros(producers.last_timestamp) >= crossings.read_until_us
        )
    GROUP BY ALL
),
-- Rates over the last ten minutes of what is known, or over the two newest times.
recent_ends AS (
    SELECT
        *,
        row_number() OVER (
            PARTITION BY cluster_id, topic, partition ORDER BY known_at, end_offset
        ) AS nth
    FROM (
        SELECT
            *,
            max(known_at) OVER (PARTITION BY cluster_id, topic, partition) AS last_known_at,
            lead(known_at) OVER (
                PARTITION BY cluster_id, topic, partition ORDER BY known_at, end_offset
            ) AS next_known_at
        FROM partition_ends
    ) AS timed
    WHERE
        next_known_at IS NULL
        OR unix_micros(next_known_at) > unix_micros(last_known_at) - 600000000
),
in_rates AS (
    SELECT
        ends.*,
        (ends.end_offset - first.end_offset) * 1e6
        / nullif(unix_micros(ends.end_known_at) - unix_micros(first.known_at), 0)
            AS records_in_per_s
    FROM ends
    INNER JOIN recent_ends AS first USING (cluster_id, topic, partition)
    -- A partition that ends before where it ended was made again, or lost records.
    WHERE first.nth = 1 AND ends.end_offset >= first.end_offset
),
recent_positions AS (
    SELECT
        *,
        row_number() OVER (
            PARTITION BY cluster_id, group_id, topic, partition ORDER BY known_at, position
        ) AS nth,
        row_number() OVER (
            PARTITION BY cluster_id, group_id, topic, partition
            ORDER BY known_at DESC, position DESC
        ) AS nth_newest
    FROM (
        SELECT
            *,
            max(known_at) OVER (
                PARTITION BY cluster_id, group_id, topic, partition
            ) AS last_known_at,
            lead(known_at) OVER (
                PARTITION BY cluster_id, group_id, topic, partition ORDER BY known_at, position
            ) AS next_known_at
        FROM group_positions
    ) AS timed
    WHERE
        next_known_at IS NULL
        OR unix_micros(next_known_at) > unix_micros(last_known_at) - 600000000
),
out_rates AS (
    SELECT
        cluster_id,
        group_id,
        topic,
        partition,
        (
            max(CASE WHEN nth_newest = 1 THEN position END)
            - max(CASE WHEN nth = 1 THEN position END)
        ) * 1e6
        / nullif(max(unix_micros(known_at)) - min(unix_micros(known_at)), 0) AS offsets_per_s
    FROM recent_positions
    GROUP BY cluster_id, group_id, topic, partition
),
joined AS (
    SELECT
        positions.*,
        ends.end_offset,
        ends.end_known_at,
        ends.end_seen_us,
        coalesce(marked.markers, 0) AS markers,
        coalesce(marked.markers, 0) > 0
        OR coalesce(retentions.cleanup_policy LIKE '%compact%', FALSE) AS has_gaps,
        CASE
            WHEN retentions.retention_ms >= 0
                AND coalesce(retentions.cleanup_policy LIKE '%delete%', TRUE)
                THEN retentions.retention_ms / 1e3
        END AS retention_s,
        -- Where no request log shows the isolation level, a group that is there waits there: no
        -- record is left before the transaction.
        coalesce(
            positions.last_stable_offset < positions.log_end_offset
            AND coalesce(positions.group_type, 'classic') <> 'share'
            AND positions.first_offset <= positions.last_stable_offset
            AND CASE
                WHEN isolation.committed_fetches = isolation.fetches THEN TRUE
                WHEN isolation.committed_fetches = 0 THEN FALSE
                ELSE positions.last_stable_offset - positions.first_offset
                    <= coalesce(marked.markers, 0)
            END,
            FALSE
        ) AS is_blocked,
        marked.read_until_us,
        marked.read_until_offset,
        marked.unread_from_us,
        marked.unread_from_offset,
        in_rates.records_in_per_s,
        out_rates.offsets_per_s
    FROM positions
    LEFT JOIN ends USING (cluster_id, topic, partition)
    LEFT JOIN marked USING (cluster_id, group_id, topic, partition)
    LEFT JOIN isolation USING (cluster_id, group_id)
    LEFT JOIN topic_retentions AS retentions USING (cluster_id, topic)
    LEFT JOIN in_rates USING (cluster_id, topic, partition)
    LEFT JOIN out_rates USING (cluster_id, group_id, topic, partition)
),
reached AS (
    SELECT
        *,
        CASE WHEN is_blocked THEN last_stable_offset ELSE end_offset END - first_offset AS unread,
        -- A snapshot of producers says nothing of what was written after it, and what is past an
        -- open transaction may be its records.
        CASE
            WHEN is_blocked THEN markers
            WHEN end_offset = log_end_offset AND last_stable_offset = log_end_offset THEN markers
            ELSE 0
        END AS last_markers
    FROM joined
),
measured AS (
    SELECT
        *,
        known_at AS position_known_at,
        CASE
            WHEN group_type = 'share' THEN reported_lag
            WHEN end_offset < position THEN NULL
            WHEN unread <= 0 OR (unread = 1 AND last_markers >= 1 AND other_writers = 0) THEN 0
            WHEN unread > last_markers THEN unread
        END AS lag,
        CASE
            WHEN group_type = 'share' AND reported_lag IS NULL THEN 'not_reported'
            WHEN group_type = 'share' THEN NULL
            WHEN position IS NULL THEN 'never_committed'
            WHEN end_offset IS NULL THEN 'end_unknown'
            WHEN end_offset < position AND end_seen_us < unix_micros(known_at) THEN 'end_outdated'
            WHEN end_offset < position THEN 'beyond_end'
            WHEN unread <= 0 OR (unread = 1 AND last_markers >= 1 AND other_writers = 0) THEN NULL
            WHEN unread <= last_markers THEN 'control_records'
        END AS lag_unknown_reason,
        has_gaps AS is_lag_upper_bound,
        CASE WHEN is_blocked THEN end_offset - last_stable_offset ELSE 0 END AS blocked_records,
        first_offset - position AS deleted_records,
        CASE WHEN offsets_per_s >= 0e0 THEN offsets_per_s END AS records_out_per_s
    FROM reached
),
timed AS (
    SELECT
        *,
        CASE
            WHEN lag IS NULL THEN NULL
            WHEN lag = 0 THEN 0e0
            WHEN group_type = 'share' OR read_until_us > unread_from_us + 60000000 THEN NULL
            ELSE (
                unix_micros(end_known_at) - read_until_us
                - (unread_from_us - read_until_us) * 1e0 * (first_offset - read_until_offset)
                / (unread_from_offset - read_until_offset)
            ) / 1e6
        END AS lag_s
    FROM measured
),
judged AS (
    SELECT
        *,
        CASE
            WHEN lag = 0 AND blocked_records > 0 THEN 'blocked'
            WHEN lag = 0 THEN 'caught_up'
            WHEN offsets_per_s < 0e0 THEN 'went_back'
            WHEN lag IS NULL OR records_in_per_s IS NULL OR records_out_per_s IS NULL THEN 'unknown'
            WHEN records_out_per_s > records_in_per_s * 1.05 THEN 'shrinking'
            WHEN records_in_per_s > records_out_per_s * 1.05 THEN 'growing'
            ELSE 'steady'
        END AS trend
    FROM timed
),
members AS (
    SELECT
        cluster_id,
        group_id,
        member_id,
        client_id,
        client_address,
        assigned.topic AS topic,
        assigned.partition AS partition
    FROM (
        SELECT
            *,
            explode(assigned_partitions) AS assigned
        FROM current_group_assignments
    ) AS each_partition
),
owners AS (
    -- A partition of a share group may have several members.
    SELECT
        cluster_id,
        group_id,
        topic,
        partition,
        count(*) AS members,
        min(member_id) AS member_id,
        min(client_id) AS client_id,
        min(client_address) AS client_address
    FROM members
    GROUP BY cluster_id, group_id, topic, partition
)

SELECT
    *,
    coalesce(judged.lag > 0 AND judged.is_lag_upper_bound, FALSE) AS is_lag_upper_bound,
    CASE
        WHEN judged.lag_s IS NOT NULL THEN NULL
        WHEN judged.lag IS NULL THEN 'lag_unknown'
        WHEN judged.group_type = 'share' THEN 'share_group'
        WHEN judged.read_until_us IS NOT NULL THEN 'end_went_back'
        ELSE 'older_than_history'
    END AS lag_s_unknown_reason,
    CASE
        WHEN judged.lag > 0 AND judged.lag_s < judged.retention_s
            THEN judged.retention_s - judged.lag_s
        WHEN judged.lag > 0 AND judged.lag_s >= judged.retention_s THEN 0e0
    END AS retention_left_s,
    CASE
        WHEN judged.trend = 'shrinking'
            THEN judged.lag / (judged.records_out_per_s - judged.records_in_per_s)
    END AS caught_up_in_s,
    coalesce(owners.members, 0) AS members,
    CASE WHEN owners.members = 1 THEN owners.member_id END AS member_id,
    CASE WHEN owners.members = 1 THEN owners.client_id END AS client_id,
    CASE WHEN owners.members = 1 THEN owners.client_address END AS client_address
FROM judged
LEFT JOIN owners USING (cluster_id, group_id, topic, partition)
