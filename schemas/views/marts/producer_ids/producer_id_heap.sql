-- kind: mart
-- grain: one row per broker that leads partitions with producers, as of the last snapshot
-- description: The heap that producer ids take on a broker now, the heap they will take if new ones
--   come at the same pace, and the producer.id.expiration.ms that limits it to 64 MiB. An entry is an
--   id on a partition, and its followers have it too. An entry is taken as 424 bytes, as measured for
--   Kafka 4.3.1's ProducerStateEntry with five batches, its key and its place in the map, with
--   compressed pointers.
-- columns:
--   from active_producers: cluster_id
--   broker_id: broker that leads the partitions
--   entries: entries it has now
--   ids: different producer ids among them
--   ids_of_unknown_owner: those ids that the request log does not show a principal for
--   entries_per_s: entries first seen after the first snapshot, per second since then; null: there is
--     one snapshot only
--   expiration_ms: producer.id.expiration.ms of the broker, in ms; Kafka's default of a day if no
--     snapshot has it
--   heap_bytes: heap that the entries take now, in bytes
--   forecast_entries: entries after expiration_ms at this pace: the greater of entries and
--     entries_per_s x expiration_ms / 1000
--   forecast_bytes: heap that those take, in bytes: forecast_entries x bytes_per_entry
--   recommended_expiration_ms: producer.id.expiration.ms that limits the forecast to 64 MiB, in ms, at
--     least an hour, because a producer that pauses longer gets a new id; null: the forecast fits
--   bytes_per_entry: heap that one entry takes, in bytes
--   snapshot_time: time of the last snapshot of producers
WITH sizes AS (
    SELECT 424 AS bytes_per_entry, 64 * 1024 * 1024 AS budget_bytes, 3600000 AS least_ms
),
newest AS (
    SELECT
        *,
        -- Of any broker: a new leader had them before, as a follower.
        row_number() OVER (
            PARTITION BY cluster_id, topic, partition, producer_id
            ORDER BY event_time DESC, is_removed
        ) AS nth,
        min(event_time) OVER (
            PARTITION BY cluster_id, topic, partition, producer_id
        ) AS first_held_at
    FROM active_producers
),
expirations AS (
    SELECT
        cluster_id,
        entity_name,
        max(TRY_CAST(config_value AS BIGINT)) AS expiration_ms
    FROM current_configs
    WHERE entity_type = 'broker' AND config_key = 'producer.id.expiration.ms'
    GROUP BY cluster_id, entity_name
),
brokers_now AS (
    SELECT
        newest.cluster_id,
        newest.broker_id,
        count(CASE WHEN NOT is_removed THEN 1 END) AS entries,
        count(DISTINCT CASE WHEN NOT is_removed THEN newest.producer_id END) AS ids,
        count(
            DISTINCT CASE
                WHEN NOT is_removed AND owners.producer_id IS NULL THEN newest.producer_id
            END
        ) AS ids_of_unknown_owner,
        count(CASE WHEN first_held_at > first_at THEN 1 END) AS new_entries,
        max(first_at) AS first_at,
        max(snapshots.snapshot_time) AS snapshot_time
    FROM newest
    INNER JOIN producer_snapshots AS snapshots ON newest.cluster_id = snapshots.cluster_id
    LEFT JOIN (
        SELECT DISTINCT cluster_id, producer_id FROM producer_id_uses
        WHERE producer_id IS NOT NULL AND principal IS NOT NULL
    ) AS owners
        ON newest.cluster_id = owners.cluster_id AND newest.producer_id = owners.producer_id
    WHERE nth = 1
    GROUP BY newest.cluster_id, newest.broker_id
),
paced AS (
    SELECT
        brokers_now.*,
        coalesce(expiration_ms, 86400000) AS expiration_ms,
        CASE
            WHEN snapshot_time > first_at
                THEN new_entries * 1e3 / (unix_millis(snapshot_time) - unix_millis(first_at))
        END AS entries_per_s
    FROM brokers_now
    LEFT JOIN expirations
        ON brokers_now.cluster_id = expirations.cluster_id
            AND CAST(brokers_now.broker_id AS STRING) = expirations.entity_name
),
forecast AS (
    SELECT
        paced.*,
        sizes.*,
        CAST(
            CASE
                WHEN entries_per_s * expiration_ms / 1e3 > entries
                    THEN entries_per_s * expiration_ms / 1e3
                ELSE entries
            END AS BIGINT
        ) AS forecast_entries,
        CASE
            WHEN entries_per_s > 0 AND entries_per_s * expiration_ms / 1e3 * bytes_per_entry > budget_bytes
                THEN CAST(floor(budget_bytes / (entries_per_s * bytes_per_entry) * 1e3) AS BIGINT)
        END AS fitting_ms
    FROM paced
    CROSS JOIN sizes
)

SELECT
    cluster_id,
    broker_id,
    entries,
    ids,
    ids_of_unknown_owner,
    entries_per_s,
    expiration_ms,
    entries * bytes_per_entry AS heap_bytes,
    forecast_entries,
    forecast_entries * bytes_per_entry AS forecast_bytes,
    CASE WHEN fitting_ms < least_ms THEN least_ms ELSE fitting_ms END AS recommended_expiration_ms,
    bytes_per_entry,
    snapshot_time
FROM forecast
