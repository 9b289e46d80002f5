-- kind: mart
-- grain: one row per minute, client, broker, partition and position
-- area: racks
-- level: sampled_log
-- description: Consumers that looked up an offset within a minute after one of their offsets was out of
--   range (fetch_faults), as auto.offset.reset makes them do: earliest, latest or by_duration
--   (KIP-1106). Records are then skipped or read again.
-- columns:
--   from offset_lookups: cluster_id, event_time, principal, client_id, topic, partition, broker_id
--   position: earliest, latest, or by_timestamp for by_duration
--   fault: fault that came before, as in fetch_faults
--   requests: lookups in the minute
--   refused_offset: greatest offset that was out of range; null: no session shows it
--   reset_offset: offset that the lookup returned
WITH refused AS (
    SELECT *
    FROM fetch_faults AS event
    WHERE event.fault IN (
        'unavailable_offset', 'offset_too_small', 'offset_too_large', 'out_of_range_unknown'
    )
)

SELECT
    event.*,
    max(refused.fault) AS fault,
    max(event.requests) AS requests,
    max(refused.max_fetch_offset) AS refused_offset,
    max(event.last_offset) AS reset_offset
FROM offset_lookups AS event
INNER JOIN refused
    ON event.cluster_id = refused.cluster_id
        AND event.topic = refused.topic
        AND event.partition = refused.partition
        AND (event.principal IS NOT DISTINCT FROM refused.principal)
        AND (event.client_id IS NOT DISTINCT FROM refused.client_id)
WHERE
    event.position IN ('earliest', 'latest', 'by_timestamp')
    AND event.error_code = 0
    AND event.replica_id IS NULL
    AND unix_millis(event.event_time) - unix_millis(refused.event_time) BETWEEN 0 AND 60000
GROUP BY ALL
