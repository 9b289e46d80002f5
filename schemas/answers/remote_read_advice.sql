-- kind: answer
-- grain: one row per step that would spare reads of remote storage, or waits for it, by the last
--   day (KIP-405, KIP-956)
-- area: racks
-- level: sampled_log
-- question: Remote reads to spare. What spares reads of remote storage?
-- description: read_sooner and raise_local_retention are two ways to spare the same reads. Reads of
--   brokers and of this pipeline ask for no step (protected_principals.is_internal).
-- empty: while remote_reads has no rows of users' clients
-- key: cluster_id, advice, principal, client_id, topic, broker_id
-- time: until
-- clustering: until, advice
-- lookbacks:
--   remote_reads: 1 d
--   traffic: 1 d
--   replica_offsets: 10 min
--   fetch_sizes: 7 d
--   pipeline_progress: 14 d
-- columns:
--   from fetches: cluster_id
--   advice STRING: read_sooner (the client reads records later than its topic keeps them on disk),
--     raise_local_retention (keep the records of a topic on disk until they are read) or
--     raise_remote_fetch_quota (clients waited while a broker was over its quota of remote reads)
--   principal STRING: client of read_sooner, as Kafka prints it; null: another
--   client_id STRING: its client.id: untrusted text; null: another step
--   topic STRING: topic that is read; null: raise_remote_fetch_quota
--   broker_id INT: broker of raise_remote_fetch_quota; null: another step
--   bytes BIGINT: record bytes read from remote storage
--   bytes_per_hour DOUBLE: bytes per hour of the last day
--   fetches_per_hour DOUBLE: answers with them, per hour of the last day
--   empty_time_ms DOUBLE: time that clients waited for empty answers, in ms
--   read_age_ms BIGINT: greatest age of records when they were read, in ms, as exact as snapshots
--     are close; null: see unknown_reason
--   local_retention_ms BIGINT: how long the topic keeps records on disk: local.retention.ms, or
--     retention.ms where it is -2; -1: no limit by time; null: not known, or another step
--   local_retention_bytes BIGINT: its local.retention.bytes, or retention.bytes where it is -2; -1:
--     no limit; null: not known, or another step
--   recommended_ms BIGINT: raise_local_retention: local.retention.ms that would keep the records on
--     disk, in whole hours; null: not known, or another step
--   extra_local_bytes DOUBLE: raise_local_retention: bytes more on the disks of all replicas, if
--     local_retention_ms is what limits them; null: not known, or another step
--   fetch_quota BIGINT: raise_remote_fetch_quota: the quota of the broker, in bytes per second;
--     null: another step, or several_quotas
--   unknown_reason STRING: older_than_ends (the records are older than the first end of their
--     partition that a snapshot saw) or several_quotas (it was altered); null: all is known
--   saved_cost_per_hour DOUBLE: cost of bytes_per_hour, in currency; null: conf has no price, or
--     nothing is saved
--   currency STRING: currency of the prices, as conf names it
--   since TIMESTAMP: first minute with such reads
--   until TIMESTAMP: last minute with such reads
--   lasted_ms BIGINT: time from the first minute to the end of the last, in ms

