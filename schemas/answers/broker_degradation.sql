-- kind: answer
-- grain: one row per minute and broker, in the last hour with replication
-- area: replication
-- level: sampled_log
-- question: Slow brokers. Do clients wait longer than usual for a broker?
-- description: Whether clients wait for a broker, which means that a replication throttle is too
--   high, and how many partitions came down to min.insync.replicas, which it may be too low for. A
--   p99 of 20 or more requests is high if it is above conf's limit (replication.produce_p99_ms,
--   replication.fetch_p99_ms) and above replication.p99_rise_factor times the usual one. The p99 of
--   PRODUCE is the whole time from receive to sent; that of a consumer's FETCH leaves out the wait
--   for records.
-- key: cluster_id, event_time, broker_id
-- time: event_time
-- clustering: event_time
-- lookbacks:
--   requests: 1 h
--   replication_traffic: 1 h
--   replication_throttles: 1 h
-- columns:
--   from requests: cluster_id
--   event_time TIMESTAMP: start of the minute
--   broker_id INT: broker that answered the requests or has a replica of the partitions
--   produce_p99_ms DOUBLE: time within which 99 of 100 PRODUCE requests of the minute were
--     answered, in ms; null: there were none
--   usual_produce_p99_ms DOUBLE: median of produce_p99_ms over the minutes of the hour, in ms
--   fetch_p99_ms DOUBLE: time within which 99 of 100 consumer FETCHes of the minute were answered,
--     without the wait for records, in ms; null: there were none
--   usual_fetch_p99_ms DOUBLE: median of fetch_p99_ms over the minutes of the hour, in ms
--   shrunk_partitions BIGINT: partitions with a replica on the broker whose ISR shrank in the
--     minute to min.insync.replicas or below
--   is_slow BOOLEAN: clients wait: p99s of this minute and of the one before it are high; null: no
--     client sent requests in the minute

WITH waited AS (
    SELECT
        served.*,
        date_trunc('minute', served.event_time) AS minute,
        CASE
            WHEN served.api = 'FETCH' THEN served.total_time_ms - coalesce(served.remote_time_ms, 0e0)
            ELSE served.total_time_ms
        END AS waited_ms
    FROM requests AS served
    INNER JOIN replication_time AS newest USING (cluster_id)
    WHERE
        served.api IN ('PRODUCE', 'FETCH')
        AND served.replica_id IS NULL
        AND served.total_time_ms IS NOT NULL
        AND unix_micros(served.event_time) > unix_micros(newest.event_time) - 3600000000
        AND unix_micros(served.event_time) < unix_micros(newest.event_time) + 60000000
),
ranked AS (
    SELECT
        *,
        row_number() OVER (
            PARTITION BY cluster_id, minute, broker_id, api ORDER BY waited_ms
        ) AS nth,
        count(*) OVER (PARTITION BY cluster_id, minute, broker_id, api) AS requests_in_minute
    FROM waited
),
minutes AS (
    SELECT
        cluster_id,
        minute,
        broker_id,
        api,
        max(requests_in_minute) AS requests_in_minute,
        min(CASE WHEN nth * 100 >= requests_in_minute * 99 THEN waited_ms END) AS p99_ms
    FROM ranked
    GROUP BY cluster_id, minute, broker_id, api
),
in_order AS (
    SELECT
        *,
        row_number() OVER (PARTITION BY cluster_id, broker_id, api ORDER BY p99_ms) AS nth,
        count(*) OVER (PARTITION BY cluster_id, broker_id, api) AS minutes
    FROM minutes
),
usual AS (
    SELECT
        cluster_id,
        broker_id,
        api,
        min(CASE WHEN nth * 2 >= minutes THEN p99_ms END) AS usual_p99_ms
    FROM in_order
    GROUP BY cluster_id, broker_id, api
),
judged AS (
    SELECT
        minutes.*,
        usual.usual_p99_ms,
        minutes.requests_in_minute >= 20
        AND minutes.p99_ms > usual.usual_p99_ms * coalesce(bounds.p99_rise_factor, 2e0)
        AND minutes.p99_ms > CASE
            WHEN minutes.api = 'PRODUCE' THEN coalesce(bounds.produce_p99_ms, 1e3)
            ELSE coalesce(bounds.fetch_p99_ms, 5e2)
        END AS is_high
    FROM minutes
    INNER JOIN usual USING (cluster_id, broker_id, api)
    LEFT JOIN replication_policy AS bounds USING (cluster_id)
),
followed AS (
    SELECT
        *,
        lag(is_high) OVER (PARTITION BY cluster_id, broker_id, api ORDER BY minute) AS was_high,
        lag(minute) OVER (PARTITION BY cluster_id, broker_id, api ORDER BY minute) AS before
    FROM judged
),
shrunk AS (
    -- A partition that flaps is one.
    SELECT DISTINCT
        shrinks.cluster_id,
        date_trunc('minute', shrinks.event_time) AS minute,
        shrinks.broker_id,
        shrinks.topic_id,
        shrinks.partition
    FROM isr_shrinks AS shrinks
    INNER JOIN replication_time AS newest USING (cluster_id)
    WHERE
        shrinks.in_sync <= shrinks.min_in_sync
        AND unix_micros(shrinks.event_time) > unix_micros(newest.event_time) - 3600000000
),
waits AS (
    SELECT
        cluster_id,
        minute,
        broker_id,
        max(CASE WHEN api = 'PRODUCE' THEN p99_ms END) AS produce_p99_ms,
        max(CASE WHEN api = 'PRODUCE' THEN usual_p99_ms END) AS usual_produce_p99_ms,
        max(CASE WHEN api = 'FETCH' THEN p99_ms END) AS fetch_p99_ms,
        max(CASE WHEN api = 'FETCH' THEN usual_p99_ms END) AS usual_fetch_p99_ms,
        bool_or(
            coalesce(
                is_high AND was_high AND unix_micros(minute) - unix_micros(before) = 60000000,
                false
            )
        ) AS is_slow
    FROM followed
    GROUP BY cluster_id, minute, broker_id
),
shrinks AS (
    SELECT cluster_id, minute, broker_id, count(*) AS shrunk_partitions
    FROM shrunk
    GROUP BY cluster_id, minute, broker_id
)

SELECT
    *,
    minute AS event_time,
    coalesce(shrinks.shrunk_partitions, 0) AS shrunk_partitions
FROM waits
FULL OUTER JOIN shrinks USING (cluster_id, minute, broker_id)
