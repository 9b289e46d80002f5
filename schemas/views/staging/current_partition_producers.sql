-- kind: staging
-- grain: one row per partition and producer id
-- area: groups
-- level: admin_api
-- description: The producers of each partition in the last snapshot, and who has a transaction open,
--   by what changed within 14 days.
-- columns:
--   from active_producers: cluster_id, topic, partition, producer_id, last_timestamp
--   open_since: first snapshot that saw the transaction that is open; null: none is
--   start_offset: first offset of the transaction that is open; null: none is
--   transactional_id: transactional.id of the producer id, as the client gave it; null: not known
--   has_marker: whether a transaction of it ended there: with a marker, which no consumer gets
WITH recent AS (
    SELECT
        *,
        max(event_time) OVER (PARTITION BY cluster_id) AS last_change
    FROM active_producers
),
seen AS (
    SELECT
        *,
        row_number() OVER (
            PARTITION BY cluster_id, topic, partition, producer_id
            ORDER BY event_time DESC, is_removed
        ) AS age,
        min(event_time) OVER (
            PARTITION BY
                cluster_id, topic, partition, producer_id, current_transaction_start_offset
        ) AS seen_since
    FROM recent
    WHERE unix_micros(event_time) > unix_micros(last_change) - 1209600000000
),
names AS (
    SELECT cluster_id, producer_id, max_by(transactional_id, event_time) AS transactional_id
    FROM (
        SELECT
            *,
            max(event_time) OVER (PARTITION BY cluster_id) AS last_change
        FROM transactional_ids
    ) AS named
    WHERE
        NOT is_removed
        AND unix_micros(event_time) > unix_micros(last_change) - 1209600000000
    GROUP BY cluster_id, producer_id
)
SELECT
    *,
    CASE WHEN seen.current_transaction_start_offset IS NOT NULL THEN seen.seen_since END
        AS open_since,
    seen.current_transaction_start_offset AS start_offset,
    -- A coordinator's epoch comes with its first marker.
    seen.coordinator_epoch IS NOT NULL AS has_marker
FROM seen
LEFT JOIN names USING (cluster_id, producer_id)
WHERE seen.age = 1 AND NOT seen.is_removed
