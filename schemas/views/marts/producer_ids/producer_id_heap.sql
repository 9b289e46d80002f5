-- kind: mart
-- grain: one row per broker that has replicas of partitions with producers, as of the last snapshot
-- area: producer_ids
-- level: admin_api
-- question: Heap of producer ids. Will producer ids fill the heap of a broker?
-- description: The heap that producer ids take on a broker now, the heap they will take if new ones
--   come at the same pace, and the producer.id.expiration.ms that limits it to the bound of conf. An
--   entry is an id in one replica of a partition: followers keep the ids that their leader has. It is
--   taken as 424 bytes, as measured for Kafka 4.3.1's ProducerStateEntry with five batches, its key
--   and its place in the map, with compressed pointers.
-- history: producer_id_uses
-- columns:
--   from active_producers: cluster_id
--   broker_id: broker that leads or follows the partitions
--   entries: entries it has now, for partitions that it leads or follows. A replica that is offline
--     counts: it has them again when it is back
--   entries_of_unknown_replicas: those entries for which no snapshot has the replicas of the partition:
--     they count at its leader alone, so that its followers have more than entries says
--   ids: different producer ids among them
--   ids_of_unknown_owner: those ids that the request log does not show a principal for
--   entries_per_s: entries first seen in the last hour, or since the snapshot before it, per second;
--     null: there is one snapshot only
--   expiration_ms: producer.id.expiration.ms of the broker, in ms; Kafka's default of a day if no
--     snapshot has it
--   heap_bytes: heap that these entries take now, in bytes
--   forecast_entries: entries after expiration_ms at this pace: the greater of entries and
--     entries_per_s x expiration_ms / 1000
--   forecast_bytes: heap that those take, in bytes: forecast_entries x bytes_per_entry
--   bound_bytes: heap that producer ids may take, in bytes: conf's producer_ids.max_heap_share of
--     producer_ids.broker_heap_bytes, or producer_ids.max_heap_bytes if that is not known
--   longest_pause_ms: longest time between two writes of one id on one partition that snapshots show,
--     in ms; null: none shows two
--   least_expiration_ms: shortest expiration that costs no live producer its id, in ms: the greatest of
--     six hours, 3 x longest_pause_ms and the broker's transaction.max.timeout.ms; null: no pause is
--     known
--   recommended_expiration_ms: producer.id.expiration.ms that limits the forecast to bound_bytes, in ms,
--     at least least_expiration_ms, because a producer that pauses longer gets a new id; null: the
--     forecast fits, or no shorter one is known to be safe
--   bytes_per_entry: heap that one entry takes, in bytes
--   snapshot_time: time of the last snapshot of producers
WITH sizes AS (
    SELECT 424 AS bytes_per_entry, 21600000 AS least_ms, 900000 AS transaction_timeout_ms
),
heap_policy AS (
    SELECT
        cluster_id,
        max(TRY_CAST(setting_value AS DOUBLE))
            FILTER (WHERE setting = 'producer_ids.broker_heap_bytes') AS broker_heap_bytes,
        max(TRY_CAST(setting_value AS DOUBLE))
            FILTER (WHERE setting = 'producer_ids.max_heap_share') AS max_heap_share,
        max(TRY_CAST(setting_value AS DOUBLE))
            FILTER (WHERE setting = 'producer_ids.max_heap_bytes') AS max_heap_bytes
    FROM current_settings
    GROUP BY cluster_id
),
pauses AS (
    SELECT
        cluster_id,
        max(unix_millis(last_timestamp) - unix_millis(before_at)) AS longest_pause_ms
    FROM (
        SELECT
            cluster_id,
            last_timestamp,
            lag(last_timestamp) OVER (
                PARTITION BY cluster_id, topic, partition, producer_id ORDER BY event_time
            ) AS before_at
        FROM active_producers
        WHERE NOT is_removed
    ) AS writes
    -- A client writes the timestamp, so a later one may be of an earlier time: that is no pause.
    WHERE last_timestamp >= before_at
    GROUP BY cluster_id
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
        ) AS first_seen_at
    FROM active_producers
),
expirations AS (
    SELECT
        cluster_id,
        entity_name,
        max(
            CASE config_key
                WHEN 'producer.id.expiration.ms' THEN TRY_CAST(config_value AS BIGINT)
            END
        ) AS expiration_ms,
        max(
            CASE config_key
                WHEN 'transaction.max.timeout.ms' THEN TRY_CAST(config_value AS BIGINT)
            END
        ) AS transaction_timeout_ms
    FROM current_configs
    WHERE
        entity_type = 'broker'
        AND config_key IN ('producer.id.expiration.ms', 'transaction.max.timeout.ms')
    GROUP BY cluster_id, entity_name
),
-- A row per replica that has the entry.
placed AS (
    SELECT
        newest.*,
        coalesce(replicas.broker_id, newest.broker_id) AS replica_broker_id,
        replicas.broker_id IS NULL AS is_unplaced
    FROM newest
    LEFT JOIN replica_history AS replicas
        ON newest.cluster_id = replicas.cluster_id
            AND newest.topic = replicas.topic
            AND newest.partition = replicas.partition
            AND replicas.valid_to IS NULL
    WHERE newest.nth = 1
),
brokers_now AS (
    SELECT
        placed.cluster_id,
        placed.replica_broker_id AS broker_id,
        count(CASE WHEN NOT is_removed THEN 1 END) AS entries,
        count(CASE WHEN NOT is_removed AND is_unplaced THEN 1 END) AS entries_of_unknown_replicas,
        count(DISTINCT CASE WHEN NOT is_removed THEN placed.producer_id END) AS ids,
        count(
            DISTINCT CASE
                WHEN NOT is_removed AND owners.producer_id IS NULL THEN placed.producer_id
            END
        ) AS ids_of_unknown_owner,
        count(CASE WHEN first_seen_at > paced_since THEN 1 END) AS new_entries,
        max(paced_since) AS paced_since,
        max(snapshots.snapshot_time) AS snapshot_time
    FROM placed
    INNER JOIN producer_snapshots AS snapshots USING (cluster_id)
    LEFT JOIN (
        SELECT DISTINCT cluster_id, producer_id FROM producer_id_uses
        WHERE producer_id IS NOT NULL AND principal IS NOT NULL
    ) AS owners USING (cluster_id, producer_id)
    GROUP BY placed.cluster_id, placed.replica_broker_id
),
paced AS (
    SELECT
        brokers_now.*,
        coalesce(expiration_ms, 86400000) AS expiration_ms,
        transaction_timeout_ms AS broker_timeout_ms,
        longest_pause_ms,
        CASE
            WHEN broker_heap_bytes IS NOT NULL
                THEN broker_heap_bytes * coalesce(max_heap_share, 1e-1)
            ELSE coalesce(max_heap_bytes, 6.7108864e7)
        END AS bound_bytes,
        CASE
            WHEN snapshot_time > paced_since
                THEN new_entries * 1e3 / (unix_millis(snapshot_time) - unix_millis(paced_since))
        END AS entries_per_s
    FROM brokers_now
    LEFT JOIN expirations
        ON brokers_now.cluster_id = expirations.cluster_id
            AND CAST(brokers_now.broker_id AS STRING) = expirations.entity_name
    LEFT JOIN heap_policy ON brokers_now.cluster_id = heap_policy.cluster_id
    LEFT JOIN pauses ON brokers_now.cluster_id = pauses.cluster_id
),
forecast AS (
    SELECT
        paced.*,
        sizes.bytes_per_entry,
        CAST(
            CASE
                WHEN entries_per_s * expiration_ms / 1e3 > entries
                    THEN entries_per_s * expiration_ms / 1e3
                ELSE entries
            END AS BIGINT
        ) AS forecast_entries,
        CASE
            WHEN entries_per_s > 0 AND entries_per_s * expiration_ms / 1e3 * bytes_per_entry > bound_bytes
                THEN CAST(floor(bound_bytes / (entries_per_s * bytes_per_entry) * 1e3) AS BIGINT)
        END AS fitting_ms,
        CASE
            WHEN longest_pause_ms IS NOT NULL
                THEN greatest(
                    least_ms,
                    3 * longest_pause_ms,
                    coalesce(broker_timeout_ms, sizes.transaction_timeout_ms)
                )
        END AS least_expiration_ms
    FROM paced
    CROSS JOIN sizes
)

SELECT
    *,
    entries * bytes_per_entry AS heap_bytes,
    forecast_entries * bytes_per_entry AS forecast_bytes,
    CASE
        WHEN fitting_ms < expiration_ms AND least_expiration_ms < expiration_ms
            THEN greatest(fitting_ms, least_expiration_ms)
    END AS recommended_expiration_ms
FROM forecast
