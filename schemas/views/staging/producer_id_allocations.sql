-- kind: staging
-- grain: one row per producer id that a broker gave to a client
-- area: producer_ids
-- level: sampled_log
-- description: Who received each producer id, when first, and when it was last named. INIT_PRODUCER_ID
--   gives ids. Where the epochs of an id are used up, END_TXN gives the next one too (KIP-890).
-- history: producer_id_uses
-- columns:
--   from producer_id_uses: cluster_id, producer_id, broker_id, principal, client_id, client_address
--   source: program and host that received the id, as "client_pattern at client_address": client ids
--     that differ only in numbers or random parts are one source
--   from producer_id_uses: client_pattern, client_software_name, client_software_version, transactional_id
--   is_new_transactional_id: no id was given to this transactional.id before; null for idempotent
--     producers
--   is_epoch_exhausted: the transactional.id had an id before whose epochs were used up (32766 is the last
--     that Kafka uses); null for idempotent producers, whose requests name no id that is replaced
--   allocated_at: time of the first request that received the id
--   last_used_at: time of the last request that received or named the id; only transactional requests
--     name one
WITH used AS (
    SELECT
        *,
        concat(coalesce(client_pattern, ''), ' at ', coalesce(client_address, '?')) AS source,
        row_number() OVER (
            PARTITION BY cluster_id, producer_id
            ORDER BY
                CASE WHEN allocations > 0 THEN 0 ELSE 1 END,
                first_seen, broker_id, principal, client_id, client_address, transactional_id
        ) AS nth,
        max(last_seen) OVER (PARTITION BY cluster_id, producer_id) AS last_used_at,
        max(producer_epoch) OVER (PARTITION BY cluster_id, producer_id) AS last_epoch
    FROM producer_id_uses
    WHERE producer_id IS NOT NULL
),
followed AS (
    SELECT
        *,
        CASE
            WHEN transactional_id IS NOT NULL THEN coalesce(lag(last_epoch) OVER (
                PARTITION BY cluster_id, transactional_id ORDER BY first_seen, producer_id
            ) >= 32000, false)
        END AS is_epoch_exhausted
    FROM used
    WHERE nth = 1
),
given AS (
    SELECT
        *,
        row_number() OVER (
            PARTITION BY cluster_id, transactional_id ORDER BY first_seen, producer_id
        ) AS nth_of_transactional_id
    FROM followed
    WHERE allocations > 0 OR is_epoch_exhausted
)

SELECT
    *,
    CASE WHEN transactional_id IS NOT NULL THEN nth_of_transactional_id = 1 END
        AS is_new_transactional_id,
    first_seen AS allocated_at
FROM given
