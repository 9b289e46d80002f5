-- kind: answer
-- grain: one row per group, topic and cause
-- area: groups
-- level: admin_api
-- question: Causes of lag. Why does a group lag?
-- description: Why groups lag: one row {per}, the surest first, where the oldest record left is
--   more than a minute old, where a transaction has been open in the way for as long, or where
--   members never committed. Evidence is of the ten minutes before known_at. What clients name is no
--   proof of who is guilty.
-- empty: while no group is more than a minute behind
-- key: cluster_id, group_id, topic, rank
-- time: known_at
-- clustering: group_id, topic
-- lookbacks:
--   replica_offsets: 1 d
--   group_commits: 1 d
--   pipeline_progress: 7 d
--   requests: 1 h
--   client_metrics: 1 h
--   traffic: 1 h
--   fetch_sizes: 1 h
--   active_producers: 14 d
--   transactional_ids: 14 d
--   quota_usage: 1 h
--   fetch_faults: 1 h
--   group_members: 1 h
--   group_member_events: 1 h
--   share_fetches: 1 h
-- columns:
--   from group_lag: cluster_id, group_id, group_type, topic
--   known_at TIMESTAMP: last time at which a position or an end of the cluster is known
--   lag BIGINT: records left in all partitions where it is known; null: it is known in none
--   lag_s DOUBLE: age of the oldest record left, in seconds; null: it is not known of a partition
--   since TIMESTAMP: when that record was written: end_known_at - lag_s of its partition in
--     group_lag; null: lag_s is
--   retention_left_s DOUBLE: the least of its partitions, as in group_lag; null: not known of any
--   records_in_per_s DOUBLE: records written in a second, as in group_lag; null: not known
--   records_out_per_s DOUBLE: how many offsets the group moved on in a second, 0 if it did not in
--     the last three minutes; null: not known of every partition
--   trend STRING: blocked, growing, shrinking, steady, went_back or unknown, as in group_lag
--   caught_up_in_s DOUBLE: seconds until lag is 0 at these rates; null: it does not shrink
--   rank INT: 1 for the surest cause
--   cause STRING: throttled, fetch_limited, far_replica, out_of_range, rebalancing, not_polling,
--     slow_processing, skewed_partitions, slow_broker, producers_faster, no_members, paused,
--     open_transaction, fenced_instance, not_subscribed, never_committed, stuck_partition, or
--     unknown
--   confidence DOUBLE: 0.3 to 0.95, how well the evidence supports it; null: the cause is unknown
--   detail STRING: which quota, limit, broker, partition, state, transactional.id,
--     group.instance.id, or trigger of the last rebalance; null: the cause has none, or it is not
--     known
--   evidence ARRAY<STRUCT<signal: STRING, value: DOUBLE>>: the numbers that the cause rests on;
--     those that are not known are left out. docs/groups.md says what each is

