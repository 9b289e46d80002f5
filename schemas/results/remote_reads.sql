-- kind: result
-- grain: one row per minute, client, broker and partition
-- area: racks
-- level: sampled_log
-- description: What consumers read below the local start of a log, from remote storage (KIP-405),
--   one row {per}; least values, because local starts are those of the last snapshot by then
-- empty: while no topic has remote storage (KIP-405), or nobody reads what is only there
-- key: cluster_id, event_time, broker_id, principal, client_id, topic, partition
-- time: event_time
-- partitioning: event_date
-- facts: fetches
-- bucket: 1 min
-- lookback: 2 min
-- split_by: cluster_id, broker_id
-- lookups:
--   partition_offsets: from event_time
--   configs: from event_time, reaches back
--   topic_names: changes nothing
--   topics: changes nothing
-- columns:
--   from topic_names: cluster_id, event_date, event_time
--   broker_id INT: broker that answered
--   from fetches: principal, client_id
--   from topic_names: topic
--   from partition_offsets: partition
--   fetches BIGINT: answers with remote records; one with those of several partitions counts for
--     each
--   bytes BIGINT: record bytes in them
--   fetch_time_ms DOUBLE: time that the broker took for them, its waits for remote storage
--     included; that of an answer with several such partitions is divided among them
--   empty_fetches BIGINT: empty answers before them, of a minute at most, though the records were
--     there
--   over_quota_fetches BIGINT: those of them that began while remote reads of the broker were over
--     its fetch_quota
--   empty_time_ms DOUBLE: time that clients waited for empty answers
--   min_fetch_offset BIGINT: least offset that was read or asked for
--   local_log_start_offset BIGINT: first offset on disk, of the last snapshot
--   fetch_quota BIGINT: remote.log.manager.fetch.max.bytes.per.second of the broker, in bytes per
--     second (KIP-956); null: none, or no snapshot has its configs