WITH times AS (
    SELECT cluster_id, event_time FROM remote_reads
    UNION ALL
    SELECT cluster_id, event_time FROM traffic
),
newest AS (
    SELECT cluster_id, max(event_time) AS event_time
    FROM times
    GROUP BY cluster_id
),
read AS (
    SELECT reads.*
    FROM remote_reads AS reads
    INNER JOIN newest USING (cluster_id)
    LEFT JOIN protected_principals AS internal
        ON reads.cluster_id = internal.cluster_id
            AND reads.principal = internal.principal
            AND internal.is_internal
    WHERE
        unix_millis(reads.event_time) > unix_millis(newest.event_time) - 86400000
        AND internal.principal IS NULL
),
time_ranges AS (
    SELECT
        times.cluster_id,
        min(times.event_time) AS since,
        max(times.event_time) AS until,
        (unix_millis(max(times.event_time)) - unix_millis(min(times.event_time)) + 60000) / 36e5 AS hours
    FROM times
    INNER JOIN newest USING (cluster_id)
    WHERE unix_millis(times.event_time) > unix_millis(newest.event_time) - 86400000
    GROUP BY times.cluster_id
),
hourly AS (
    SELECT
        cluster_id,
        principal,
        client_id,
        topic,
        partition,
        date_trunc('HOUR', event_time) AS hour,
        min(event_time) AS first_minute,
        max(event_time) AS last_minute,
        min(min_fetch_offset) AS min_fetch_offset,
        sum(bytes) AS bytes,
        sum(fetches) AS fetches,
        sum(empty_time_ms) AS empty_time_ms
    FROM read
    GROUP BY cluster_id, principal, client_id, topic, partition, date_trunc('HOUR', event_time)
),
aged AS (
    SELECT
        hourly.cluster_id,
        hourly.principal,
        hourly.client_id,
        hourly.topic,
        hourly.partition,
        hourly.hour,
        max(unix_millis(hourly.last_minute)) + 60000 - max(unix_millis(ends.known_at)) AS age_ms,
        min(hourly.first_minute) AS since,
        max(hourly.last_minute) AS until,
        max(hourly.bytes) AS bytes,
        max(hourly.fetches) AS fetches,
        max(hourly.empty_time_ms) AS empty_time_ms
    FROM hourly
    LEFT JOIN partition_ends AS ends
        ON hourly.cluster_id = ends.cluster_id
            AND hourly.topic = ends.topic
            AND hourly.partition = ends.partition
            AND ends.known_by = 'snapshot'
            AND ends.end_offset <= hourly.min_fetch_offset
            AND ends.known_at <= hourly.last_minute
    GROUP BY ALL
),
produced AS (
    SELECT traffic.cluster_id, traffic.topic, sum(traffic.bytes) AS bytes
    FROM traffic
    INNER JOIN time_ranges
        ON traffic.cluster_id = time_ranges.cluster_id
            AND traffic.event_time >= time_ranges.since
            AND traffic.event_time <= time_ranges.until
    WHERE traffic.direction = 'produced'
    GROUP BY traffic.cluster_id, traffic.topic
),
copies AS (
    SELECT cluster_id, topic, count(*) * 1e0 / count(DISTINCT partition) AS replicas
    FROM current_replicas
    GROUP BY cluster_id, topic
),
steps AS (
    SELECT
        cluster_id,
        CASE grouping(principal) WHEN 0 THEN 'read_sooner' ELSE 'raise_local_retention' END AS advice,
        principal,
        client_id,
        topic,
        CAST(NULL AS INT) AS broker_id,
        sum(bytes) AS bytes,
        sum(fetches) AS fetches,
        sum(empty_time_ms) AS empty_time_ms,
        CASE WHEN count(age_ms) = count(*) THEN max(age_ms) END AS read_age_ms,
        CAST(NULL AS BIGINT) AS fetch_quota,
        CASE WHEN count(age_ms) < count(*) THEN 'older_than_ends' END AS unknown_reason,
        min(since) AS since,
        max(until) AS until
    FROM aged
    GROUP BY GROUPING SETS ((cluster_id, principal, client_id, topic), (cluster_id, topic))
    UNION ALL
    SELECT
        cluster_id,
        'raise_remote_fetch_quota' AS advice,
        CAST(NULL AS STRING) AS principal,
        CAST(NULL AS STRING) AS client_id,
        CAST(NULL AS STRING) AS topic,
        broker_id,
        sum(bytes) AS bytes,
        sum(fetches) AS fetches,
        sum(empty_time_ms) AS empty_time_ms,
        CAST(NULL AS BIGINT) AS read_age_ms,
        CASE WHEN min(fetch_quota) = max(fetch_quota) THEN max(fetch_quota) END AS fetch_quota,
        CASE WHEN min(fetch_quota) < max(fetch_quota) THEN 'several_quotas' END AS unknown_reason,
        min(event_time) AS since,
        max(event_time) AS until
    FROM read
    GROUP BY cluster_id, broker_id
    HAVING sum(over_quota_fetches) > 0
),
limited AS (
    SELECT
        steps.*,
        time_ranges.hours,
        limits.local_retention_ms,
        limits.local_retention_bytes,
        CASE
            WHEN steps.advice = 'raise_local_retention'
                THEN CAST(ceil(steps.read_age_ms / 36e5) AS BIGINT) * 3600000
        END AS recommended_ms
    FROM steps
    INNER JOIN time_ranges USING (cluster_id)
    LEFT JOIN topic_retentions AS limits USING (cluster_id, topic)
)

SELECT
    *,
    limited.bytes,
    limited.bytes / limited.hours AS bytes_per_hour,
    limited.fetches / limited.hours AS fetches_per_hour,
    unix_millis(limited.until) - unix_millis(limited.since) + 60000 AS lasted_ms,
    CASE
        WHEN limited.local_retention_ms >= 0 AND limited.recommended_ms > limited.local_retention_ms
            THEN
                (limited.recommended_ms - limited.local_retention_ms) / 36e5
                * produced.bytes / limited.hours * copies.replicas
    END AS extra_local_bytes,
    CASE
        WHEN limited.advice <> 'raise_remote_fetch_quota'
            THEN limited.bytes / limited.hours * prices.remote_read_per_gib / 1073741824.0
    END AS saved_cost_per_hour
FROM limited
LEFT JOIN produced USING (cluster_id, topic)
LEFT JOIN copies USING (cluster_id, topic)
LEFT JOIN current_prices AS prices USING (cluster_id)
