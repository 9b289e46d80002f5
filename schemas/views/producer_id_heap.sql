-- One row per broker that leads partitions with producers, as of the last snapshot: what producer ids
-- cost its heap now, what they come to when new ones go on coming as they did, and which
-- producer.id.expiration.ms would keep that within 64 MiB. An entry is an id on a partition; its
-- followers hold it too. entries_per_s counts entries first seen after the first snapshot, over the
-- time since that; null with one snapshot. An entry is taken for 424 bytes, as measured in a JVM with
-- compressed pointers: Kafka 4.3.1's ProducerStateEntry with the five batches it remembers (262 with
-- one), its key and its place in the map. Recommended is no less than an hour
-- (a producer that pauses for longer than that is given a new id) and nothing where it fits.
WITH sizes AS (
    SELECT 424 AS bytes_per_entry, 64 * 1024 * 1024 AS budget_bytes, 3600000 AS least_ms
),
newest AS (
    SELECT
        *,
        -- Of any broker: a new leader held them all along, as a follower.
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
    concat(
        coalesce(CAST(CAST(entries_per_s AS DECIMAL(18, 3)) AS STRING), '?'), ' new entries/s x ',
        CAST(CAST(expiration_ms / 1e3 AS BIGINT) AS STRING), ' s x ', CAST(bytes_per_entry AS STRING),
        ' bytes, at least the ', CAST(entries AS STRING), ' held now'
    ) AS formula,
    snapshot_time
FROM forecast
