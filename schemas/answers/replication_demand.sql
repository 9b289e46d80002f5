-- kind: answer
-- grain: one row per broker and side with replicas that are listed or moved in the last hour with
--   replication
-- area: replication
-- level: sampled_log
-- description: The numbers that decide the rate of a replication throttle (KIP-73), for
--   replication_rate_advice.
-- key: cluster_id, broker_id, side
-- time: event_time
-- clustering: event_time, broker_id
-- lookbacks:
--   replication_traffic: 7 d
--   rack_traffic: 7 d
--   preferred_replicas: 10 min
--   replication_throttles: 1 h
-- columns:
--   from replication_throttles: cluster_id, broker_id, side
--   since TIMESTAMP: first minute of the hour in which replicas were listed or moved
--   event_time TIMESTAMP: last minute with data about replication
--   is_listed BOOLEAN: a list names replicas of this side now
--   is_moving BOOLEAN: replicas of this side are moved now
--   is_used BOOLEAN: such replicas are moved or behind now
--   replicas_behind BIGINT: replications covered by a list that were out of sync in the last ten
--     minutes
--   capacity_bytes_per_s DOUBLE: capacity of the broker for all its traffic on this side, in bytes
--     per second; null: conf has none
--   capacity_source STRING: conf (its settings) or latency (the least it carried in a minute of the
--     hour in which its clients waited, if that is less than conf's); null: conf has none
--   carried_at_most_bytes_per_s DOUBLE: the most it carried on this side in a minute of the last
--     seven days, in bytes per second: its capacity is no less, and may be far more; null: no
--     minute is known
--   other_bytes_per_s DOUBLE: traffic that no list covers, in bytes per second: the busiest of the
--     last ten minutes, plus what replicas that are being added and leaders to be will add
--   floor_bytes_per_s DOUBLE: what is written into the listed partitions, in bytes per second, for
--     a leader times the followers; brokers charge those in sync too
--   rate DOUBLE: rate now, in bytes per second; null: none is set
--   rate_source STRING: dynamic_broker or dynamic_default; null: none is set
--   rate_set_at TIMESTAMP: when the rate was set; null: not known
--   rate_set_by STRING: principal that set it; null: not known
--   rate_set_by_client_id STRING: its client.id: untrusted text; null: not known
--   rate_age_s DOUBLE: age of the rate at the end of event_time, in seconds; null: it is older than
--     the log
--   are_clients_healthy BOOLEAN: no minute of the last three since the rate was set is slow
--     (broker_degradation); null: none has requests of clients
--   produce_p99_ms DOUBLE: greatest p99 of PRODUCE in those minutes, in ms; null: none
--   usual_produce_p99_ms DOUBLE: usual p99 of PRODUCE, in ms; null: none
--   fetch_p99_ms DOUBLE: greatest p99 of consumer FETCH in those minutes, in ms; null: none
--   usual_fetch_p99_ms DOUBLE: usual p99 of consumer FETCH, in ms; null: none
--   shrunk_partitions BIGINT: most partitions in one of those minutes whose ISR shrank to
--     min.insync.replicas or below
--   share DOUBLE: part of the free capacity that replication can take, 0 to 1
--   hysteresis DOUBLE: a rate changes only if the new one differs by more than this part of it, 0
--     to 1
--   max_step_factor DOUBLE: a rate grows or shrinks at most by this factor at once
--   cooldown_s DOUBLE: a rate stays at least this long, in seconds

WITH recent AS (
    SELECT
        throttles.*,
        newest.event_time AS now,
        CASE WHEN throttles.event_time = newest.event_time THEN 1 ELSE 0 END AS is_last
    FROM replication_throttles AS throttles
    INNER JOIN replication_time AS newest USING (cluster_id)
    WHERE unix_micros(throttles.event_time) > unix_micros(newest.event_time) - 3600000000
),
sides AS (
    SELECT
        cluster_id,
        broker_id,
        side,
        min(event_time) AS since,
        max(now) AS now,
        max(CASE WHEN is_last = 1 AND is_configured AND listed <> 'unlisted' THEN 1 ELSE 0 END) = 1
            AS is_listed,
        max(CASE WHEN is_last = 1 AND is_moving THEN 1 ELSE 0 END) = 1 AS is_moving,
        max(
            CASE
                WHEN is_last = 1
                    AND (is_configured OR listed = 'unlisted')
                    AND (is_moving OR NOT in_isr OR offset_lag > 0) THEN 1
                ELSE 0
            END
        ) = 1 AS is_used
    FROM recent
    WHERE topic IS NOT NULL AND broker_id IS NOT NULL AND (listed <> 'unlisted' OR is_moving)
    GROUP BY cluster_id, broker_id, side
),
floors AS (
    SELECT
        cluster_id,
        broker_id,
        side,
        sum(written_bytes_per_s) AS floor_bytes_per_s,
        sum(CASE WHEN is_added THEN written_bytes_per_s ELSE 0e0 END) AS added_bytes_per_s,
        count(CASE WHEN is_behind THEN 1 END) AS replicas_behind
    FROM listed_replication
    GROUP BY cluster_id, broker_id, side
),
led AS (
    SELECT
        cluster_id,
        broker_id,
        'leader' AS side,
        sum(read_bytes_per_s + replicated_bytes_per_s) AS led_bytes_per_s
    FROM next_leaders
    GROUP BY cluster_id, broker_id
),
rated AS (
    SELECT
        cluster_id,
        broker_id,
        side,
        max(rate) AS rate,
        max(rate_source) AS rate_source,
        max(rate_set_at) AS rate_set_at,
        max(rate_set_by) AS rate_set_by,
        max(rate_set_by_client_id) AS rate_set_by_client_id
    FROM recent
    WHERE
        is_last = 1
        AND rate > 0
        AND rate_source IN ('dynamic_broker', 'dynamic_default')
        AND (topic IS NOT NULL OR is_configured)
    GROUP BY cluster_id, broker_id, side
),
capacities AS (
    SELECT
        carried.cluster_id,
        carried.broker_id,
        carried.side,
        max(carried.bytes) / 60e0 AS carried_at_most_bytes_per_s,
        max(
            CASE
                WHEN unix_micros(carried.event_time) > unix_micros(newest.event_time) - 600000000
                    THEN carried.other_bytes
            END
        ) / 60e0 AS other,
        min(
            CASE
                WHEN degradation.is_slow
                    AND carried.bytes > carried.other_bytes
                    AND carried.event_time < newest.event_time THEN carried.bytes
            END
        ) / 60e0 AS degraded_bytes_per_s
    FROM broker_minutes AS carried
    INNER JOIN replication_time AS newest USING (cluster_id)
    LEFT JOIN broker_degradation AS degradation
        ON carried.cluster_id = degradation.cluster_id
            AND carried.broker_id = degradation.broker_id
            AND carried.event_time = degradation.event_time
    WHERE unix_micros(carried.event_time) > unix_micros(newest.event_time) - 604800000000
    GROUP BY carried.cluster_id, carried.broker_id, carried.side
),
recent_latency AS (
    SELECT
        sides.cluster_id,
        sides.broker_id,
        sides.side,
        max(CASE WHEN degradation.is_slow THEN 1 WHEN NOT degradation.is_slow THEN 0 END) AS is_any_slow,
        max(degradation.produce_p99_ms) AS produce_p99_ms,
        max(degradation.usual_produce_p99_ms) AS usual_produce_p99_ms,
        max(degradation.fetch_p99_ms) AS fetch_p99_ms,
        max(degradation.usual_fetch_p99_ms) AS usual_fetch_p99_ms,
        max(degradation.shrunk_partitions) AS shrunk_partitions
    FROM sides
    LEFT JOIN rated USING (cluster_id, broker_id, side)
    INNER JOIN broker_degradation AS degradation
        ON sides.cluster_id = degradation.cluster_id
            AND sides.broker_id = degradation.broker_id
            AND unix_micros(degradation.event_time) > unix_micros(sides.now) - 180000000
            AND (rated.rate_set_at IS NULL OR degradation.event_time >= rated.rate_set_at)
    GROUP BY sides.cluster_id, sides.broker_id, sides.side
),
own AS (
    SELECT cluster_id, setting, CAST(setting_value AS DOUBLE) AS capacity
    FROM current_settings
    WHERE setting LIKE 'replication.brokers.%'
),
inputs AS (
    SELECT
        sides.*,
        coalesce(own.capacity, bounds.capacity_bytes_per_s) AS conf_capacity,
        capacities.carried_at_most_bytes_per_s,
        capacities.degraded_bytes_per_s,
        coalesce(capacities.other, 0e0) AS other_now,
        coalesce(floors.floor_bytes_per_s, 0e0) AS floor_bytes_per_s,
        coalesce(floors.added_bytes_per_s, 0e0) AS added_bytes_per_s,
        coalesce(led.led_bytes_per_s, 0e0) AS led_bytes_per_s,
        coalesce(floors.replicas_behind, 0) AS replicas_behind,
        rated.rate,
        rated.rate_source,
        rated.rate_set_at,
        rated.rate_set_by,
        rated.rate_set_by_client_id,
        recent_latency.produce_p99_ms,
        recent_latency.usual_produce_p99_ms,
        recent_latency.fetch_p99_ms,
        recent_latency.usual_fetch_p99_ms,
        coalesce(recent_latency.shrunk_partitions, 0) AS shrunk_partitions,
        recent_latency.is_any_slow = 0 AS are_clients_healthy,
        bounds.share,
        bounds.hysteresis,
        bounds.max_step_factor,
        bounds.cooldown_s
    FROM sides
    INNER JOIN replication_policy AS bounds USING (cluster_id)
    LEFT JOIN capacities USING (cluster_id, broker_id, side)
    LEFT JOIN floors USING (cluster_id, broker_id, side)
    LEFT JOIN led USING (cluster_id, broker_id, side)
    LEFT JOIN rated USING (cluster_id, broker_id, side)
    LEFT JOIN recent_latency USING (cluster_id, broker_id, side)
    LEFT JOIN own
        ON sides.cluster_id = own.cluster_id
            AND concat('replication.brokers.', CAST(sides.broker_id AS STRING)) = own.setting
)

SELECT
    *,
    now AS event_time,
    CASE WHEN degraded_bytes_per_s < conf_capacity THEN degraded_bytes_per_s ELSE conf_capacity END
        AS capacity_bytes_per_s,
    CASE
        WHEN degraded_bytes_per_s < conf_capacity THEN 'latency'
        WHEN conf_capacity IS NOT NULL THEN 'conf'
    END AS capacity_source,
    other_now + added_bytes_per_s + led_bytes_per_s AS other_bytes_per_s,
    (unix_micros(now) + 60000000 - unix_micros(rate_set_at)) / 1e6 AS rate_age_s
FROM inputs
