-- kind: mart
-- grain: one row per hour and topic that had replicas in it
-- area: quotas
-- level: admin_api
-- question: Storage. How much disk does each topic take, and what does it cost?
-- description: What the replicas of a topic keep on disks of brokers, and its cost at the prices of
--   conf today, by the sizes of logs in snapshots (DescribeLogDirs, KIP-113). A size holds until the
--   next snapshot, if that comes within two hours. All other time is unknown. An hour without known
--   time has no row. Nor has one more than 90 days before the last snapshot, where upkeep removes
--   sizes. Logs that a move between log dirs makes (future replicas) do not count, nor do segments
--   in remote storage (KIP-405).
-- columns:
--   from replica_sizes: cluster_id
--   hour: start of the hour
--   from replica_sizes: topic
--   known_s: known time of the hour, in seconds; less than 3600: byte_hours and storage_cost are least
--     values
--   stored_bytes: bytes that all replicas of the topic keep, on average over known_s; null: not known
--   byte_hours: stored_bytes times known_s, in bytes times hours: what adds up over hours
--   unsized_replicas: the most replicas at one time of the hour for which no snapshot has a size
--   unanswered_parts: the most brokers and log dirs that one snapshot of the hour got no answer from:
--     their replicas count with the last size that a snapshot read
--   unknown_reason: why stored_bytes is null: unsized_replicas
--   storage_cost: cost of byte_hours in currency: a GiB for a month, which has 730 hours, costs
--     prices.stored_per_gib_month; null: conf has no such price, or stored_bytes is null
--   from current_prices: currency
WITH taken AS (
    SELECT cluster_id, event_time AS taken_at FROM replica_sizes
    UNION
    SELECT cluster_id, taken_at FROM snapshot_times WHERE table_name = 'replica_sizes'
),
-- Times at which something may change: snapshots of sizes or replicas, and hours.
moments AS (
    SELECT cluster_id, moment, max(is_taken) AS is_taken
    FROM (
        SELECT cluster_id, taken_at AS moment, 1 AS is_taken FROM taken
        UNION ALL
        SELECT cluster_id, event_time, 0 FROM replicas
        UNION ALL
        SELECT cluster_id, date_trunc('HOUR', taken_at), 0 FROM taken
        UNION ALL
        SELECT cluster_id, date_trunc('HOUR', taken_at) + INTERVAL '1' HOUR, 0 FROM taken
        UNION ALL
        SELECT cluster_id, date_trunc('HOUR', taken_at) + INTERVAL '2' HOUR, 0 FROM taken
    ) AS each_moment
    GROUP BY cluster_id, moment
),
between_snapshots AS (
    SELECT
        cluster_id,
        moment,
        max(CASE WHEN is_taken = 1 THEN moment END) OVER (
            PARTITION BY cluster_id
            ORDER BY moment
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS taken_before,
        min(CASE WHEN is_taken = 1 THEN moment END) OVER (
            PARTITION BY cluster_id
            ORDER BY moment DESC
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS taken_after,
        lead(moment) OVER (PARTITION BY cluster_id ORDER BY moment) AS next_moment,
        max(moment) OVER (PARTITION BY cluster_id) AS last_moment
    FROM moments
),
-- Known time from each moment to the next one, and from it to the end of its hour.
known AS (
    SELECT
        cluster_id,
        moment,
        hour,
        known_us,
        sum(known_us) OVER (
            PARTITION BY cluster_id, hour
            ORDER BY moment DESC
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS left_us
    FROM (
        SELECT
            cluster_id,
            moment,
            date_trunc('HOUR', moment) AS hour,
            CASE
                WHEN unix_micros(taken_after) - unix_micros(taken_before) <= 7200000000
                    AND unix_micros(last_moment) - unix_micros(moment) <= 7776000000000
                    THEN unix_micros(next_moment) - unix_micros(moment)
                ELSE 0
            END AS known_us
        FROM between_snapshots
    ) AS parts
),
known_hours AS (
    SELECT cluster_id, hour, sum(known_us) AS known_us
    FROM known
    GROUP BY cluster_id, hour
    HAVING sum(known_us) > 0
),
-- By how much each row changes the bytes and logs of a replica, and whether a topic has it.
changes AS (
    SELECT
        cluster_id,
        topic,
        partition,
        broker_id,
        event_time,
        log_bytes - lag(log_bytes, 1, CAST(0 AS BIGINT)) OVER of_log AS log_bytes,
        logs - lag(logs, 1, 0) OVER of_log AS logs,
        0 AS listed
    FROM (
        SELECT
            *,
            CASE WHEN NOT is_removed AND NOT is_future THEN coalesce(size_bytes, 0) ELSE 0 END
                AS log_bytes,
            CASE
                WHEN NOT is_removed AND NOT is_future AND size_bytes IS NOT NULL THEN 1
                ELSE 0
            END AS logs
        FROM replica_sizes
    ) AS sizes
    WINDOW of_log AS (
        PARTITION BY cluster_id, topic, partition, broker_id, log_dir ORDER BY event_time
    )
    UNION ALL
    SELECT
        cluster_id,
        topic,
        partition,
        broker_id,
        event_time,
        CAST(0 AS BIGINT),
        0,
        listed - lag(listed, 1, 0) OVER (
            PARTITION BY cluster_id, topic_id, topic, partition, broker_id ORDER BY event_time
        )
    FROM (SELECT *, CASE WHEN is_removed THEN 0 ELSE 1 END AS listed FROM replicas) AS lists
),
replica_totals AS (
    SELECT
        cluster_id,
        topic,
        partition,
        broker_id,
        event_time,
        sum(sum(log_bytes)) OVER by_then AS log_bytes,
        sum(sum(logs)) OVER by_then AS logs,
        sum(sum(listed)) OVER by_then AS listed
    FROM changes
    GROUP BY cluster_id, topic, partition, broker_id, event_time
    WINDOW by_then AS (
        PARTITION BY cluster_id, topic, partition, broker_id
        ORDER BY event_time
        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    )
),
replica_states AS (
    SELECT
        cluster_id,
        topic,
        partition,
        broker_id,
        event_time,
        CASE WHEN listed > 0 THEN CAST(log_bytes AS BIGINT) ELSE 0 END AS stored,
        CASE WHEN listed > 0 AND logs = 0 THEN 1 ELSE 0 END AS unsized,
        CASE WHEN listed > 0 THEN 1 ELSE 0 END AS listed
    FROM replica_totals
),
topic_changes AS (
    SELECT
        cluster_id,
        topic,
        event_time,
        sum(stored) AS stored,
        sum(unsized) AS unsized,
        sum(listed) AS listed
    FROM (
        SELECT
            cluster_id,
            topic,
            event_time,
            stored - lag(stored, 1, CAST(0 AS BIGINT)) OVER in_order AS stored,
            unsized - lag(unsized, 1, 0) OVER in_order AS unsized,
            listed - lag(listed, 1, 0) OVER in_order AS listed
        FROM replica_states
        WINDOW in_order AS (PARTITION BY cluster_id, topic, partition, broker_id ORDER BY event_time)
    ) AS steps
    GROUP BY cluster_id, topic, event_time
),
timed AS (
    SELECT
        steps.*,
        known.hour,
        known.left_us,
        sum(steps.unsized) OVER (
            PARTITION BY steps.cluster_id, steps.topic
            ORDER BY steps.event_time
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS unsized_now
    FROM topic_changes AS steps
    INNER JOIN known
        ON steps.cluster_id = known.cluster_id AND steps.event_time = known.moment
),
-- What a change of an hour adds holds for the known time that is left of the hour.
hours AS (
    SELECT
        cluster_id,
        topic,
        hour,
        max(known_us) AS known_us,
        sum(stored) AS stored,
        sum(unsized) AS unsized,
        sum(listed) AS listed,
        max(unsized_now) AS unsized_now,
        sum(CAST(stored AS DECIMAL(19, 0)) * CAST(left_us AS DECIMAL(19, 0))) AS stored_us,
        sum(unsized * left_us) AS unsized_us,
        sum(listed * left_us) AS listed_us
    FROM (
        SELECT
            cluster_id,
            topic,
            hour,
            CAST(0 AS BIGINT) AS known_us,
            CAST(stored AS BIGINT) AS stored,
            CAST(unsized AS BIGINT) AS unsized,
            CAST(listed AS BIGINT) AS listed,
            CAST(CASE WHEN left_us > 0 THEN unsized_now ELSE 0 END AS BIGINT) AS unsized_now,
            CAST(left_us AS BIGINT) AS left_us
        FROM timed
        UNION ALL
        SELECT
            topics.cluster_id,
            topics.topic,
            known_hours.hour,
            CAST(known_hours.known_us AS BIGINT),
            CAST(0 AS BIGINT),
            CAST(0 AS BIGINT),
            CAST(0 AS BIGINT),
            CAST(0 AS BIGINT),
            CAST(0 AS BIGINT)
        FROM (
            SELECT cluster_id, topic, min(hour) AS first_hour
            FROM timed
            GROUP BY cluster_id, topic
        ) AS topics
        INNER JOIN known_hours
            ON topics.cluster_id = known_hours.cluster_id
                AND known_hours.hour >= topics.first_hour
    ) AS each_part
    GROUP BY cluster_id, topic, hour
),
carried AS (
    SELECT
        *,
        coalesce(sum(stored) OVER before, 0) AS stored_before,
        coalesce(sum(unsized) OVER before, 0) AS unsized_before,
        coalesce(sum(listed) OVER before, 0) AS listed_before
    FROM hours
    WINDOW before AS (
        PARTITION BY cluster_id, topic
        ORDER BY hour
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    )
),
measured AS (
    SELECT
        *,
        CASE
            WHEN unsized_before * known_us + unsized_us = 0 THEN 0
            WHEN unsized_now > unsized_before THEN unsized_now
            ELSE unsized_before
        END AS unsized_replicas,
        CAST(
            CAST(stored_before AS DECIMAL(19, 0)) * CAST(known_us AS DECIMAL(19, 0)) + stored_us
            AS DOUBLE
        ) AS byte_us
    FROM carried
    WHERE known_us > 0 AND listed_before * known_us + listed_us > 0
),
unanswered AS (
    SELECT cluster_id, date_trunc('HOUR', event_time) AS hour, max(parts) AS parts
    FROM (
        SELECT cluster_id, event_time, sum(row_count) AS parts
        FROM pipeline_progress
        WHERE job = 'snapshot' AND target = 'replica_sizes' AND outcome = 'left_out'
        GROUP BY cluster_id, event_time
    ) AS of_snapshots
    GROUP BY cluster_id, date_trunc('HOUR', event_time)
)

SELECT
    *,
    measured.known_us / 1e6 AS known_s,
    CASE WHEN measured.unsized_replicas = 0 THEN measured.byte_us / measured.known_us END
        AS stored_bytes,
    CASE WHEN measured.unsized_replicas = 0 THEN measured.byte_us / 3.6e9 END AS byte_hours,
    coalesce(unanswered.parts, 0) AS unanswered_parts,
    CASE WHEN measured.unsized_replicas > 0 THEN 'unsized_replicas' END AS unknown_reason,
    CASE
        WHEN measured.unsized_replicas = 0
            THEN measured.byte_us / 3.6e9 / 1073741824e0 / 730e0 * prices.stored_per_gib_month
    END AS storage_cost
FROM measured
LEFT JOIN unanswered USING (cluster_id, hour)
LEFT JOIN current_prices AS prices USING (cluster_id)
