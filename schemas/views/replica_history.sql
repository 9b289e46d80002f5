-- One row per state a replica was in, and from when to when snapshots saw it: valid_to is null while
-- it stands.
WITH changes AS (
    SELECT
        *,
        lead(event_time) OVER (
            PARTITION BY cluster_id, topic_id, partition, broker_id ORDER BY event_time
        ) AS valid_to
    FROM replicas
)

SELECT
    cluster_id,
    topic_id,
    partition,
    broker_id,
    topic,
    is_preferred,
    is_leader,
    is_in_sync,
    is_offline,
    event_time AS valid_from,
    valid_to
FROM changes
WHERE NOT is_removed
