-- kind: mart
-- grain: one row per client or follower and fetch setting that should change
-- area: requests
-- level: sampled_log
-- question: Fetch settings to change. Which setting slows down the reads of a client or follower?
-- description: Which fetch limit of a client or follower to change (KIP-74), by the fetches of
--   the last day with the settings of its last hour. Of the first and the last minute of a
--   client, a rate counts the time from the first fetch to the last, and at least 10 s.
--   Consumers of brokers and of this pipeline are left out (protected_principals.is_internal).
-- columns:
--   from fetch_sizes: cluster_id, principal, client_id, replica_id
--   advice: raise_max_partition_fetch_bytes (batches are larger than max.partition.fetch.bytes),
--     raise_fetch_max_bytes (most answers end at fetch.max.bytes and leave out waiting partitions),
--     raise_fetch_min_bytes (many small answers), lower_max_partition_fetch_bytes (one answer of each
--     broker can fill much more memory than it ever did, and more than 256 MiB), rotate_partitions
--     (answers are full and always begin with the same partition, so others starve) or
--     raise_replica_fetch_response_max_bytes (the answers of a follower end at that limit)
--   setting: name of the config to change; null for rotate_partitions
--   current_value: its greatest value, in bytes
--   recommended_value: value to set, in bytes
--   trade_off: what gets worse with the change, as a reason code, which says which of the next
--     columns are its evidence; null: nothing
--   fetches_per_s: fetches per second at the busiest broker
--   expected_fetches_per_s: fetches per second at the busiest broker after the change
--   bytes_per_s: record bytes per second at the busiest broker
--   answers: answers with records
--   max_bytes_fetches: answers of exactly the request's max_bytes
--   starved_fetches: answers that left out a partition with data waiting
--   starved_partitions: partitions that were left out so, the most in a minute and broker
--   oversized_batches: partitions whose first batch was larger than a limit
--   observed_bytes: sum over brokers of the largest answer of each, in bytes
--   bound_bytes: sum over brokers of the most that one answer of each can contain, in bytes; null: it
--     is not known for one of them, or batches are larger than a limit (oversized_batches): the first
--     batch of an answer comes whole, so no limit of the client bounds the answer
--   max_wait_ms: longest time that a fetch waits for fetch.min.bytes (fetch.max.wait.ms), in ms
--   brokers: brokers that it fetched from
WITH newest AS (
    SELECT cluster_id, max(event_time) AS event_time
    FROM fetch_sizes
    GROUP BY cluster_id
),
dated AS (
    SELECT
        sizes.*,
        max(sizes.event_time) OVER (
            PARTITION BY sizes.cluster_id, sizes.principal, sizes.client_id, sizes.replica_id
        ) AS last_fetch,
        min(sizes.event_time) OVER (
            PARTITION BY sizes.cluster_id, sizes.principal, sizes.client_id, sizes.replica_id
        ) AS first_fetch
    FROM fetch_sizes AS sizes
    INNER JOIN newest USING (cluster_id)
    WHERE unix_millis(sizes.event_time) > unix_millis(newest.event_time) - 86400000
),
settings_now AS (
    SELECT
        cluster_id,
        principal,
        client_id,
        replica_id,
        min(max_bytes) AS least_max_bytes,
        max(max_bytes) AS greatest_max_bytes,
        min(partition_max_bytes) AS least_partition_max_bytes,
        max(partition_max_bytes) AS greatest_partition_max_bytes,
        min(min_bytes) AS least_min_bytes,
        max(min_bytes) AS greatest_min_bytes
    FROM dated
    WHERE event_time > last_fetch - INTERVAL '1' HOUR
    GROUP BY cluster_id, principal, client_id, replica_id
),
brokers_of AS (
    SELECT
        sizes.cluster_id,
        sizes.principal,
        sizes.client_id,
        sizes.replica_id,
        sizes.broker_id,
        -- The first and the last minute of a client are partial. A burst of fetches is no rate.
        sum(
            CASE
                WHEN sizes.fetches > 1 AND sizes.event_time IN (sizes.first_fetch, sizes.last_fetch)
                    THEN
                        greatest(
                            10e0,
                            least(60e0, sizes.active_s * sizes.fetches / (sizes.fetches - 1e0))
                        )
                ELSE 60e0
            END
        ) AS seconds,
        sum(sizes.fetches) AS fetches,
        sum(sizes.bytes) AS bytes,
        sum(sizes.fetches - sizes.wait_timeout_fetches - sizes.throttled_fetches
            - sizes.redirected_fetches - sizes.error_fetches) AS answers,
        sum(sizes.max_bytes_fetches) AS max_bytes_fetches,
        sum(sizes.filled_fetches) AS filled_fetches,
        max(sizes.first_partitions) AS first_partitions,
        sum(sizes.starved_fetches) AS starved_fetches,
        max(sizes.starved_partitions) AS starved_partitions,
        sum(sizes.oversized_batches) AS oversized_batches,
        -- Compared by bytes, their first field.
        max(array_max(sizes.largest_oversized)['bytes']) AS oversized_bytes,
        max(sizes.max_response_bytes) AS max_response_bytes,
        max(sizes.bound_bytes) AS bound_bytes,
        max(sizes.max_bytes) AS max_bytes,
        max(sizes.partition_max_bytes) AS partition_max_bytes,
        max(sizes.min_bytes) AS min_bytes,
        max(sizes.max_wait_ms) AS max_wait_ms
    FROM dated AS sizes
    INNER JOIN settings_now AS kept
        ON sizes.cluster_id = kept.cluster_id
            AND (sizes.principal IS NOT DISTINCT FROM kept.principal)
            AND (sizes.client_id IS NOT DISTINCT FROM kept.client_id)
            AND (sizes.replica_id IS NOT DISTINCT FROM kept.replica_id)
            -- What other settings brought says nothing of those that are set now.
            AND coalesce(sizes.max_bytes BETWEEN kept.least_max_bytes AND kept.greatest_max_bytes, TRUE)
            AND coalesce(
                sizes.partition_max_bytes
                BETWEEN kept.least_partition_max_bytes AND kept.greatest_partition_max_bytes,
                TRUE
            )
            AND coalesce(sizes.min_bytes BETWEEN kept.least_min_bytes AND kept.greatest_min_bytes, TRUE)
    LEFT JOIN protected_principals AS internal
        ON sizes.cluster_id = internal.cluster_id
            AND sizes.principal = internal.principal
            AND internal.is_internal
    WHERE sizes.replica_id IS NOT NULL OR internal.principal IS NULL
    GROUP BY ALL
),
summed AS (
    SELECT
        cluster_id,
        principal,
        client_id,
        replica_id,
        count(*) AS brokers,
        sum(answers) AS answers,
        sum(bytes) AS bytes,
        max(fetches / seconds) AS fetches_per_s,
        max(answers / seconds) AS answers_per_s,
        max(bytes / seconds) AS bytes_per_s,
        sum(max_bytes_fetches) AS max_bytes_fetches,
        sum(filled_fetches) AS filled_fetches,
        max(first_partitions) AS first_partitions,
        sum(starved_fetches) AS starved_fetches,
        max(starved_partitions) AS starved_partitions,
        sum(oversized_batches) AS oversized_batches,
        max(oversized_bytes) AS oversized_bytes,
        sum(max_response_bytes) AS observed_bytes,
        max(max_response_bytes) AS largest_answer_bytes,
        CASE
            WHEN count(bound_bytes) = count(*) AND sum(oversized_batches) = 0 THEN sum(bound_bytes)
        END AS bound_bytes,
        max(max_bytes) AS max_bytes,
        max(partition_max_bytes) AS partition_max_bytes,
        max(min_bytes) AS min_bytes,
        max(max_wait_ms) AS max_wait_ms
    FROM brokers_of
    GROUP BY cluster_id, principal, client_id, replica_id
),
clients AS (
    -- Twice what was seen, and no less than the largest answer: one partition may have filled it.
    SELECT
        *,
        greatest(
            CAST(ceil(partition_max_bytes * (2e0 * observed_bytes / bound_bytes)) AS BIGINT),
            largest_answer_bytes
        ) AS lower_partition_bytes
    FROM summed
),
advised AS (
    SELECT
        *,
        'raise_max_partition_fetch_bytes' AS advice,
        'max.partition.fetch.bytes' AS setting,
        partition_max_bytes AS current_value,
        oversized_bytes AS recommended_value,
        'more_memory' AS trade_off,
        fetches_per_s AS expected_fetches_per_s
    FROM clients
    WHERE replica_id IS NULL AND oversized_batches > 0 AND oversized_bytes > partition_max_bytes
    UNION ALL
    SELECT
        *,
        'raise_fetch_max_bytes' AS advice,
        'fetch.max.bytes' AS setting,
        max_bytes AS current_value,
        2 * max_bytes AS recommended_value,
        'more_memory' AS trade_off,
        fetches_per_s - answers_per_s * max_bytes_fetches / (2e0 * answers) AS expected_fetches_per_s
    FROM clients
    WHERE replica_id IS NULL AND 2 * max_bytes_fetches > answers AND starved_fetches > 0
    UNION ALL
    SELECT
        *,
        'raise_fetch_min_bytes' AS advice,
        'fetch.min.bytes' AS setting,
        min_bytes AS current_value,
        CAST(least(1.048576e6, ceil(bytes_per_s * max_wait_ms / 1e3)) AS BIGINT) AS recommended_value,
        'longer_wait' AS trade_off,
        greatest(1e3 / max_wait_ms, bytes_per_s / 1.048576e6) AS expected_fetches_per_s
    FROM clients
    WHERE
        replica_id IS NULL
        AND max_wait_ms > 0
        AND bytes < 4096 * answers
        AND answers_per_s > 2 * greatest(1e3 / max_wait_ms, bytes_per_s / 1.048576e6)
        AND min_bytes < least(1.048576e6, ceil(bytes_per_s * max_wait_ms / 1e3))
    UNION ALL
    SELECT
        *,
        'lower_max_partition_fetch_bytes' AS advice,
        'max.partition.fetch.bytes' AS setting,
        partition_max_bytes AS current_value,
        lower_partition_bytes AS recommended_value,
        'slower_catch_up' AS trade_off,
        fetches_per_s AS expected_fetches_per_s
    FROM clients
    WHERE
        replica_id IS NULL
        AND oversized_batches = 0
        AND bound_bytes > 268435456
        AND observed_bytes > 0
        AND bound_bytes > 10 * observed_bytes
        AND lower_partition_bytes < partition_max_bytes
    UNION ALL
    SELECT
        *,
        'rotate_partitions' AS advice,
        CAST(NULL AS STRING) AS setting,
        CAST(NULL AS BIGINT) AS current_value,
        CAST(NULL AS BIGINT) AS recommended_value,
        CAST(NULL AS STRING) AS trade_off,
        fetches_per_s AS expected_fetches_per_s
    FROM clients
    WHERE filled_fetches >= 10 AND starved_fetches >= 10 AND first_partitions = 1
    UNION ALL
    SELECT
        *,
        'raise_replica_fetch_response_max_bytes' AS advice,
        'replica.fetch.response.max.bytes' AS setting,
        max_bytes AS current_value,
        2 * max_bytes AS recommended_value,
        'more_memory' AS trade_off,
        fetches_per_s - answers_per_s * max_bytes_fetches / (2e0 * answers) AS expected_fetches_per_s
    FROM clients
    WHERE replica_id IS NOT NULL AND 2 * max_bytes_fetches > answers
)

SELECT * FROM advised