-- A group lags behind a topic if its oldest record left is more than a minute old: less is how
-- members work, who read and commit in turns.
WITH newest AS (
    SELECT
        cluster_id,
        max(greatest(position_known_at, coalesce(end_known_at, position_known_at))) AS known_at,
        unix_micros(
            max(greatest(position_known_at, coalesce(end_known_at, position_known_at)))
        ) - 600000000 AS since_us
    FROM group_lag
    GROUP BY cluster_id
),
farthest AS (
    SELECT
        positions.cluster_id,
        positions.group_id,
        positions.topic,
        positions.partition,
        max(positions.position) AS position,
        min(CASE WHEN positions.position = lags.position THEN unix_micros(positions.known_at) END)
            AS still_since_us,
        -- An end by fetches is as of the end of its minute.
        max(
            CASE
                WHEN unix_micros(positions.known_at) <= unix_micros(lags.end_known_at) - 60000000
                    THEN positions.position
            END
        ) AS position_by_end
    FROM group_positions AS positions
    INNER JOIN group_lag AS lags USING (cluster_id, group_id, topic, partition)
    GROUP BY positions.cluster_id, positions.group_id, positions.topic, positions.partition
),
partitions AS (
    -- A position that is known no more is one that does not move: nobody committed since.
    SELECT
        lags.*,
        newest.known_at,
        farthest.position AS farthest_position,
        farthest.position_by_end,
        CASE
            WHEN unix_micros(lags.position_known_at) < newest.since_us + 420000000
                OR farthest.still_since_us < newest.since_us + 420000000 THEN 0e0
            ELSE lags.records_out_per_s
        END AS moves_per_s,
        CASE
            WHEN lags.blocked_records > 0
                THEN (unix_micros(newest.known_at) - unix_micros(readable.open_since)) / 1e6
        END AS open_s,
        readable.open_producer_id,
        readable.open_transactional_id,
        readable.last_stable_offset,
        lags.lag_unknown_reason = 'never_committed'
        AND lags.end_offset > coalesce(readable.log_start_offset, 0) AS has_uncommitted,
        row_number() OVER (
            PARTITION BY lags.cluster_id, lags.group_id, lags.topic
            ORDER BY lags.lag DESC NULLS LAST, lags.partition
        ) AS nth
    FROM group_lag AS lags
    INNER JOIN newest USING (cluster_id)
    LEFT JOIN farthest USING (cluster_id, group_id, topic, partition)
    LEFT JOIN readable_partitions AS readable USING (cluster_id, topic, partition)
),
judged_partitions AS (
    SELECT
        *,
        -- It rests beside others of its member, which goes on with them.
        coalesce(
            lag > 0 AND moves_per_s = 0e0 AND member_id IS NOT NULL
            AND max(
                CASE
                    WHEN moves_per_s > 0e0 OR (lag = 0 AND records_in_per_s > 0e0) THEN 1 ELSE 0
                END
            ) OVER (PARTITION BY cluster_id, group_id, member_id) = 1,
            FALSE
        ) AS is_stuck
    FROM partitions
),
usual_in AS (
    -- What came before the last ten minutes.
    SELECT
        ends.cluster_id,
        ends.topic,
        ends.partition,
        (max(ends.end_offset) - min(ends.end_offset)) * 1e6
        / (max(unix_micros(ends.known_at)) - min(unix_micros(ends.known_at))) AS per_s
    FROM partition_ends AS ends
    INNER JOIN newest USING (cluster_id)
    WHERE unix_micros(ends.known_at) <= newest.since_us
    GROUP BY ends.cluster_id, ends.topic, ends.partition
    HAVING max(unix_micros(ends.known_at)) - min(unix_micros(ends.known_at)) >= 600000000
),
usual_out AS (
    SELECT
        positions.cluster_id,
        positions.group_id,
        positions.topic,
        positions.partition,
        (max(positions.position) - min(positions.position)) * 1e6
        / (max(unix_micros(positions.known_at)) - min(unix_micros(positions.known_at))) AS per_s
    FROM group_positions AS positions
    INNER JOIN newest USING (cluster_id)
    WHERE unix_micros(positions.known_at) <= newest.since_us
    GROUP BY positions.cluster_id, positions.group_id, positions.topic, positions.partition
    HAVING max(unix_micros(positions.known_at)) - min(unix_micros(positions.known_at)) >= 600000000
),
lagging AS (
    SELECT
        partitions.cluster_id,
        partitions.group_id,
        partitions.topic,
        max(partitions.group_type) AS group_type,
        max(partitions.known_at) AS known_at,
        sum(partitions.lag) AS lag,
        CASE
            WHEN count(CASE WHEN partitions.lag > 0 AND partitions.lag_s IS NULL THEN 1 END) = 0
                THEN max(partitions.lag_s)
        END AS lag_s,
        -- lag_s counts to when the end of each partition is known, which may be before known_at.
        CASE
            WHEN count(CASE WHEN partitions.lag > 0 AND partitions.lag_s IS NULL THEN 1 END) = 0
                THEN min(
                    CASE
                        WHEN partitions.lag > 0
                            THEN partitions.end_known_at - INTERVAL '1' SECOND * partitions.lag_s
                    END
                )
        END AS since,
        min(partitions.retention_left_s) AS retention_left_s,
        count(partitions.position) AS partitions,
        sum(partitions.records_in_per_s) AS records_in_per_s,
        CASE
            WHEN count(partitions.moves_per_s) = count(partitions.position)
                THEN sum(partitions.moves_per_s)
        END AS records_out_per_s,
        max(CASE WHEN partitions.trend = 'went_back' THEN 1 ELSE 0 END) AS went_back,
        -- An end that was known later than a position past it.
        sum(
            CASE
                WHEN partitions.position > partitions.end_offset
                    AND partitions.position_by_end > partitions.end_offset THEN 1
                ELSE 0
            END
        ) AS beyond_end_partitions,
        sum(CASE WHEN partitions.moves_per_s = 0e0 THEN partitions.lag ELSE 0 END) AS stalled_lag,
        count(partitions.moves_per_s) AS moves_known,
        sum(CASE WHEN partitions.members = 0 THEN partitions.lag ELSE 0 END) AS unassigned_lag,
        sum(
            CASE
                WHEN partitions.farthest_position > partitions.position
                    AND partitions.farthest_position <= partitions.end_offset
                    THEN partitions.farthest_position - partitions.position
                ELSE 0
            END
        ) AS reread_lag,
        max(CASE WHEN partitions.nth = 1 THEN partitions.partition END) AS hot_partition,
        max(CASE WHEN partitions.nth = 1 THEN partitions.lag END) AS hot_lag,
        max(CASE WHEN partitions.nth = 1 THEN partitions.records_in_per_s END) AS hot_in_per_s,
        sum(usual_in.per_s) AS usual_in_per_s,
        CASE WHEN count(usual_out.per_s) = count(partitions.position) THEN sum(usual_out.per_s) END
            AS usual_out_per_s,
        sum(partitions.blocked_records) AS blocked_records,
        max(partitions.open_s) AS open_s,
        max_by(partitions.open_producer_id, partitions.open_s) AS open_producer_id,
        max_by(partitions.open_transactional_id, partitions.open_s) AS open_transactional_id,
        max_by(partitions.partition, partitions.open_s) AS open_partition,
        max_by(partitions.last_stable_offset, partitions.open_s) AS open_offset,
        sum(CASE WHEN partitions.has_uncommitted THEN 1 ELSE 0 END) AS uncommitted_partitions,
        sum(CASE WHEN partitions.is_stuck THEN partitions.lag ELSE 0 END) AS stuck_lag,
        max_by(
            partitions.partition, CASE WHEN partitions.is_stuck THEN partitions.lag END
        ) AS stuck_partition,
        sum(CASE WHEN partitions.members > 0 THEN 1 ELSE 0 END) AS assigned_partitions
    FROM judged_partitions AS partitions
    LEFT JOIN usual_in USING (cluster_id, topic, partition)
    LEFT JOIN usual_out USING (cluster_id, group_id, topic, partition)
    GROUP BY partitions.cluster_id, partitions.group_id, partitions.topic
    HAVING
        beyond_end_partitions > 0
        OR max(partitions.open_s) > 60e0
        OR uncommitted_partitions > 0
        OR max(
            CASE
                WHEN partitions.lag > 0
                    THEN coalesce(
                        partitions.lag_s,
                        partitions.lag / nullif(partitions.records_in_per_s, 0e0),
                        61e0
                    )
            END
        ) > 60e0
),
clients AS (
    SELECT
        seen.cluster_id,
        seen.group_id,
        seen.principal,
        seen.client_id,
        sum(seen.heartbeats) AS heartbeats,
        sum(seen.commits) AS commits,
        sum(
            CASE
                WHEN unix_micros(seen.event_time) >= newest.since_us + 420000000 THEN seen.commits
                ELSE 0
            END
        ) AS recent_commits,
        min(unix_micros(seen.event_time)) AS seen_from_us
    FROM group_members AS seen
    INNER JOIN newest USING (cluster_id)
    WHERE
        unix_micros(seen.event_time) >= newest.since_us
        AND seen.event_time <= newest.known_at
    GROUP BY seen.cluster_id, seen.group_id, seen.principal, seen.client_id
),
member_counts AS (
    SELECT
        cluster_id,
        group_id,
        sum(heartbeats) AS heartbeats,
        sum(commits) AS commits,
        sum(recent_commits) AS recent_commits,
        min(seen_from_us) AS seen_from_us,
        max(groups_of_client) AS groups_of_client
    FROM (
        SELECT
            *,
            count(*) OVER (PARTITION BY cluster_id, principal, client_id) AS groups_of_client
        FROM clients
    ) AS shared
    GROUP BY cluster_id, group_id
),
fetched AS (
    SELECT
        served.cluster_id,
        served.principal,
        served.client_id,
        served.broker_id,
        served.connection_id,
        coalesce(served.weight, 1e0) AS weight,
        unix_millis(served.event_time) AS ms,
        coalesce(served.request_queue_time_ms, 0e0) + coalesce(served.local_time_ms, 0e0)
        + coalesce(served.response_queue_time_ms, 0e0) AS broker_ms,
        coalesce(served.send_time_ms, 0e0) AS send_ms,
        coalesce(served.total_time_ms, 0e0) AS total_ms,
        coalesce(served.throttle_time_ms, 0e0) AS throttle_ms
    FROM requests AS served
    INNER JOIN newest USING (cluster_id)
    WHERE
        served.api IN ('FETCH', 'SHARE_FETCH')
        AND served.replica_id IS NULL
        AND unix_micros(served.event_time) >= newest.since_us
        AND served.event_time <= newest.known_at
),
fetch_times AS (
    -- A member fetches from each broker by one connection, and many members may have one client id.
    SELECT
        cluster_id,
        principal,
        client_id,
        broker_id,
        sum(weight) AS fetches,
        sum(weight * broker_ms) AS broker_ms,
        sum(weight * send_ms) AS send_ms,
        sum(weight * total_ms) AS total_ms,
        sum(weight * throttle_ms) AS throttle_ms,
        CAST(greatest(max(ms) - min(ms), 60000) AS DOUBLE) AS span_ms
    FROM fetched
    GROUP BY cluster_id, principal, client_id, broker_id, connection_id
),
compared_times AS (
    SELECT
        *,
        sum(fetches) OVER (PARTITION BY cluster_id) - sum(fetches) OVER of_broker
            AS other_fetches,
        sum(broker_ms) OVER (PARTITION BY cluster_id) - sum(broker_ms) OVER of_broker
            AS other_broker_ms,
        sum(total_ms) OVER of_client / sum(fetches) OVER of_client AS mean_total_ms,
        sum(throttle_ms) OVER of_client / sum(fetches) OVER of_client AS mean_throttle_ms
    FROM fetch_times
    WINDOW
        of_broker AS (PARTITION BY cluster_id, broker_id),
        of_client AS (PARTITION BY cluster_id, principal, client_id)
),
metrics AS (
    SELECT points.*
    FROM client_metrics AS points
    INNER JOIN newest USING (cluster_id)
    WHERE
        points.metric IN (
            'org.apache.kafka.consumer.poll.idle.ratio.avg',
            'org.apache.kafka.consumer.share.poll.idle.ratio.avg',
            'org.apache.kafka.consumer.time.between.poll.avg',
            'org.apache.kafka.consumer.share.time.between.poll.avg',
            'org.apache.kafka.consumer.last.poll.seconds.ago',
            'org.apache.kafka.consumer.share.last.poll.seconds.ago',
            'org.apache.kafka.consumer.fetch.manager.fetch.latency.avg',
            'org.apache.kafka.consumer.share.fetch.manager.fetch.latency.avg'
        )
        AND coalesce(points.accepted, TRUE)
        AND points.value >= 0e0
        AND (NOT isnan(points.value) OR points.metric LIKE '%.poll.idle.ratio.avg')
        AND unix_micros(points.event_time) >= newest.since_us
        AND points.event_time <= newest.known_at
),
instances AS (
    SELECT
        cluster_id,
        principal,
        client_id,
        client_instance_id,
        max(group_id) AS named_group,
        -- Of polls within a millisecond Java clients have no mean any more: what they pushed before is
        -- out of date.
        CASE
            WHEN NOT isnan(max_by(
                CASE WHEN metric LIKE '%.poll.idle.ratio.avg' THEN value END,
                CASE WHEN metric LIKE '%.poll.idle.ratio.avg' THEN event_time END
            ))
                THEN avg(
                    CASE
                        WHEN metric LIKE '%.poll.idle.ratio.avg' AND NOT isnan(value) THEN value
                    END
                )
        END AS poll_idle_ratio,
        avg(CASE WHEN metric LIKE '%.time.between.poll.avg' THEN value END)
            AS time_between_polls_ms,
        max_by(
            CASE WHEN metric LIKE '%.last.poll.seconds.ago' THEN value END,
            CASE WHEN metric LIKE '%.last.poll.seconds.ago' THEN event_time END
        ) AS last_poll_s,
        avg(CASE WHEN metric LIKE '%.fetch.latency.avg' THEN value END) AS fetch_latency_ms
    FROM metrics
    GROUP BY cluster_id, principal, client_id, client_instance_id
),
-- Who pushes is authenticated; the group that it names is not, so it counts only where the request
-- log shows no members of the group.
group_instances AS (
    SELECT instances.*, clients.group_id
    FROM instances
    INNER JOIN clients
        ON instances.cluster_id = clients.cluster_id
        AND instances.principal IS NOT DISTINCT FROM clients.principal
        AND instances.client_id IS NOT DISTINCT FROM clients.client_id
    WHERE instances.named_group IS NULL OR instances.named_group = clients.group_id
    UNION ALL
    SELECT instances.*, instances.named_group AS group_id
    FROM instances
    LEFT ANTI JOIN clients
        ON instances.cluster_id = clients.cluster_id AND instances.named_group = clients.group_id
    WHERE instances.named_group IS NOT NULL
),
telemetry AS (
    SELECT
        cluster_id,
        group_id,
        min(poll_idle_ratio) AS poll_idle_ratio,
        max(time_between_polls_ms) AS time_between_polls_ms,
        max(last_poll_s) AS last_poll_s
    FROM group_instances
    GROUP BY cluster_id, group_id
),
latencies AS (
    SELECT
        cluster_id,
        group_id,
        principal,
        client_id,
        avg(fetch_latency_ms) AS fetch_latency_ms,
        -- A client may read an answer only when its application polls again.
        max(time_between_polls_ms * (1e0 - poll_idle_ratio)) AS work_ms
    FROM group_instances
    GROUP BY cluster_id, group_id, principal, client_id
),
-- A row is a connection of a client of a group to a broker. The network has what the client waits longer than the
-- broker works, or the time in which the broker sends.
group_fetches AS (
    SELECT
        clients.cluster_id,
        clients.group_id,
        times.broker_id,
        times.fetches,
        times.fetches * 1e3 / times.span_ms AS fetches_per_s,
        times.throttle_ms / times.span_ms AS throttle_time_share,
        times.broker_ms / times.span_ms AS broker_time_share,
        times.broker_ms / times.fetches AS broker_ms,
        times.other_broker_ms / nullif(times.other_fetches, 0e0) AS other_brokers_ms,
        greatest(
            times.send_ms / times.fetches,
            coalesce(
                latencies.fetch_latency_ms - times.mean_total_ms - times.mean_throttle_ms
                - coalesce(latencies.work_ms, 0e0),
                0e0
            )
        ) AS network_ms,
        times.fetches / times.span_ms AS fetches_per_ms
    FROM clients
    INNER JOIN compared_times AS times
        ON clients.cluster_id = times.cluster_id
        AND clients.principal IS NOT DISTINCT FROM times.principal
        AND clients.client_id IS NOT DISTINCT FROM times.client_id
    LEFT JOIN latencies
        ON clients.cluster_id = latencies.cluster_id
        AND clients.group_id = latencies.group_id
        AND clients.principal IS NOT DISTINCT FROM latencies.principal
        AND clients.client_id IS NOT DISTINCT FROM latencies.client_id
),
fetching AS (
    SELECT
        cluster_id,
        group_id,
        sum(fetches) AS fetches,
        max(fetches_per_s) AS fetches_per_s,
        least(max(throttle_time_share), 1e0) AS throttle_time_share,
        least(max(broker_time_share), 1e0) AS broker_time_share,
        max_by(broker_id, broker_time_share) AS broker_id,
        max_by(broker_ms, broker_time_share) AS broker_ms,
        max_by(other_brokers_ms, broker_time_share) AS other_brokers_ms,
        least(max(network_ms * fetches_per_ms), 1e0) AS network_time_share,
        max_by(network_ms, network_ms * fetches_per_ms) AS network_ms
    FROM group_fetches
    GROUP BY cluster_id, group_id
),
throttles AS (
    SELECT
        clients.cluster_id,
        clients.group_id,
        used.throttled_by,
        sum(used.throttle_time_ms) AS throttle_time_ms,
        max(CASE WHEN used.quota_type = used.throttled_by THEN used.quota END) AS quota
    FROM quota_usage AS used
    INNER JOIN newest USING (cluster_id)
    INNER JOIN clients
        ON used.cluster_id = clients.cluster_id
        AND used.principal IS NOT DISTINCT FROM clients.principal
        AND used.client_id IS NOT DISTINCT FROM clients.client_id
    WHERE
        used.throttled_by IS NOT NULL
        AND used.throttle_time_ms > 0e0
        AND unix_micros(used.event_time) >= newest.since_us
        AND used.event_time <= newest.known_at
    GROUP BY clients.cluster_id, clients.group_id, used.throttled_by
),
throttled AS (
    SELECT
        cluster_id,
        group_id,
        max_by(throttled_by, throttle_time_ms) AS throttled_by,
        max_by(quota, throttle_time_ms) AS quota
    FROM throttles
    GROUP BY cluster_id, group_id
),
sizes AS (
    SELECT
        clients.cluster_id,
        clients.group_id,
        CAST(sum(
            sized.fetches - sized.wait_timeout_fetches - sized.throttled_fetches
            - sized.redirected_fetches - sized.error_fetches
        ) AS DOUBLE) AS answers,
        sum(sized.max_bytes_fetches) AS max_bytes_fetches,
        sum(sized.partition_max_bytes_fetches) AS partition_max_bytes_fetches,
        sum(sized.first_batch_fetches) AS first_batch_fetches,
        sum(sized.broker_cap_fetches) AS broker_cap_fetches,
        max(sized.max_bytes) AS max_bytes,
        max(sized.partition_max_bytes) AS partition_max_bytes
    FROM fetch_sizes AS sized
    INNER JOIN newest USING (cluster_id)
    INNER JOIN clients
        ON sized.cluster_id = clients.cluster_id
        AND sized.principal IS NOT DISTINCT FROM clients.principal
        AND sized.client_id IS NOT DISTINCT FROM clients.client_id
    WHERE
        sized.replica_id IS NULL
        AND unix_micros(sized.event_time) >= newest.since_us
        AND sized.event_time <= newest.known_at
    GROUP BY clients.cluster_id, clients.group_id
),
limits AS (
    SELECT
        *,
        greatest(
            max_bytes_fetches, partition_max_bytes_fetches, first_batch_fetches, broker_cap_fetches
        ) AS limited
    FROM sizes
),
limited AS (
    SELECT
        cluster_id,
        group_id,
        limited / nullif(answers, 0e0) AS limit_share,
        CASE
            WHEN limited = 0 THEN NULL
            WHEN limited = partition_max_bytes_fetches THEN 'partition_max_bytes'
            WHEN limited = max_bytes_fetches THEN 'max_bytes'
            WHEN limited = broker_cap_fetches THEN 'broker_cap'
            ELSE 'first_batch'
        END AS limited_by,
        CASE
            WHEN limited = 0 THEN NULL
            WHEN limited = partition_max_bytes_fetches THEN partition_max_bytes
            WHEN limited = max_bytes_fetches THEN max_bytes
            WHEN limited = broker_cap_fetches THEN NULL
            ELSE partition_max_bytes
        END AS limit_bytes
    FROM limits
),
consumed AS (
    SELECT
        clients.cluster_id,
        clients.group_id,
        moved.topic,
        sum(moved.bytes) AS consumed_bytes,
        sum(moved.bytes) FILTER (
            WHERE unix_micros(moved.event_time) >= newest.since_us + 420000000
        ) AS recent_bytes,
        sum(moved.cross_rack_bytes) * 1e0
        / nullif(sum(CASE WHEN moved.cross_rack_bytes IS NOT NULL THEN moved.bytes END), 0)
            AS cross_rack_share
    FROM traffic AS moved
    INNER JOIN newest USING (cluster_id)
    INNER JOIN clients
        ON moved.cluster_id = clients.cluster_id
        AND moved.principal IS NOT DISTINCT FROM clients.principal
        AND moved.client_id IS NOT DISTINCT FROM clients.client_id
    WHERE
        moved.direction = 'consumed'
        AND moved.topic IS NOT NULL
        AND unix_micros(moved.event_time) >= newest.since_us
        AND moved.event_time <= newest.known_at
    GROUP BY clients.cluster_id, clients.group_id, moved.topic
),
-- Brokers log no bytes of a SHARE_FETCH, and what it acquires.
acquired AS (
    SELECT
        gained.cluster_id,
        gained.group_id,
        gained.topic,
        sum(gained.acquired_records) AS records,
        sum(gained.acquired_records) FILTER (
            WHERE unix_micros(gained.event_time) >= newest.since_us + 420000000
        ) AS recent_records
    FROM share_fetches AS gained
    INNER JOIN newest USING (cluster_id)
    WHERE
        unix_micros(gained.event_time) >= newest.since_us
        AND gained.event_time <= newest.known_at
    GROUP BY gained.cluster_id, gained.group_id, gained.topic
),
out_of_range AS (
    SELECT
        clients.cluster_id,
        clients.group_id,
        faults.topic,
        sum(faults.answers) AS answers
    FROM fetch_faults AS faults
    INNER JOIN newest USING (cluster_id)
    INNER JOIN clients
        ON faults.cluster_id = clients.cluster_id
        AND faults.principal IS NOT DISTINCT FROM clients.principal
        AND faults.client_id IS NOT DISTINCT FROM clients.client_id
    WHERE
        faults.fault IN ('offset_too_small', 'offset_too_large', 'out_of_range_unknown')
        AND unix_micros(faults.event_time) >= newest.since_us
        AND faults.event_time <= newest.known_at
    GROUP BY clients.cluster_id, clients.group_id, faults.topic
),
rebalanced AS (
    SELECT
        done.cluster_id,
        done.group_id,
        count(*) AS rebalances,
        sum(done.stopped_ms) AS stopped_ms,
        -- A group that is seen for less than ten minutes had less time to stop in.
        max(greatest(
            6e4,
            coalesce((unix_micros(newest.known_at) - member_counts.seen_from_us) / 1e3, 6e5)
        )) AS seen_ms,
        max_by(done.trigger, done.started_at) AS rebalance_trigger
    FROM rebalances AS done
    INNER JOIN newest USING (cluster_id)
    LEFT JOIN member_counts USING (cluster_id, group_id)
    WHERE unix_micros(done.started_at) >= newest.since_us AND done.started_at <= newest.known_at
    GROUP BY done.cluster_id, done.group_id
),
timed_out AS (
    -- What Java clients give as their reason (KIP-800).
    SELECT happened.cluster_id, happened.group_id, count(*) AS poll_timeouts
    FROM group_member_events AS happened
    INNER JOIN newest USING (cluster_id)
    WHERE
        happened.event = 'left'
        AND happened.reason LIKE '%consumer poll timeout has expired%'
        AND unix_micros(happened.event_time) >= newest.since_us - 3000000000
        AND happened.event_time <= newest.known_at
    GROUP BY happened.cluster_id, happened.group_id
),
fenced AS (
    -- Two that run with one group.instance.id take each other's place (KIP-345).
    SELECT
        cluster_id,
        group_id,
        sum(fenced_answers) AS fenced_answers,
        max(claimants) AS instance_claimants,
        max_by(group_instance_id, fenced_answers) AS group_instance_id
    FROM (
        SELECT
            seen.cluster_id,
            seen.group_id,
            seen.group_instance_id,
            sum(seen.fenced_answers) AS fenced_answers,
            count(DISTINCT concat(coalesce(seen.member_id, ''), ' ', seen.client_address))
                AS claimants
        FROM group_members AS seen
        INNER JOIN newest USING (cluster_id)
        WHERE
            seen.group_instance_id IS NOT NULL
            AND unix_micros(seen.event_time) >= newest.since_us
            AND seen.event_time <= newest.known_at
        GROUP BY seen.cluster_id, seen.group_id, seen.group_instance_id
    ) AS by_instance
    GROUP BY cluster_id, group_id
),
described AS (
    SELECT cluster_id, group_id, count(assigned_partitions) AS members
    FROM current_group_assignments
    GROUP BY cluster_id, group_id
),
logged AS (
    SELECT DISTINCT cluster_id FROM fetched
)

