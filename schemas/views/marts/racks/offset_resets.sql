-- kind: mart
-- grain: one row per minute, client, broker, partition and position
-- description: Consumers that looked up the earliest or latest offset within a minute after one of
--   their offsets was out of range (fetch_faults), as auto.offset.reset makes them do. Records are then
--   skipped or read again.
-- columns:
--   from offset_lookups: cluster_id, event_time, principal, client_id, topic, partition, broker_id
--   position: earliest or latest
--   fault: fault that came before, as in fetch_faults
--   requests: lookups in the minute
--   refused_offset: greatest offset that was out of range; null: no session shows it
--   reset_offset: offset that the lookup returned
WITH refused AS (
    SELECT
        found.cluster_id,
        found.event_time,
        found.principal,
        found.client_id,
        coalesce(found.topic, topic_ids.topic) AS topic,
        found.partition,
        found.fault,
        found.max_fetch_offset
    FROM fetch_faults AS found
    LEFT JOIN topic_ids
        ON found.cluster_id = topic_ids.cluster_id AND found.topic_id = topic_ids.topic_id
    WHERE found.fault IN (
        'unavailable_offset', 'offset_too_small', 'offset_too_large', 'out_of_range_unknown'
    )
)

SELECT
    found.cluster_id,
    found.event_time,
    found.principal,
    found.client_id,
    found.topic,
    found.partition,
    found.broker_id,
    found.position,
    max(refused.fault) AS fault,
    max(found.requests) AS requests,
    max(refused.max_fetch_offset) AS refused_offset,
    max(found.last_offset) AS reset_offset
FROM offset_lookups AS found
INNER JOIN refused
    ON found.cluster_id = refused.cluster_id
        AND found.topic = refused.topic
        AND found.partition = refused.partition
        AND (found.principal IS NOT DISTINCT FROM refused.principal)
        AND (found.client_id IS NOT DISTINCT FROM refused.client_id)
WHERE
    found.position IN ('earliest', 'latest')
    AND found.error_code = 0
    AND found.replica_id IS NULL
    AND unix_millis(found.event_time) - unix_millis(refused.event_time) BETWEEN 0 AND 60000
GROUP BY
    found.cluster_id,
    found.event_time,
    found.principal,
    found.client_id,
    found.topic,
    found.partition,
    found.broker_id,
    found.position
