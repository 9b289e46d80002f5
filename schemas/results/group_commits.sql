-- kind: result
-- grain: one row per minute, group, partition, client and coordinator
-- area: groups
-- level: sampled_log
-- description: Offsets that clients committed for groups, one row {per}. A row without a partition
--   counts requests whose body was not kept. A commit of a transaction is valid once the
--   transaction is committed
-- key: cluster_id, event_time, group_id, topic_id, topic, partition, principal, client_id,
--   coordinator_id
-- time: event_time
-- partitioning: event_date
-- facts: requests
-- relevant: group_id IS NOT NULL AND api IN ('JOIN_GROUP', 'SYNC_GROUP', 'HEARTBEAT',
--   'LEAVE_GROUP', 'CONSUMER_GROUP_HEARTBEAT', 'SHARE_GROUP_HEARTBEAT', 'STREAMS_GROUP_HEARTBEAT',
--   'OFFSET_COMMIT', 'TXN_OFFSET_COMMIT')
-- bucket: 1 min
-- split_by: cluster_id, kafka_string(group_id)
-- lookups:
--   topics: from event_time, reaches back
--   topic_names: changes nothing
-- unnamed:
--   group_commits
-- columns:
--   from requests: cluster_id
--   from topic_names: event_date, event_time
--   group_id STRING: id of the group as its client gave it: untrusted text
--   topic_id STRING: id of the topic; null: requests have its name, and nothing has its id
--   topic STRING: name of the topic; null: no request, answer or snapshot has a name of topic_id
--     yet
--   partition INT: number of the partition
--   from requests: principal, client_id
--   coordinator_id INT: broker that took or refused the commits, by whose clock times are
--   commits BIGINT: commits that the broker took, or whose answer is lost
--   failed_commits BIGINT: commits that the broker refused
--   error_code INT: error code of the newest refused commit; null: none was
--   first_offset BIGINT: offset of the first commit taken; null: none was
--   last_offset BIGINT: offset of the last commit taken; null: none was
--   max_offset BIGINT: greatest offset of the commits taken; null: none was
--   last_commit_time TIMESTAMP: when the broker took the last one; null: none
--   member_id STRING: member that committed last; null: none named itself
--   group_epoch INT: greatest generation or member epoch that a commit taken named; null: none did
--   is_transactional BOOLEAN: some are of transactions (TXN_OFFSET_COMMIT)
--   went_back BOOLEAN: some commit taken is below an earlier one of the minute

-- Offsets that clients commit for groups, by minute. Of two answers for one partition of a request
-- the first in order counts.
WITH requested AS (
    SELECT
        row_number() OVER () AS request_number, cluster_id, floored(event_time, 60) AS minute,
        event_time, group_id, principal, client_id, broker_id AS coordinator_id, member_id,
        requested_epoch, requests, nth, error_code,
        api = 'TXN_OFFSET_COMMIT' AS is_transactional, requested_topics, answered_topics
    FROM group_requests
    WHERE kind = 'commit'
),
parts AS (
    SELECT
        request_number, topic_id, topic, json_int(part.partitionIndex) AS "partition",
        if(json_bigint(part.committedOffset) >= 0, json_bigint(part.committedOffset), NULL)
            AS committed_offset
    FROM (
        SELECT
            request_number, left(nullif(t.name, ''), 32_767) AS topic,
            left(nullif(t.topicId, $no_topic_id), 32_767) AS topic_id,
            unnest(t.partitions) AS part
        FROM (SELECT request_number, unnest(requested_topics) AS t FROM requested)
    )
),
answers AS (
    SELECT
        request_number, coalesce(topic_id, topic) AS topic_key,
        json_int(part.partitionIndex) AS "partition", min(json_int(part.errorCode)) AS error_code
    FROM (
        SELECT
            request_number, left(nullif(t.name, ''), 32_767) AS topic,
            left(nullif(t.topicId, $no_topic_id), 32_767) AS topic_id,
            unnest(t.partitions) AS part
        FROM (SELECT request_number, unnest(answered_topics) AS t FROM requested)
    )
    GROUP BY ALL
),
commits AS (
    SELECT
        r.* EXCLUDE (request_number, requested_topics, answered_topics, error_code, minute),
        r.minute AS event_time_minute, r.minute + INTERVAL 1 MINUTE AS minute_end,
        p.topic, p.topic_id, p."partition", p.committed_offset,
        coalesce(a.error_code, r.error_code) AS error_code
    FROM requested r
    LEFT JOIN parts p USING (request_number)
    LEFT JOIN answers a
        ON a.request_number = r.request_number
        AND a.topic_key = coalesce(p.topic_id, p.topic) AND a."partition" = p."partition"
    -- A request without a partition commits nothing; one whose body was not kept is counted.
    WHERE p.request_number IS NOT NULL OR r.requested_topics IS NULL
),
ordered AS (
    SELECT
        *, coalesce(error_code, 0) = 0 AS is_taken,
        max(committed_offset) FILTER (coalesce(error_code, 0) = 0) OVER (
            PARTITION BY cluster_id, group_id, topic_id, topic, "partition", principal, client_id,
                coordinator_id, event_time_minute
            ORDER BY nth ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS greatest_before
    FROM with_topics(commits, topics, topics_by_id)
)
SELECT
    cluster_id, CAST(event_time_minute AS DATE) AS event_date, event_time_minute AS event_time,
    group_id, topic_id, topic, "partition", principal, client_id, coordinator_id,
    coalesce(sum(requests) FILTER (is_taken), 0) AS commits,
    coalesce(sum(requests) FILTER (NOT is_taken), 0) AS failed_commits,
    arg_max(error_code, nth) FILTER (NOT is_taken) AS error_code,
    arg_min(committed_offset, nth) FILTER (is_taken) AS first_offset,
    arg_max(committed_offset, nth) FILTER (is_taken) AS last_offset,
    max(committed_offset) FILTER (is_taken) AS max_offset,
    max(event_time) FILTER (is_taken AND "partition" IS NOT NULL) AS last_commit_time,
    arg_max(member_id, nth) AS member_id,
    max(requested_epoch) FILTER (is_taken) AS group_epoch,
    bool_or(is_transactional) AS is_transactional,
    coalesce(bool_or(is_taken AND committed_offset < greatest_before), false) AS went_back
FROM ordered
GROUP BY ALL
