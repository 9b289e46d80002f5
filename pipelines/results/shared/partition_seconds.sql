-- What followers read of partitions, and clients produced into them (follower_id null): one row per
-- second of leader, follower and partition. The second is by the leader's clock: a follower writes
-- no line of its own. Lists of the topic give the bytes that a throttle counts (KIP-73).
WITH lines AS (
    SELECT
        cluster_id, event_time, broker_id AS leader_id, replica_id AS follower_id, api,
        partitions, if(api = 'FETCH', forgotten, NULL) AS forgotten, weight_of(weight) AS weight
    FROM requests
    WHERE api = 'PRODUCE' OR (api = 'FETCH' AND replica_id IS NOT NULL)
),
-- One row per partition that a request names or an answer has.
answered AS (
    SELECT
        l.* EXCLUDE (part, partitions, forgotten), part.topic, part.topic_id, part.partition,
        part.fetch_offset,
        -- A refused partition has none.
        if(part.high_watermark >= 0, part.high_watermark, NULL) AS high_watermark,
        if(coalesce(part.error_code, 0) = 0, coalesce(part.bytes, 0), NULL) AS size,
        coalesce(api = 'FETCH' AND part.in_request AND size = 0, false) AS is_empty
    FROM (SELECT *, unnest(partitions) AS part FROM lines) l
),
-- One row per partition that a fetch takes out of its session (KIP-227).
omitted AS (
    SELECT
        l.* EXCLUDE (part, partitions, forgotten) REPLACE (0 AS weight),
        part.topic, part.topic_id, part.partition, weight AS omitting
    FROM (SELECT *, unnest(forgotten) AS part FROM lines) l
),
seconds AS (
    SELECT
        cluster_id, floored(event_time, 1) AS event_time, leader_id, follower_id,
        topic, topic_id, "partition",
        sum(weight) AS fetches,
        coalesce(sum(size * weight), 0) AS bytes,
        min(event_time) FILTER (size > 0) AS first_time,
        max(event_time) FILTER (size > 0) AS last_time,
        arg_max(size * weight, (event_time, size)) FILTER (size > 0) AS last_size,
        min(fetch_offset) AS first_fetch_offset,
        max(fetch_offset) AS last_fetch_offset,
        min(event_time) FILTER (fetch_offset IS NOT NULL) AS first_fetch_time,
        max(event_time) FILTER (fetch_offset IS NOT NULL) AS last_fetch_time,
        min(high_watermark) AS first_high_watermark,
        max(high_watermark) AS high_watermark,
        coalesce(sum(weight) FILTER (lag_of(high_watermark, fetch_offset) > 0), 0)
            AS behind_fetches,
        coalesce(sum(weight) FILTER (is_empty), 0) AS empty_fetches,
        max(fetch_offset) FILTER (is_empty) AS empty_offset,
        coalesce(sum(omitting), 0) AS omitted_fetches
    FROM (FROM answered UNION ALL BY NAME FROM omitted)
    GROUP BY ALL
),
named AS (
    SELECT *, event_time + INTERVAL 1 SECOND AS second_end
    FROM with_names(seconds, topics_by_id)
),
lists AS (
    SELECT cluster_id, entity_name AS topic, side, since, until, trim(value) AS list
    FROM throttle_configs
    WHERE entity_type = 'topic'
)
SELECT
    n.* EXCLUDE (second_end),
    if(lists_replica(l.list, n.partition, leader_id) AND follower_id IS NOT NULL, bytes, 0)
        AS leader_throttled_bytes,
    if(lists_replica(f.list, n.partition, follower_id) AND follower_id IS NOT NULL, bytes, 0)
        AS follower_throttled_bytes
FROM named n
-- The lists at the end of the second.
LEFT JOIN lists l ON l.cluster_id = n.cluster_id AND l.topic = n.topic AND l.side = 'leader'
    AND l.since < second_end AND coalesce(l.until >= second_end, true)
LEFT JOIN lists f ON f.cluster_id = n.cluster_id AND f.topic = n.topic AND f.side = 'follower'
    AND f.since < second_end AND coalesce(f.until >= second_end, true)
