-- One row per state a topic was in, and from when to when snapshots saw it: valid_to is null while
-- it stands.
WITH changes AS (
    SELECT
        *,
        lead(event_time) OVER (
            PARTITION BY cluster_id, topic_id ORDER BY event_time
        ) AS valid_to
    FROM topics
)

SELECT
    cluster_id,
    topic_id,
    topic,
    partition_count,
    is_internal,
    event_time AS valid_from,
    valid_to
FROM changes
WHERE NOT is_removed
