-- kind: staging
-- grain: one row per replica of a partition
-- description: The state of each replica in the last snapshot.
-- columns:
--   from replica_history: cluster_id, topic_id, topic, partition, broker_id, is_preferred, is_leader,
--     is_in_sync, is_offline, valid_from
SELECT
    cluster_id,
    topic_id,
    topic,
    partition,
    broker_id,
    is_preferred,
    is_leader,
    is_in_sync,
    is_offline,
    valid_from
FROM replica_history
WHERE valid_to IS NULL
