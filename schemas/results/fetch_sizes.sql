-- kind: result
-- grain: one row per minute, client or follower, and broker
-- area: requests
-- level: sampled_log
-- question: Sizes of fetches. How many fetches does each client send, how much do they bring at once, and
--   what limits them?
-- description: How much fetches returned at once and what bounded it (KIP-74), one row {per}
-- key: cluster_id, event_time, broker_id, principal, client_id, replica_id
-- time: event_time
-- partitioning: event_date
-- facts: fetches
-- bucket: 1 min
-- split_by: cluster_id, principal, client_id
-- lookups:
--   configs: from event_time, reaches back
--   client_quotas: from coalesce(set_at, event_time)
--   topic_names: changes nothing
--   topics: changes nothing
-- unnamed:
--   fetch_sizes: ids of [batch.topic_id FOR batch IN largest_oversized IF batch.topic IS NULL]
--     where oversized_batches > 0
-- columns:
--   from fetches: cluster_id
--   from topic_names: event_date, event_time
--   broker_id INT: broker that was fetched from
--   from fetches: principal, client_id, replica_id
--   fetches BIGINT: fetches answered
--   active_s DOUBLE: time from the first of them to the last, in seconds; 0: there is one
--   committed_fetches BIGINT: of these, with isolation level read_committed
--   bytes BIGINT: record bytes they brought
--   max_response_bytes BIGINT: most record bytes in one answer
--   response_sizes ARRAY<BIGINT>: answers with records by size: the k-th, from 0, counts those of
--     2^k to 2^(k+1)-1 bytes; the last all that are more. Arrays of several rows add up
--   max_bytes_fetches BIGINT: answers of exactly the request's max_bytes
--   broker_cap_fetches BIGINT: answers of exactly the broker's fetch.max.bytes, where max_bytes is
--     more
--   quota_window_fetches BIGINT: answers of exactly what consumer_byte_rate leaves: quota x the
--     broker's windows but one
--   partition_max_bytes_fetches BIGINT: answers in which a partition brought exactly its
--     partition_max_bytes
--   first_batch_fetches BIGINT: answers whose first batch alone is more than a limit: it is
--     returned whole
--   drained_fetches BIGINT: other answers with records: nothing more to read, or a segment of the
--     log ended
--   wait_timeout_fetches BIGINT: empty answers: nothing came within max_wait_ms
--   throttled_fetches BIGINT: empty answers of a throttled client
--   redirected_fetches BIGINT: empty answers that name a preferred replica (KIP-392)
--   error_fetches BIGINT: answers with an error, and no records
--   max_bytes BIGINT: greatest limit requested for a whole answer
--   partition_max_bytes BIGINT: greatest limit on a partition requested; null: not known
--   min_bytes BIGINT: greatest min_bytes requested
--   max_wait_ms BIGINT: longest max_wait_ms requested
--   partitions INT: most partitions requested at once; null: not known
--   bound_bytes BIGINT: most bytes of one answer: the lesser of max_bytes and the sum of
--     partition_max_bytes over the partitions requested; null: the partitions of a fetch are not
--     known. A first batch comes whole all the same
--   filled_fetches BIGINT: answers that reached max_bytes
--   first_partitions INT: different partitions that came first in those
--   starved_fetches BIGINT: those of them without a partition that had data waiting
--   starved_partitions INT: partitions that had data waiting and got none
--   max_starved_fetches BIGINT: times that the partition with the most such answers got none
--   fairness DOUBLE: Jain's index of bytes over the partitions that returned some or had data
--     waiting: 1 all alike, 1/n one alone; null without any
--   oversized_batches BIGINT: partitions that returned more than a limit
--   largest_oversized ARRAY<STRUCT<bytes: BIGINT, topic: STRING, topic_id: STRING, partition: INT,
--     fetch_offset: BIGINT>>: up to ten of those, the largest first

