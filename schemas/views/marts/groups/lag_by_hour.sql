-- kind: mart
-- grain: one row per hour, group and topic in which the group has a position
-- area: groups
-- level: admin_api
-- question: Lag over time. How far was each group behind in each hour, of the last day or week?
-- description: The lag of groups hour by hour, over all partitions of a topic. It is the last end known
--   then minus the last position known then, as kafka-consumer-groups.sh prints it. Each snapshot gives
--   a lag. If the request log has commits of the group, each known end of a partition gives one too. A
--   lag lasts until the next one. It does not last over an hour in which nothing of the cluster is
--   known: such an hour has no row. The view has the newest 192 hours of which something is known: eight
--   days if none is missing. Of older data it uses the last position and end of each partition alone.
--   group_lag is less where records were deleted, and where a transaction is in the way. A partition in
--   which the group never committed does not count. The newest hour is not over.
-- first: hour, max_lag
-- columns:
--   from group_positions: cluster_id
--   hour: start of the hour
--   from group_positions: group_id, topic
--   max_lag: greatest lag of the hour, in records, over all partitions at one time; null: see
--     unknown_reason
--   mean_lag: mean lag over known_s, in records; null: see unknown_reason
--   last_lag: lag at the last time of the hour at which it is known, in records; null: see
--     unknown_reason
--   known_s: time of the hour in which the lag of all partitions is known, in seconds; 0: it is known
--     at one time alone, or not at all
--   partitions: partitions of the topic in which the group has a position
--   unknown_partitions: the most of them at one time whose lag is not known
--   unknown_reason: why the lag is not known at any time of the hour, as a code: end_unknown (no end
--     of a partition is known yet), end_before_position (the last known end of a partition is before
--     the position: it is older, or the partition does not have that offset), not_reported (a share
--     group, and the broker says no lag); null: it is known
WITH all_positions AS (
    -- Positions and ends are read several times, and computed once.
    SELECT * FROM group_positions
),
all_ends AS (
    SELECT * FROM partition_ends
),
observed AS (
    SELECT
        cluster_id,
        date_trunc('HOUR', seen_at) AS hour,
        max(seen_at) AS last_seen,
        min(CASE WHEN is_snapshot = 1 THEN seen_at END) AS first_snapshot
    FROM (
        SELECT cluster_id, known_at AS seen_at, 0 AS is_snapshot FROM all_ends
        UNION ALL
        SELECT cluster_id, known_at, 0 FROM all_positions
        UNION ALL
        SELECT cluster_id, taken_at, 1 FROM snapshot_times WHERE table_name = 'partition_offsets'
    ) AS seen
    GROUP BY cluster_id, date_trunc('HOUR', seen_at)
),
starts AS (
    -- Hours are counted, for a broker whose clock is years ahead must not hide all others.
    SELECT cluster_id, min(hour) AS since
    FROM (
        SELECT
            cluster_id,
            date_trunc('HOUR', seen_at) AS hour,
            row_number() OVER (
                PARTITION BY cluster_id ORDER BY date_trunc('HOUR', seen_at) DESC
            ) AS nth_newest
        FROM (
            SELECT cluster_id, event_time AS seen_at FROM group_commits
            UNION ALL
            SELECT cluster_id, event_time FROM replica_offsets
            UNION ALL
            SELECT cluster_id, taken_at
            FROM snapshot_times
            WHERE table_name IN ('group_offsets', 'partition_offsets')
        ) AS seen
        GROUP BY cluster_id, date_trunc('HOUR', seen_at)
    ) AS each_hour
    WHERE nth_newest <= 192
    GROUP BY cluster_id
),
-- Of older rows the last one of each partition says how the first hour begins.
positions AS (
    SELECT *
    FROM (
        SELECT
            known.*,
            starts.since,
            max(CASE WHEN known.known_at < starts.since THEN known.known_at END) OVER (
                PARTITION BY known.cluster_id, known.group_id, known.topic, known.partition
            ) AS last_before
        FROM all_positions AS known
        INNER JOIN starts ON known.cluster_id = starts.cluster_id
    ) AS aged
    WHERE last_before IS NULL OR known_at >= last_before
),
ends AS (
    -- An end by fetches is as of the end of its minute, so one of a snapshot in it may be greater.
    SELECT
        cluster_id,
        topic,
        partition,
        known_at,
        known_by,
        max(end_offset) OVER (
            PARTITION BY cluster_id, topic, partition ORDER BY unix_micros(known_at)
            RANGE BETWEEN 59999999 PRECEDING AND CURRENT ROW
        ) AS end_offset
    FROM (
        SELECT
            known.*,
            max(CASE WHEN known.known_at < starts.since THEN known.known_at END) OVER (
                PARTITION BY known.cluster_id, known.topic, known.partition
            ) AS last_before
        FROM all_ends AS known
        INNER JOIN starts ON known.cluster_id = starts.cluster_id
    ) AS aged
    WHERE
        last_before IS NULL
        OR unix_micros(known_at) > unix_micros(last_before) - 60000000
),
-- What is known before an hour is known from its start, or after a gap from its first snapshot.
hours AS (
    SELECT
        cluster_id,
        hour,
        CASE
            WHEN lag(hour) OVER in_order = hour - INTERVAL '1' HOUR THEN hour
            ELSE first_snapshot
        END AS carried_at,
        CASE
            WHEN lag(hour) OVER in_order = hour - INTERVAL '1' HOUR THEN 0
            ELSE 1
        END AS nth,
        CASE
            WHEN lead(hour) OVER in_order = hour + INTERVAL '1' HOUR
                THEN hour + INTERVAL '1' HOUR
            ELSE last_seen
        END AS until
    FROM observed
    WINDOW in_order AS (PARTITION BY cluster_id ORDER BY hour)
),
read_partitions AS (
    SELECT
        cluster_id,
        group_id,
        topic,
        partition,
        max(group_type) AS group_type,
        max(since) AS since,
        min(known_at) AS first_at,
        min(CASE WHEN group_type IS NULL THEN known_at END) AS first_commit_at
    FROM positions
    GROUP BY cluster_id, group_id, topic, partition
),
-- A commit is no time to take the lag: the end of then is only known at the end of the minute. What
-- is first at a time (nth 0) is as of before it, as are the ends of the minute that it ends.
moments AS (
    SELECT
        cluster_id,
        group_id,
        topic,
        partition,
        moment,
        nth,
        max(position) AS position,
        max(reported_lag) AS reported_lag,
        max(end_offset) AS end_offset,
        max(is_taken) AS is_taken
    FROM (
        SELECT
            cluster_id,
            group_id,
            topic,
            partition,
            known_at AS moment,
            1 AS nth,
            position,
            reported_lag,
            CAST(NULL AS BIGINT) AS end_offset,
            CASE WHEN group_type IS NULL THEN 0 ELSE 1 END AS is_taken
        FROM positions
        UNION ALL
        SELECT
            read_partitions.cluster_id,
            read_partitions.group_id,
            read_partitions.topic,
            read_partitions.partition,
            ends.known_at,
            CASE WHEN ends.known_by = 'snapshot' THEN 1 ELSE 0 END,
            CAST(NULL AS BIGINT),
            CAST(NULL AS BIGINT),
            ends.end_offset,
            CASE
                WHEN ends.known_by = 'snapshot' OR ends.known_at >= read_partitions.first_commit_at
                    THEN 1
                ELSE 0
            END
        FROM read_partitions
        INNER JOIN ends USING (cluster_id, topic, partition)
        UNION ALL
        SELECT
            read_partitions.cluster_id,
            read_partitions.group_id,
            read_partitions.topic,
            read_partitions.partition,
            hours.carried_at,
            hours.nth,
            CAST(NULL AS BIGINT),
            CAST(NULL AS BIGINT),
            CAST(NULL AS BIGINT),
            1
        FROM read_partitions
        INNER JOIN hours
            ON read_partitions.cluster_id = hours.cluster_id
                AND hours.carried_at >= read_partitions.first_at
    ) AS each_moment
    GROUP BY cluster_id, group_id, topic, partition, moment, nth
),
known AS (
    SELECT
        cluster_id,
        group_id,
        topic,
        partition,
        moment,
        nth,
        is_taken,
        last_value(position) IGNORE NULLS OVER by_then AS position,
        -- Of the last position, be it null: -1 is no lag.
        nullif(
            last_value(CASE WHEN position IS NOT NULL THEN coalesce(reported_lag, -1) END)
                IGNORE NULLS OVER by_then,
            -1
        ) AS reported_lag,
        last_value(end_offset) IGNORE NULLS OVER by_then AS end_offset
    FROM moments
    WINDOW by_then AS (
        PARTITION BY cluster_id, group_id, topic, partition
        ORDER BY moment, nth
        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    )
),
partition_lags AS (
    SELECT
        known.cluster_id,
        known.group_id,
        known.topic,
        known.partition,
        known.moment,
        known.nth,
        date_trunc('HOUR', known.moment) AS hour,
        CASE
            WHEN read_partitions.group_type = 'share' THEN known.reported_lag
            WHEN known.end_offset >= known.position THEN known.end_offset - known.position
        END AS records,
        CASE
            WHEN read_partitions.group_type = 'share' AND known.reported_lag IS NULL
                THEN 'not_reported'
            WHEN read_partitions.group_type = 'share' THEN NULL
            WHEN known.end_offset IS NULL THEN 'end_unknown'
            WHEN known.end_offset < known.position THEN 'end_before_position'
        END AS unknown_reason
    FROM known
    INNER JOIN read_partitions USING (cluster_id, group_id, topic, partition)
    WHERE
        known.is_taken = 1
        AND known.position IS NOT NULL
        AND known.moment >= read_partitions.since
),
-- By how much each time of an hour changes the lag of a partition.
steps AS (
    SELECT
        *,
        coalesce(records, 0) - lag(coalesce(records, 0), 1, CAST(0 AS BIGINT)) OVER in_hour
            AS added_records,
        is_unknown - lag(is_unknown, 1, 0) OVER in_hour AS added_unknown,
        CASE WHEN row_number() OVER in_hour = 1 THEN 1 ELSE 0 END AS added_partitions
    FROM (
        SELECT *, CASE WHEN unknown_reason IS NULL THEN 0 ELSE 1 END AS is_unknown
        FROM partition_lags
    ) AS marked
    WINDOW in_hour AS (
        PARTITION BY cluster_id, group_id, topic, partition, hour ORDER BY moment, nth
    )
),
totals AS (
    SELECT
        cluster_id,
        group_id,
        topic,
        hour,
        moment,
        nth,
        max(unknown_reason) AS unknown_reason,
        sum(sum(added_records)) OVER by_then AS records,
        sum(sum(added_unknown)) OVER by_then AS unknown_partitions,
        sum(sum(added_partitions)) OVER by_then AS partitions_then,
        sum(sum(added_partitions)) OVER (PARTITION BY cluster_id, group_id, topic, hour)
            AS partitions
    FROM steps
    GROUP BY cluster_id, group_id, topic, hour, moment, nth
    WINDOW by_then AS (
        PARTITION BY cluster_id, group_id, topic, hour
        ORDER BY moment, nth
        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    )
),
spans AS (
    SELECT
        totals.cluster_id,
        totals.group_id,
        totals.topic,
        totals.hour,
        totals.moment,
        totals.nth,
        totals.unknown_reason,
        totals.unknown_partitions,
        totals.partitions,
        CASE
            WHEN totals.unknown_partitions = 0 AND totals.partitions_then = totals.partitions
                THEN CAST(totals.records AS BIGINT)
        END AS records,
        unix_micros(
            coalesce(
                lead(totals.moment) OVER (
                    PARTITION BY totals.cluster_id, totals.group_id, totals.topic, totals.hour
                    ORDER BY totals.moment, totals.nth
                ),
                hours.until
            )
        ) - unix_micros(totals.moment) AS known_us
    FROM totals
    INNER JOIN hours ON totals.cluster_id = hours.cluster_id AND totals.hour = hours.hour
),
ranked AS (
    SELECT
        *,
        row_number() OVER (
            PARTITION BY cluster_id, group_id, topic, hour
            ORDER BY CASE WHEN records IS NULL THEN 1 ELSE 0 END, moment DESC, nth DESC
        ) AS nth_newest
    FROM spans
)

SELECT
    cluster_id,
    hour,
    group_id,
    topic,
    max(records) AS max_lag,
    CASE
        WHEN sum(CASE WHEN records IS NOT NULL THEN known_us ELSE 0 END) > 0
            THEN CAST(
                sum(CAST(records AS DECIMAL(19, 0)) * CAST(known_us AS DECIMAL(19, 0))) AS DOUBLE
            ) / sum(CASE WHEN records IS NOT NULL THEN known_us END)
        ELSE CAST(max(CASE WHEN nth_newest = 1 THEN records END) AS DOUBLE)
    END AS mean_lag,
    max(CASE WHEN nth_newest = 1 THEN records END) AS last_lag,
    sum(CASE WHEN records IS NOT NULL THEN known_us ELSE 0 END) / 1e6 AS known_s,
    CAST(max(partitions) AS BIGINT) AS partitions,
    CAST(max(unknown_partitions) AS BIGINT) AS unknown_partitions,
    CASE WHEN max(records) IS NULL THEN max(unknown_reason) END AS unknown_reason
FROM ranked
GROUP BY cluster_id, hour, group_id, topic
