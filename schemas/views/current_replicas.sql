-- One row per replica of a partition as the last snapshot found it.
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