-- How much fetches return at once, and what limits it (KIP-74), by minute, client and broker.
-- A broker reads one partition after the other, and cuts each read exactly at the rest of its
-- limits. Only a first batch is always whole (ReplicaManager.readFromLog). So the size of an answer
-- shows its limit.
WITH each AS (
    -- A row is a fetch, in its minute.
    SELECT
        * REPLACE (weight_of(weight) AS weight),
        floored(event_time, 60) AS minute, coalesce(response_bytes, 0) AS size
    FROM fetches
),
config_snapshots AS (
    -- A row is a config. What the first snapshot of a cluster saw is valid before it too.
    SELECT *, since_of(event_time, min(event_time) OVER (PARTITION BY cluster_id)) AS since
    FROM configs
),
caps AS (
    -- A row is a broker's limit on an answer from a time on; null if it was removed.
    SELECT
        cluster_id, int_or_null(entity_name) AS broker_id, since,
        max(CASE WHEN NOT is_removed THEN bigint_or_null(config_value) END) AS cap_bytes
    FROM config_snapshots
    WHERE entity_type = 'broker' AND config_key = 'fetch.max.bytes'
    GROUP BY ALL
),
capped AS (
    -- A row is a broker's limit in a minute. Kafka's own default is 55 MiB.
    SELECT m.*, coalesce(c.cap_bytes, 57_671_680) AS cap_bytes
    FROM (SELECT DISTINCT cluster_id, broker_id, minute FROM each) AS m
    ASOF LEFT JOIN caps AS c
        ON c.cluster_id = m.cluster_id AND c.broker_id = m.broker_id
        AND c.since < m.minute + INTERVAL 1 MINUTE
),
clients AS (
    -- A row is a client in a minute. Followers have no quota.
    SELECT DISTINCT
        cluster_id, principal, coalesce(client_id, '') AS client_id, minute AS event_time,
        minute + INTERVAL 1 MINUTE AS window_end, 'consumer_byte_rate' AS quota_type
    FROM each
    WHERE replica_id IS NULL
),
quotas AS (
    -- A row is what a client's quota lets through at once.
    SELECT *, quota_window_bytes(quota, $quota_refill_s) AS quota_bytes
    FROM with_limits(clients)
    WHERE quota IS NOT NULL
),
bounded AS (
    -- A row is a fetch with every limit. least() leaves out a limit that is not known: the size of
    -- an answer shows those that are.
    SELECT
        e.*, b.cap_bytes, q.quota_bytes,
        least(e.max_bytes, b.cap_bytes, q.quota_bytes) AS limit_bytes,
        CASE WHEN e.max_bytes IS NOT NULL AND e.session_max_bytes IS NOT NULL
            THEN least(e.max_bytes, e.session_max_bytes) END AS bound_bytes,
        e.response_bytes >= e.max_bytes AS is_filled,
        list_bool_or([p.bytes > p.partition_max_bytes FOR p IN e.partitions]) AS is_past,
        list_bool_or([p.bytes = p.partition_max_bytes FOR p IN e.partitions]) AS is_at
    FROM each AS e
    LEFT JOIN capped AS b
        ON b.cluster_id = e.cluster_id AND b.minute = e.minute
        AND b.broker_id IS NOT DISTINCT FROM e.broker_id
    LEFT JOIN quotas AS q
        ON e.replica_id IS NULL AND q.cluster_id = e.cluster_id AND q.event_time = e.minute
        AND q.principal IS NOT DISTINCT FROM e.principal
        AND q.client_id = coalesce(e.client_id, '')
),
limited AS (
    -- A row is a fetch, with the limiter of its answer.
    SELECT
        *, CASE
            WHEN size = 0 THEN CASE
                WHEN coalesce(error_code, 0) <> 0
                    OR list_bool_or([p.error_code <> 0 FOR p IN partitions]) THEN 'error'
                WHEN list_bool_or([p.preferred_read_replica >= 0 FOR p IN partitions])
                    THEN 'redirected'
                WHEN throttle_time_ms > 0 THEN 'throttled'
                ELSE 'wait_timeout'
            END
            WHEN size > limit_bytes OR is_past THEN 'first_batch'
            WHEN size = limit_bytes AND size = quota_bytes THEN 'quota_window'
            WHEN size = limit_bytes AND size = max_bytes THEN 'max_bytes'
            WHEN size = limit_bytes THEN 'broker_cap'
            WHEN is_at THEN 'partition_max_bytes'
            ELSE 'drained'
        END AS limiter,
        -- Of answers with records: 2^power bytes or more.
        CASE WHEN size > 0 THEN least(TRY_CAST(floor(log2(size)) AS INT), 31) END AS power,
        CASE WHEN is_filled THEN list_filter(partitions, lambda p: p.bytes > 0)[1] END AS first_read
    FROM bounded
),
by_answer AS (
    -- A row is a client or follower at a broker in a minute, with what its answers show.
    SELECT
        cluster_id, minute, broker_id, principal, client_id, replica_id,
        sum(weight) AS fetches, sum(weight) FILTER (isolation_level = 1) AS committed_fetches,
        (epoch_us(max(event_time)) - epoch_us(min(event_time))) / 1e6 AS active_s,
        sum(size * weight) AS bytes, max(size) AS max_response_bytes,
        max(max_bytes) AS max_bytes, max(session_partition_max_bytes) AS partition_max_bytes,
        max(min_bytes) AS min_bytes, max(max_wait_ms) AS max_wait_ms,
        max(session_partitions) AS partitions,
        CASE WHEN bool_and(bound_bytes IS NOT NULL) THEN max(bound_bytes) END AS bound_bytes,
        sum(weight) FILTER (is_filled) AS filled_fetches,
        count(DISTINCT {topic: first_read.topic, topic_id: first_read.topic_id,
                        partition: first_read.partition})
            FILTER (first_read IS NOT NULL) AS first_partitions,
        sum(weight) FILTER (len(starved) > 0) AS starved_fetches
    FROM limited
    GROUP BY ALL
),
by_limiter AS (
    -- A row is a client or follower at a broker in a minute, with how many answers each limiter and
    -- each size has.
    SELECT
        cluster_id, minute, broker_id, principal, client_id, replica_id,
        map_from_entries(list({k: name, v: answers}) FILTER (name IS NOT NULL)) AS limiters,
        map_from_entries(list({k: power, v: answers}) FILTER (power IS NOT NULL)) AS powers
    FROM (
        SELECT
            cluster_id, minute, broker_id, principal, client_id, replica_id,
            limiter AS name, NULL::INT AS power, sum(weight) AS answers
        FROM limited
        GROUP BY ALL
        UNION ALL
        SELECT
            cluster_id, minute, broker_id, principal, client_id, replica_id,
            NULL, power, sum(weight)
        FROM limited
        WHERE power IS NOT NULL
        GROUP BY ALL
    )
    GROUP BY ALL
),
reads AS (
    -- A row is a partition that brought records in a fetch, or was left out of a full answer.
    SELECT
        * EXCLUDE (max_bytes, part), part.topic AS topic, part.topic_id AS topic_id,
        part.partition AS partition, part.bytes AS bytes, part.fetch_offset AS fetch_offset,
        part.bytes > least(max_bytes, part.partition_max_bytes) AS is_oversized,
        false AS is_starved
    FROM (
        SELECT
            cluster_id, minute, broker_id, principal, client_id, replica_id, weight, max_bytes,
            unnest(partitions) AS part
        FROM each
    )
    WHERE part.bytes > 0
    UNION ALL BY NAME
    SELECT
        * EXCLUDE (part), part.topic AS topic, part.topic_id AS topic_id,
        part.partition AS partition, 0 AS bytes, false AS is_oversized, true AS is_starved
    FROM (
        SELECT
            cluster_id, minute, broker_id, principal, client_id, replica_id, weight,
            unnest(starved) AS part
        FROM each
    )
),
served AS (
    -- A row is a partition, with what all fetches of a client and minute got of it.
    SELECT
        cluster_id, minute, broker_id, principal, client_id, replica_id,
        topic, topic_id, partition, sum(bytes * weight) AS size,
        coalesce(sum(weight) FILTER (is_starved), 0) AS starved,
        sum(weight) FILTER (is_oversized) AS oversized
    FROM reads
    GROUP BY ALL
),
by_partition AS (
    -- A row is a client or follower at a broker in a minute, with how evenly it was served.
    SELECT
        cluster_id, minute, broker_id, principal, client_id, replica_id,
        count(*) FILTER (starved > 0) AS starved_partitions, max(starved) AS max_starved_fetches,
        ratio(CAST(sum(size) AS DOUBLE) ** 2, count(*) * CAST(sum(size * size) AS DOUBLE))
            AS fairness,
        sum(oversized) AS oversized_batches
    FROM served
    GROUP BY ALL
),
largest AS (
    -- A row is a batch over a limit.
    FROM reads WHERE is_oversized
),
oversized AS (
    -- A row is a client or follower at a broker in a minute, with the ten largest batches that are
    -- over a limit.
    SELECT
        cluster_id, minute, broker_id, principal, client_id, replica_id,
        list(
            {bytes: bytes, topic: topic, topic_id: topic_id, partition: partition,
             fetch_offset: fetch_offset} ORDER BY place
        ) AS largest_oversized
    FROM (
        SELECT
            *, row_number() OVER (
                PARTITION BY cluster_id, minute, broker_id, principal, client_id, replica_id
                ORDER BY bytes DESC, topic DESC NULLS LAST, topic_id DESC NULLS LAST,
                    partition DESC NULLS LAST, fetch_offset DESC NULLS LAST
            ) AS place
        FROM with_names(largest, topics_by_id)
    )
    WHERE place <= 10
    GROUP BY ALL
)
SELECT
    a.cluster_id, CAST(a.minute AS DATE) AS event_date, a.minute AS event_time, a.broker_id,
    a.principal, a.client_id, a.replica_id, a.fetches, a.active_s,
    coalesce(a.committed_fetches, 0) AS committed_fetches, a.bytes, a.max_response_bytes,
    [coalesce(l.powers[n], 0) FOR n IN range(32)] AS response_sizes,
    coalesce(l.limiters['max_bytes'], 0) AS max_bytes_fetches,
    coalesce(l.limiters['broker_cap'], 0) AS broker_cap_fetches,
    coalesce(l.limiters['quota_window'], 0) AS quota_window_fetches,
    coalesce(l.limiters['partition_max_bytes'], 0) AS partition_max_bytes_fetches,
    coalesce(l.limiters['first_batch'], 0) AS first_batch_fetches,
    coalesce(l.limiters['drained'], 0) AS drained_fetches,
    coalesce(l.limiters['wait_timeout'], 0) AS wait_timeout_fetches,
    coalesce(l.limiters['throttled'], 0) AS throttled_fetches,
    coalesce(l.limiters['redirected'], 0) AS redirected_fetches,
    coalesce(l.limiters['error'], 0) AS error_fetches,
    a.max_bytes, a.partition_max_bytes, a.min_bytes, a.max_wait_ms, a.partitions, a.bound_bytes,
    coalesce(a.filled_fetches, 0) AS filled_fetches, a.first_partitions,
    coalesce(a.starved_fetches, 0) AS starved_fetches,
    coalesce(p.starved_partitions, 0) AS starved_partitions,
    coalesce(p.max_starved_fetches, 0) AS max_starved_fetches, p.fairness,
    coalesce(p.oversized_batches, 0) AS oversized_batches,
    CASE WHEN p.minute IS NOT NULL THEN coalesce(o.largest_oversized, []) END AS largest_oversized
FROM by_answer AS a
JOIN by_limiter AS l
    ON l.cluster_id = a.cluster_id AND l.minute = a.minute
    AND l.broker_id IS NOT DISTINCT FROM a.broker_id
    AND l.principal IS NOT DISTINCT FROM a.principal
    AND l.client_id IS NOT DISTINCT FROM a.client_id
    AND l.replica_id IS NOT DISTINCT FROM a.replica_id
LEFT JOIN by_partition AS p
    ON p.cluster_id = a.cluster_id AND p.minute = a.minute
    AND p.broker_id IS NOT DISTINCT FROM a.broker_id
    AND p.principal IS NOT DISTINCT FROM a.principal
    AND p.client_id IS NOT DISTINCT FROM a.client_id
    AND p.replica_id IS NOT DISTINCT FROM a.replica_id
LEFT JOIN oversized AS o
    ON o.cluster_id = a.cluster_id AND o.minute = a.minute
    AND o.broker_id IS NOT DISTINCT FROM a.broker_id
    AND o.principal IS NOT DISTINCT FROM a.principal
    AND o.client_id IS NOT DISTINCT FROM a.client_id
    AND o.replica_id IS NOT DISTINCT FROM a.replica_id