-- Reads below the local start of a log, which brokers serve from remote storage (KIP-405), by
-- minute, client and partition.
-- A snapshot sees where a log starts on its leader's disk. That start only moves on, so what is
-- below it is remote at any later time. What lies between it and the start that the next snapshot
-- sees may be remote too, and does not count: all counts are least values.
-- A broker over its remote.log.manager.fetch.max.bytes.per.second answers nothing, after max_wait_ms
-- and without a throttle time (KIP-956). So an empty answer at a remote offset shows that the
-- client waited.
WITH local_starts AS (
    -- A row: the first offset on disk from a time on; null: all records are there.
    SELECT
        cluster_id, topic, "partition", event_time,
        max(local_log_start_offset)
            FILTER (NOT is_removed AND local_log_start_offset > log_start_offset) AS local_start
    FROM partition_offsets
    GROUP BY ALL
),
tiered AS (
    SELECT DISTINCT cluster_id, topic, "partition" FROM local_starts WHERE local_start IS NOT NULL
),
answered AS (
    -- A row: a fetch of a consumer that was answered; one that a client quota emptied is none.
    SELECT
        * REPLACE (weight_of(weight) AS weight), coalesce(response_bytes, 0) AS size,
        coalesce(local_time_ms, 0) + coalesce(remote_time_ms, 0) AS time_ms
    FROM fetches
    -- A cluster without remote storage costs nothing: no fetch is read for it.
    SEMI JOIN tiered USING (cluster_id)
    WHERE replica_id IS NULL AND coalesce(error_code, 0) = 0
        AND (response_bytes > 0 OR coalesce(throttle_time_ms, 0) = 0)
),
each AS (
    SELECT
        cluster_id, event_time AS answered_at, floored(event_time, 60) + INTERVAL 1 MINUTE
            AS minute_end, source_topic, source_partition, source_offset, source_line,
        broker_id, principal, client_id, session_id, weight, size, time_ms,
        unnest(partitions) AS part
    FROM answered
),
parts AS (
    -- A row: a partition of an answer, without an error or a redirect.
    SELECT
        * EXCLUDE (part), part.topic AS topic, part.topic_id AS topic_id,
        part."partition" AS "partition", part.fetch_offset AS fetch_offset,
        part.high_watermark AS high_watermark, coalesce(part.bytes, 0) AS bytes
    FROM each
    WHERE part.fetch_offset >= 0 AND coalesce(part.error_code, 0) = 0
        AND coalesce(part.preferred_read_replica, -1) < 0
),
of_tiered AS (
    FROM with_names(parts, topics_by_id) SEMI JOIN tiered USING (cluster_id, topic, "partition")
),
-- A row: a partition that a client wanted from remote storage. Its high watermark is past the local
-- start, else the topic was made again since the snapshot.
remote AS (
    SELECT
        p.*, l.local_start,
        row_number() OVER (of_answer ORDER BY p.bytes = 0, p.topic, p."partition") AS place,
        count(*) FILTER (p.bytes > 0)
            OVER (of_answer ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS places
    FROM of_tiered p
    ASOF JOIN local_starts l
        ON l.cluster_id = p.cluster_id AND l.topic = p.topic AND l."partition" = p."partition"
        AND p.answered_at > l.event_time
    WHERE p.fetch_offset < l.local_start AND p.high_watermark >= l.local_start
    WINDOW of_answer AS (
        PARTITION BY p.cluster_id, p.source_topic, p.source_partition, p.source_offset,
            p.source_line)
),
sequences AS (
    -- A row: a fetch of a session that reads from remote storage, and how many before it brought
    -- records. Only answers since the last of those can have waited for the same records.
    SELECT
        cluster_id, broker_id, session_id, session_partitions, event_time AS answered_at, weight,
        time_ms,
        source_topic, source_partition, source_offset, source_line,
        size = 0 AND NOT coalesce(list_bool_or([
            coalesce(p.error_code, 0) <> 0 OR coalesce(p.preferred_read_replica, -1) >= 0
            FOR p IN partitions]), false) AS is_empty,
        count(*) FILTER (size > 0) OVER (
            PARTITION BY cluster_id, broker_id, session_id ORDER BY event_time, session_epoch
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS run
    FROM answered
    SEMI JOIN (SELECT DISTINCT cluster_id, broker_id, session_id FROM remote WHERE session_id > 0)
        USING (cluster_id, broker_id, session_id)
),
-- A row: an empty answer to a client that wanted remote records. Within a session it names no
-- partition, and waited for what the next answer brings, if as many partitions were requested:
-- a consumer that leaves a partition out asks for fewer.
waits AS (
    SELECT * EXCLUDE (bytes, places), answered_at AS empty_at, time_ms AS empty_ms
    FROM remote
    WHERE size = 0 AND place = 1 AND coalesce(session_id, 0) = 0
    UNION ALL BY NAME
    SELECT
        r.* EXCLUDE (bytes, places) REPLACE (e.weight AS weight),
        e.answered_at AS empty_at, e.time_ms AS empty_ms
    FROM remote r
    JOIN sequences s
        ON s.cluster_id = r.cluster_id AND s.source_topic = r.source_topic
        AND s.source_partition = r.source_partition AND s.source_offset = r.source_offset
        AND s.source_line IS NOT DISTINCT FROM r.source_line
    JOIN sequences e
        ON e.cluster_id = s.cluster_id AND e.broker_id = s.broker_id
        AND e.session_id = s.session_id AND e.run = s.run AND e.is_empty
        AND e.session_partitions = s.session_partitions
        AND e.answered_at <= r.answered_at AND e.answered_at >= r.answered_at - INTERVAL 1 MINUTE
    WHERE r.bytes > 0 AND r.place = 1
),
fetch_quotas AS (
    -- A row: the quota of a broker from a time on; null: none, or removed.
    SELECT
        cluster_id, int_or_null(entity_name) AS broker_id, since,
        max(nullif(bigint_or_null(config_value), 9223372036854775807))
            FILTER (NOT is_removed) AS fetch_quota
    FROM with_since(configs)
    WHERE entity_type = 'broker' AND config_key = 'remote.log.manager.fetch.max.bytes.per.second'
    GROUP BY ALL
),
-- A row: an empty answer, and the rate of remote reads when it began to wait, as brokers measure it:
-- over the eleven windows of a second by then, from the first read in them on.
judged AS (
    SELECT
        w.*, q.fetch_quota,
        (
            SELECT sum(r.bytes * r.weight) / greatest(1, epoch_us(w.empty_at) / 1e6 - w.empty_ms / 1e3
                - epoch_us(min(r.answered_at)) / 1e6)
            FROM remote r
            WHERE r.cluster_id = w.cluster_id AND r.broker_id = w.broker_id AND r.bytes > 0
                AND r.answered_at <= w.empty_at - to_milliseconds(w.empty_ms)
                AND r.answered_at > w.empty_at - to_milliseconds(w.empty_ms + 11_000)
                -- A wait of more than most of a minute: as far back as any task reads.
                AND r.answered_at >= w.minute_end - to_seconds($lookback_s + 60)
        ) AS rate
    FROM waits w
    ASOF LEFT JOIN fetch_quotas q
        ON q.cluster_id = w.cluster_id AND q.broker_id = w.broker_id AND w.empty_at > q.since
),
counted AS (
    SELECT
        cluster_id, minute_end, broker_id, principal, client_id, topic, "partition",
        weight AS fetches, bytes * weight AS bytes, time_ms * weight / places AS fetch_time_ms,
        0 AS empty_fetches,
        0 AS over_quota_fetches, 0.0 AS empty_time_ms, fetch_offset, local_start
    FROM remote
    WHERE bytes > 0
    UNION ALL
    SELECT
        cluster_id, minute_end, broker_id, principal, client_id, topic, "partition",
        0, 0, 0.0, weight, if(rate >= fetch_quota, weight, 0), empty_ms * weight, fetch_offset, local_start
    FROM judged
),
summed AS (
    SELECT
        cluster_id, minute_end - INTERVAL 1 MINUTE AS event_time, minute_end, broker_id, principal,
        client_id, topic, "partition",
        sum(fetches) AS fetches, sum(bytes) AS bytes, sum(fetch_time_ms) AS fetch_time_ms,
        sum(empty_fetches) AS empty_fetches, sum(over_quota_fetches) AS over_quota_fetches,
        sum(empty_time_ms) AS empty_time_ms,
        min(fetch_offset) AS min_fetch_offset, max(local_start) AS local_log_start_offset
    FROM counted
    GROUP BY ALL
)
SELECT s.* EXCLUDE (minute_end), CAST(s.event_time AS DATE) AS event_date, q.fetch_quota
FROM summed s
ASOF LEFT JOIN fetch_quotas q
    ON q.cluster_id = s.cluster_id AND q.broker_id = s.broker_id AND s.minute_end > q.since
