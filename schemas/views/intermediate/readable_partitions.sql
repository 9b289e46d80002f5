-- kind: intermediate
-- grain: one row per partition
-- area: groups
-- level: admin_api
-- description: What consumers can read of each partition, by the last snapshot: from its log start
--   to its end, or to its first open transaction if they read committed records alone (KIP-98).
-- columns:
--   from partition_offsets: cluster_id, topic, partition
--   known_at: time of the snapshot that saw these offsets first
--   from partition_offsets: log_start_offset, log_end_offset
--   last_stable_offset: first offset of the oldest open transaction, or log_end_offset
--   open_since: first snapshot that saw the transaction there; null: none is open, or not seen
--   open_producer_id: producer id of that transaction
--   open_transactional_id: transactional.id of that producer id; null: not known
--   other_writers: producers with an id that write without transactions
WITH newest AS (
    SELECT
        *,
        row_number() OVER (
            PARTITION BY cluster_id, topic, partition ORDER BY event_time DESC
        ) AS age
    FROM partition_offsets
),
writers AS (
    SELECT
        cluster_id,
        topic,
        partition,
        min(start_offset) AS start_offset,
        min_by(open_since, start_offset) AS open_since,
        min_by(producer_id, start_offset) AS producer_id,
        min_by(transactional_id, start_offset) AS transactional_id,
        sum(CASE WHEN has_marker OR start_offset IS NOT NULL THEN 0 ELSE 1 END) AS other_writers
    FROM current_partition_producers
    GROUP BY cluster_id, topic, partition
),
stable AS (
    SELECT
        newest.cluster_id,
        newest.topic,
        newest.partition,
        newest.event_time AS known_at,
        newest.log_start_offset,
        newest.log_end_offset,
        least(
            coalesce(newest.last_stable_offset, writers.start_offset, newest.log_end_offset),
            newest.log_end_offset
        ) AS last_stable_offset,
        writers.start_offset,
        writers.open_since,
        writers.producer_id,
        writers.transactional_id,
        coalesce(writers.other_writers, 0) AS other_writers
    FROM newest
    LEFT JOIN writers USING (cluster_id, topic, partition)
    WHERE newest.age = 1 AND NOT newest.is_removed
)
SELECT
    *,
    CASE WHEN start_offset = last_stable_offset THEN open_since END AS open_since,
    CASE WHEN start_offset = last_stable_offset THEN producer_id END AS open_producer_id,
    CASE WHEN start_offset = last_stable_offset THEN transactional_id END AS open_transactional_id
FROM stable
