-- kind: mart
-- grain: one row per replica whose log starts later than that of another replica of its partition
-- area: racks
-- level: sampled_log
-- description: Replicas that begin too late, in the last day (KIP-392): a consumer that is sent there
--   gets OFFSET_OUT_OF_RANGE for an offset that the other replica has, and one that resets to earliest
--   gets other records. Each replica deletes old segments by itself, every 5 minutes
--   (log.retention.check.interval.ms), so the view shows a difference only if it lasted at least 10
--   minutes.
-- empty: while all replicas start alike, or have differed for less than 10 minutes
-- columns:
--   from replica_offsets: cluster_id
--   topic: name of the topic; null: not known
--   unnamed_topic_id: id of the topic if its name is not known; null otherwise
--   from replica_offsets: partition
--   broker_id: broker of the replica that begins later
--   log_start_offset: newest known log start offset of this replica
--   other_broker_id: broker of the replica that begins earliest
--   other_log_start_offset: newest known log start offset of that replica
--   missing_offsets: log_start_offset - other_log_start_offset: offsets that only the other replica has
--   since: first minute in which this replica started past other_log_start_offset
--   last_reported_at: newest minute in which the other replica reported its log start
--   readers: consumers that read the partition from this replica in the last day
--   read_bytes: record bytes they read from it
--   partition_readers: consumers that read the partition from any replica in the last day
WITH newest AS (
    SELECT cluster_id, max(event_time) AS event_time
    FROM replica_offsets
    GROUP BY cluster_id
),
starts AS (
    SELECT
        offsets.cluster_id,
        coalesce(offsets.topic_id, offsets.topic) AS topic_key,
        offsets.topic,
        CASE WHEN offsets.topic IS NULL THEN offsets.topic_id END AS unnamed_topic_id,
        offsets.partition,
        offsets.broker_id,
        offsets.event_time,
        offsets.max_log_start_offset AS log_start_offset,
        row_number() OVER (
            PARTITION BY
                offsets.cluster_id,
                coalesce(offsets.topic_id, offsets.topic),
                offsets.partition,
                offsets.broker_id
            ORDER BY offsets.event_time DESC
        ) AS age
    FROM replica_offsets AS offsets
    INNER JOIN newest USING (cluster_id)
    WHERE
        offsets.max_log_start_offset IS NOT NULL
        AND unix_millis(offsets.event_time) > unix_millis(newest.event_time) - 86400000
),
pairs AS (
    SELECT
        later.cluster_id,
        later.topic_key,
        later.partition,
        later.broker_id,
        other.broker_id AS other_broker_id,
        max(other.log_start_offset) AS other_log_start_offset,
        max(other.event_time) AS last_reported_at,
        min(later.event_time) AS since
    FROM starts AS later
    INNER JOIN starts AS other USING (cluster_id, topic_key, partition)
    WHERE
        other.age = 1
        AND later.broker_id <> other.broker_id
        AND later.log_start_offset > other.log_start_offset
    GROUP BY ALL
),
lasting AS (
    SELECT
        *,
        row_number() OVER (
            PARTITION BY cluster_id, topic_key, partition, broker_id
            ORDER BY other_log_start_offset, other_broker_id
        ) AS nth
    FROM pairs
    WHERE unix_millis(last_reported_at) - unix_millis(since) >= 600000
),
consumers AS (
    SELECT
        reads.cluster_id,
        coalesce(reads.topic_id, reads.topic) AS topic_key,
        reads.partition,
        reads.principal,
        reads.client_id,
        reads.broker_id,
        sum(reads.bytes) AS bytes
    FROM preferred_replicas AS reads
    INNER JOIN newest USING (cluster_id)
    WHERE unix_millis(reads.event_time) > unix_millis(newest.event_time) - 86400000
    GROUP BY 1, 2, 3, 4, 5, 6
),
readers AS (
    SELECT cluster_id, topic_key, partition, broker_id, count(*) AS readers, sum(bytes) AS bytes
    FROM consumers
    GROUP BY cluster_id, topic_key, partition, broker_id
),
partition_readers AS (
    SELECT cluster_id, topic_key, partition, count(*) AS readers
    FROM (SELECT DISTINCT cluster_id, topic_key, partition, principal, client_id FROM consumers) AS one
    GROUP BY cluster_id, topic_key, partition
)

SELECT
    *,
    latest.log_start_offset - lasting.other_log_start_offset AS missing_offsets,
    coalesce(readers.readers, 0) AS readers,
    coalesce(readers.bytes, 0) AS read_bytes,
    coalesce(partition_readers.readers, 0) AS partition_readers
FROM lasting
LEFT JOIN readers USING (cluster_id, topic_key, partition, broker_id)
LEFT JOIN partition_readers USING (cluster_id, topic_key, partition)
INNER JOIN starts AS latest USING (cluster_id, topic_key, partition, broker_id)
WHERE lasting.nth = 1 AND latest.age = 1