SELECT
    lagging.cluster_id,
    lagging.group_id,
    lagging.group_type,
    lagging.topic,
    lagging.known_at,
    lagging.lag,
    lagging.lag_s,
    lagging.since,
    lagging.retention_left_s,
    lagging.records_in_per_s,
    lagging.records_out_per_s,
    CASE
        WHEN lagging.lag = 0 AND lagging.open_s > 60e0 THEN 'blocked'
        WHEN lagging.went_back = 1 THEN 'went_back'
        WHEN lagging.lag IS NULL OR lagging.records_in_per_s IS NULL
            OR lagging.records_out_per_s IS NULL THEN 'unknown'
        WHEN lagging.records_out_per_s > lagging.records_in_per_s * 1.05 THEN 'shrinking'
        WHEN lagging.records_in_per_s > lagging.records_out_per_s * 1.05 THEN 'growing'
        ELSE 'steady'
    END AS trend,
    CASE
        WHEN lagging.went_back = 0
            AND lagging.records_out_per_s > lagging.records_in_per_s * 1.05
            THEN lagging.lag / (lagging.records_out_per_s - lagging.records_in_per_s)
    END AS caught_up_in_s,
    lagging.records_in_per_s / nullif(lagging.usual_in_per_s, 0e0) AS in_ratio,
    lagging.records_out_per_s / nullif(lagging.usual_out_per_s, 0e0) AS out_ratio,
    CASE
        WHEN lagging.moves_known = lagging.partitions
            THEN lagging.stalled_lag * 1e0 / nullif(lagging.lag, 0)
    END AS stalled_lag_share,
    CASE
        WHEN current_groups.group_id IS NOT NULL
            THEN lagging.unassigned_lag * 1e0 / nullif(lagging.lag, 0)
    END AS unassigned_lag_share,
    CASE
        WHEN lagging.reread_lag > lagging.lag THEN 1e0
        ELSE lagging.reread_lag * 1e0 / nullif(lagging.lag, 0)
    END AS reread_lag_share,
    lagging.beyond_end_partitions,
    lagging.partitions,
    lagging.hot_partition,
    lagging.hot_lag * 1e0 / nullif(lagging.lag, 0) AS hot_lag_share,
    lagging.hot_in_per_s * (lagging.partitions - 1)
    / nullif(lagging.records_in_per_s - lagging.hot_in_per_s, 0e0) AS hot_in_ratio,
    current_groups.state AS group_state,
    current_groups.members,
    member_counts.heartbeats,
    member_counts.commits,
    member_counts.recent_commits,
    CASE WHEN logged.cluster_id IS NOT NULL THEN coalesce(fetching.fetches, 0e0) END AS fetches,
    -- Without members in the log nobody knows who reads for the group.
    CASE
        WHEN lagging.group_type = 'share' AND acquired.records > 0 THEN NULL
        WHEN logged.cluster_id IS NOT NULL AND member_counts.group_id IS NOT NULL
            THEN coalesce(consumed.consumed_bytes, 0)
    END AS consumed_bytes,
    CASE
        WHEN lagging.group_type = 'share' AND acquired.recent_records > 0 THEN NULL
        WHEN logged.cluster_id IS NOT NULL AND member_counts.group_id IS NOT NULL
            THEN coalesce(consumed.recent_bytes, 0)
    END AS recent_bytes,
    CASE WHEN lagging.group_type = 'share' THEN acquired.records END AS acquired_records,
    member_counts.groups_of_client,
    fetching.fetches_per_s,
    fetching.throttle_time_share,
    throttled.throttled_by,
    throttled.quota,
    limited.limit_share,
    limited.limited_by,
    limited.limit_bytes,
    fetching.broker_time_share,
    fetching.broker_id,
    fetching.broker_ms,
    fetching.other_brokers_ms,
    fetching.network_time_share,
    fetching.network_ms,
    consumed.cross_rack_share,
    rebalanced.rebalances,
    CASE
        WHEN rebalanced.stopped_ms > rebalanced.seen_ms THEN 1e0
        ELSE rebalanced.stopped_ms / rebalanced.seen_ms
    END AS rebalance_time_share,
    rebalanced.rebalance_trigger,
    CASE
        WHEN telemetry.poll_idle_ratio > 1e0 THEN 1e0
        ELSE telemetry.poll_idle_ratio
    END AS poll_idle_ratio,
    telemetry.time_between_polls_ms,
    telemetry.last_poll_s,
    timed_out.poll_timeouts,
    out_of_range.answers AS out_of_range_answers,
    lagging.blocked_records,
    lagging.open_s AS open_transaction_s,
    lagging.open_producer_id AS producer_id,
    coalesce(
        lagging.open_transactional_id,
        concat('producer id ', CAST(lagging.open_producer_id AS STRING))
    ) AS transaction_of,
    lagging.open_partition,
    lagging.open_offset AS start_offset,
    lagging.uncommitted_partitions,
    CASE WHEN described.members >= current_groups.members THEN lagging.assigned_partitions END
        AS assigned_partitions,
    fenced.fenced_answers,
    fenced.instance_claimants,
    fenced.group_instance_id,
    lagging.stuck_partition,
    CASE WHEN lagging.stuck_partition IS NOT NULL THEN lagging.stuck_lag * 1e0 / lagging.lag END
        AS stuck_lag_share
FROM lagging
LEFT JOIN current_groups USING (cluster_id, group_id)
LEFT JOIN member_counts USING (cluster_id, group_id)
LEFT JOIN fetching USING (cluster_id, group_id)
LEFT JOIN throttled USING (cluster_id, group_id)
LEFT JOIN limited USING (cluster_id, group_id)
LEFT JOIN consumed USING (cluster_id, group_id, topic)
LEFT JOIN acquired USING (cluster_id, group_id, topic)
LEFT JOIN rebalanced USING (cluster_id, group_id)
LEFT JOIN telemetry USING (cluster_id, group_id)
LEFT JOIN timed_out USING (cluster_id, group_id)
LEFT JOIN out_of_range USING (cluster_id, group_id, topic)
LEFT JOIN logged USING (cluster_id)
LEFT JOIN fenced USING (cluster_id, group_id)
LEFT JOIN described USING (cluster_id, group_id)
WHERE
    -- Who keeps its offsets elsewhere never commits, and reads all the same.
    lagging.partitions > 0 OR coalesce(consumed.consumed_bytes, 0) = 0
