-- kind: mart
-- grain: one row per producer id
-- area: producer_ids
-- level: admin_api
-- question: Owners of producer ids. Who got a producer id, is it still in use, and does it hold a transaction
--   open?
-- description: The owner of each producer id, when it was seen, and where it is active as of the last
--   snapshot. The owner is the client that received the id last (INIT_PRODUCER_ID), or else the one
--   that named it last in a transactional request.
-- history: producer_id_uses
-- columns:
--   from producer_id_uses: cluster_id, producer_id
--   state: allocated (given, no leader has it), active (wrote within 5 minutes before the snapshot),
--     idle (a leader has it, wrote earlier) or expired (by producer.id.expiration.ms)
--   principal: principal of the owner; null: no log line shows one
--   client_id: client.id of the owner: untrusted text
--   client_address: address of the owner
--   client_software_name: client library of the owner (KIP-511)
--   client_software_version: version of that library
--   transactional_id: transactional.id of the owner; null for idempotent producers
--   replaced_id: id that the transactional.id of the owner used before; null: none, or no transactional.id
--   is_epoch_exhausted: the epochs of replaced_id were used up, so Kafka gave a new id; null: no
--     transactional.id
--   is_owner_known: a log line shows the owner
--   first_seen: first request with the id, or else first snapshot with it; its last write, if that is
--     earlier
--   last_seen: last request with the id, or its last write
--   last_write_at: timestamp of its last batch; null: no snapshot has one
--   leaders: brokers whose partitions have the id, sorted; null: none
--   partitions: partitions that have the id, as topic-partition, sorted; null: none
--   partition_count: number of those partitions
--   open_transactions: partitions with an open transaction of the id
--   snapshot_time: time of the last snapshot of producers
--   expiration_ms: producer.id.expiration.ms of the brokers, in ms; Kafka's default of a day if no
--     snapshot has it
WITH used AS (
    SELECT
        *,
        row_number() OVER (
            PARTITION BY cluster_id, producer_id
            ORDER BY
                CASE WHEN allocations > 0 THEN 0 ELSE 1 END,
                last_seen DESC, principal, client_id, client_address, transactional_id, broker_id
        ) AS nth,
        min(first_seen) OVER (PARTITION BY cluster_id, producer_id) AS first_seen_at,
        max(last_seen) OVER (PARTITION BY cluster_id, producer_id) AS last_seen_at,
        max(producer_epoch) OVER (PARTITION BY cluster_id, producer_id) AS last_epoch
    FROM producer_id_uses
    WHERE producer_id IS NOT NULL
),
owners AS (
    SELECT
        *,
        CASE
            WHEN transactional_id IS NOT NULL AND lag(producer_id) OVER of_transactional_id >= 0
                THEN lag(producer_id) OVER of_transactional_id
        END AS replaced_id,
        CASE
            WHEN transactional_id IS NOT NULL
                THEN coalesce(lag(last_epoch) OVER of_transactional_id >= 32000, false)
        END AS is_epoch_exhausted
    FROM used
    WHERE nth = 1
    WINDOW of_transactional_id AS (
        PARTITION BY cluster_id, transactional_id ORDER BY first_seen_at, producer_id
    )
),
newest AS (
    SELECT
        *,
        row_number() OVER (
            PARTITION BY cluster_id, broker_id, topic, partition, producer_id
            ORDER BY event_time DESC
        ) AS nth,
        min(event_time) OVER (PARTITION BY cluster_id, producer_id) AS active_since
    FROM active_producers
),
active AS (
    SELECT
        cluster_id,
        producer_id,
        min(active_since) AS first_active_at,
        max(last_timestamp) AS last_write_at,
        array_sort(array_agg(DISTINCT CASE WHEN NOT is_removed THEN broker_id END)) AS leaders,
        array_sort(
            array_agg(
                DISTINCT CASE
                    WHEN NOT is_removed THEN concat(topic, '-', CAST(partition AS STRING))
                END
            )
        ) AS partitions,
        count(CASE WHEN NOT is_removed THEN 1 END) AS partition_count,
        count(CASE WHEN NOT is_removed AND current_transaction_start_offset >= 0 THEN 1 END)
            AS open_transactions
    FROM newest
    WHERE nth = 1
    GROUP BY cluster_id, producer_id
),
expirations AS (
    SELECT cluster_id, max(TRY_CAST(config_value AS BIGINT)) AS expiration_ms
    FROM current_configs
    WHERE entity_type = 'broker' AND config_key = 'producer.id.expiration.ms'
    GROUP BY cluster_id
),
ids AS (
    SELECT
        coalesce(owners.cluster_id, active.cluster_id) AS cluster_id,
        coalesce(owners.producer_id, active.producer_id) AS producer_id,
        principal,
        client_id,
        client_address,
        client_software_name,
        client_software_version,
        transactional_id,
        replaced_id,
        is_epoch_exhausted,
        owners.producer_id IS NOT NULL AS is_owner_known,
        CASE
            WHEN last_write_at < coalesce(first_seen_at, first_active_at) THEN last_write_at
            ELSE coalesce(first_seen_at, first_active_at)
        END AS first_seen,
        CASE
            WHEN last_write_at > last_seen_at OR last_seen_at IS NULL THEN last_write_at
            ELSE last_seen_at
        END AS last_seen,
        last_write_at,
        leaders,
        partitions,
        coalesce(partition_count, 0) AS partition_count,
        coalesce(open_transactions, 0) AS open_transactions,
        first_active_at IS NOT NULL AS was_active
    FROM owners
    FULL OUTER JOIN active USING (cluster_id, producer_id)
)

SELECT
    *,
    CASE
        WHEN unix_millis(snapshot_time) - unix_millis(last_seen) >= coalesce(expiration_ms, 86400000)
            AND open_transactions = 0 THEN 'expired'
        WHEN partition_count = 0 AND was_active THEN 'expired'
        WHEN partition_count = 0 THEN 'allocated'
        WHEN unix_millis(snapshot_time) - unix_millis(last_write_at) <= 300000 THEN 'active'
        ELSE 'idle'
    END AS state,
    CASE WHEN partition_count > 0 THEN leaders END AS leaders,
    CASE WHEN partition_count > 0 THEN partitions END AS partitions,
    coalesce(expiration_ms, 86400000) AS expiration_ms
FROM ids
LEFT JOIN producer_snapshots AS snapshots USING (cluster_id)
LEFT JOIN expirations USING (cluster_id)
