-- kind: result
-- grain: one row per minute, client, broker and API
-- area: requests
-- level: sampled_log
-- question: Request times. On what do requests of each client wait?
-- description: Where the time of requests went, one row {per}: the parts of Kafka's request
--   metrics, whose sum is total_time_ms, and the throttle after the answer. Times are sums over the
--   requests. Fetches of followers are left out; other requests of brokers count
-- key: cluster_id, event_time, broker_id, principal, client_id, api
-- time: event_time
-- partitioning: event_date
-- facts: requests
-- relevant: replica_id IS NULL
-- bucket: 1 min
-- split_by: cluster_id, broker_id
-- columns:
--   from requests: cluster_id
--   event_date DATE: UTC date of event_time
--   event_time TIMESTAMP: start of the minute
--   broker_id INT: broker that answered
--   from requests: principal, client_id, api
--   request_count BIGINT: requests
--   timed_requests BIGINT: those of them whose line has a time
--   throttled_requests BIGINT: those of them that were throttled
--   total_time_ms DOUBLE: from receive to sent, in ms: the sum of the six parts that follow
--   longest_time_ms DOUBLE: longest time of one request from receive to sent, in ms
--   request_queue_time_ms DOUBLE: waiting for a request handler thread, in ms
--   local_time_ms DOUBLE: in the broker itself, in ms
--   remote_time_ms DOUBLE: waiting for others, in ms: PRODUCE for followers (acks=all), FETCH and
--     SHARE_FETCH for records, JOIN_GROUP and SYNC_GROUP for members
--   response_queue_time_ms DOUBLE: waiting for a network thread, in ms
--   send_time_ms DOUBLE: writing the answer to the connection, in ms
--   unknown_time_ms DOUBLE: part of total_time_ms that no other part has, in ms
--   throttle_time_ms DOUBLE: how long the broker then left the connection unread for a quota
--     (KIP-219), in ms
--   waited_time_ms DOUBLE: what a client waits for, in ms: total_time_ms and throttle_time_ms, without
--     remote_time_ms of an API that waits for records or members
--   bytes BIGINT: record bytes in PRODUCE, FETCH: of partitions without an error
--   batches BIGINT: partitions of these requests that had record bytes: a PRODUCE has one batch in
--     each
--   errors ARRAY<STRUCT<error_code: INT, requests: BIGINT>>: requests by error, of the answer, of
--     one of its partitions, or of a topic of METADATA; null: there were none
--   waited_histogram ARRAY<STRUCT<bucket: INT, requests: BIGINT>>: timed requests by waited time, in
--     buckets of OpenTelemetry's exponential histogram of scale 3: above 2^(bucket / 8) ms, up to
--     2^((bucket + 1) / 8). Requests that waited no time are in none; null: all are such
--   software ARRAY<STRUCT<name: STRING, version: STRING, requests: BIGINT, first_seen: TIMESTAMP,
--     last_seen: TIMESTAMP>>: requests by the client library that they name (KIP-511), with the times
--     of the first and the last
--   line_count BIGINT: lines of the log that show these requests: fewer than request_count where
--     ingest sampled. A p99 of waited_histogram rests on so many; null: the row is older
--   part_histograms ARRAY<STRUCT<part: STRING, bucket: INT, requests: BIGINT>>: timed requests by the
--     time of a part (request_queue, local, remote, response_queue, send), in the buckets of
--     waited_histogram. Parts below 5 ms are left out, and so is remote where it is no wait; null: the
--     row is older
--   error_resources ARRAY<STRUCT<error_code: INT, resource: STRING>>: topics of PRODUCE, FETCH and
--     METADATA, by id where the line has no name, and groups that got an error, up to ten of each
--     error; null: the lines name none, or the row is older

-- Where the time of requests goes, by client, broker, API and minute.
-- RequestChannel.updateRequestMetrics of Kafka: the parts are consecutive, and the throttle is in none
-- of them.
WITH timed AS (
    -- A row is a request. Times are whole microseconds: sums of these are exact in any order.
    SELECT
        cluster_id, broker_id, principal, client_id, api, floored(event_time, 60) AS event_time,
        event_time AS seen_at, client_software_name AS name, client_software_version AS version,
        weight_of(weight) AS weight,
        whole_us(request_queue_time_ms) AS request_queue, whole_us(local_time_ms) AS local,
        whole_us(remote_time_ms) AS remote, whole_us(response_queue_time_ms) AS response_queue,
        whole_us(send_time_ms) AS send, whole_us(throttle_time_ms) AS throttle,
        request_queue + local + remote + response_queue + send AS parts,
        greatest(whole_us(total_time_ms), parts) AS total,
        coalesce(total_time_ms, request_queue_time_ms, local_time_ms, remote_time_ms) IS NOT NULL
            AS is_timed,
        if(api IN ('FETCH', 'SHARE_FETCH', 'JOIN_GROUP', 'SYNC_GROUP'), 0, remote) AS waited_remote,
        total + throttle - remote + waited_remote AS waited,
        moved_bytes(partitions) AS sizes, error_code,
        -- METADATA has its topics in the body. LEADER_NOT_AVAILABLE (5): one is being elected.
        CASE
            WHEN api = 'METADATA' AND regexp_matches(body, '"errorCode":[1-9]') THEN list_filter(
                from_json(json_or_null(body), '{
                    "response": {"topics": [
                        {"name": "VARCHAR", "topicId": "VARCHAR", "errorCode": "INTEGER"}
                    ]}
                }').response.topics,
                lambda t: t."errorCode" NOT IN (0, 5)
            )
        END AS failed_topics,
        if(
            len(failed_topics) > 0,
            [t."errorCode" FOR t IN failed_topics],
            list_filter([p.error_code FOR p IN partitions], lambda c: c <> 0)
        ) AS partition_errors,
        CASE
            WHEN len(failed_topics) > 0 THEN
                [{error_code: t."errorCode", resource: coalesce(t.name, t."topicId")}
                    FOR t IN failed_topics]
            WHEN len(partition_errors) > 0 THEN
                [{error_code: p.error_code, resource: coalesce(p.topic, p.topic_id)}
                    FOR p IN partitions IF p.error_code <> 0]
            WHEN error_code <> 0 THEN [{error_code: error_code, resource: group_id}]
        END AS failed
    FROM requests
),
in_buckets AS (
    -- A row is a client's requests of one API and minute with one library and one bucket.
    SELECT
        cluster_id, event_time, broker_id, principal, client_id, api, name, version,
        min(seen_at) AS first_seen, max(seen_at) AS last_seen,
        if(is_timed AND waited > 0, CAST(ceil(8 * log2(waited / 1e3)) AS INT) - 1, NULL) AS bucket,
        count(*) AS lines,
        sum(weight) AS requests, coalesce(sum(weight) FILTER (is_timed), 0) AS timed_requests,
        coalesce(sum(weight) FILTER (throttle > 0), 0) AS throttled_requests,
        sum(total * weight) AS total, max(total) AS longest,
        sum(request_queue * weight) AS request_queue, sum(local * weight) AS local,
        sum(remote * weight) AS remote,
        sum(response_queue * weight) AS response_queue, sum(send * weight) AS send,
        sum((total - parts) * weight) AS unknown, sum(throttle * weight) AS throttle,
        sum(waited * weight) AS waited, coalesce(sum(list_sum(sizes) * weight), 0) AS bytes,
        coalesce(sum(len(sizes) * weight), 0) AS batches
    FROM timed
    GROUP BY ALL
),
with_error AS (
    SELECT
        cluster_id, event_time, broker_id, principal, client_id, api, error_code,
        sum(weight) AS requests
    FROM (
        SELECT
            * EXCLUDE (error_code),
            unnest(list_distinct(list_append(partition_errors, error_code))) AS error_code
        FROM timed
        WHERE error_code <> 0 OR len(partition_errors) > 0
    )
    WHERE error_code <> 0
    GROUP BY ALL
),
softwares AS (
    SELECT
        cluster_id, event_time, broker_id, principal, client_id, api,
        list({
            name: name, version: version, requests: requests, first_seen: first_seen,
            last_seen: last_seen
        } ORDER BY name, version) AS software
    FROM (
        SELECT
            cluster_id, event_time, broker_id, principal, client_id, api, name, version,
            sum(requests) AS requests, min(first_seen) AS first_seen, max(last_seen) AS last_seen
        FROM in_buckets
        GROUP BY ALL
    )
    GROUP BY ALL
),
histograms AS (
    SELECT
        cluster_id, event_time, broker_id, principal, client_id, api,
        list({bucket: bucket, requests: requests} ORDER BY bucket) AS waited_histogram
    FROM (
        SELECT
            cluster_id, event_time, broker_id, principal, client_id, api, bucket,
            sum(requests) AS requests
        FROM in_buckets
        WHERE bucket IS NOT NULL
        GROUP BY ALL
    )
    GROUP BY ALL
),
in_parts AS (
    -- A row is a request and a part of its wait.
    SELECT
        cluster_id, event_time, broker_id, principal, client_id, api, weight,
        unnest(['request_queue', 'local', 'remote', 'response_queue', 'send']) AS part,
        unnest([request_queue, local, waited_remote, response_queue, send]) AS waited
    FROM timed
    WHERE is_timed AND greatest(request_queue, local, waited_remote, response_queue, send) >= 5000
),
part_histograms AS (
    SELECT
        cluster_id, event_time, broker_id, principal, client_id, api,
        list({part: part, bucket: bucket, requests: requests} ORDER BY part, bucket)
            AS part_histograms
    FROM (
        SELECT
            cluster_id, event_time, broker_id, principal, client_id, api, part,
            CAST(ceil(8 * log2(waited / 1e3)) AS INT) - 1 AS bucket, sum(weight) AS requests
        FROM in_parts
        WHERE waited >= 5000
        GROUP BY ALL
    )
    GROUP BY ALL
),
with_resource AS (
    SELECT
        cluster_id, event_time, broker_id, principal, client_id, api, each.error_code AS error_code,
        unnest(list_slice(list_sort(list(DISTINCT each.resource)), 1, 10)) AS resource
    FROM (
        SELECT * EXCLUDE (error_code), unnest(failed) AS each
        FROM timed
        WHERE error_code <> 0 OR len(partition_errors) > 0
    )
    WHERE each.resource IS NOT NULL
    GROUP BY cluster_id, event_time, broker_id, principal, client_id, api, each.error_code
),
resources AS (
    SELECT
        cluster_id, event_time, broker_id, principal, client_id, api,
        list({error_code: error_code, resource: resource} ORDER BY error_code, resource)
            AS error_resources
    FROM with_resource
    GROUP BY ALL
),
errors AS (
    SELECT
        cluster_id, event_time, broker_id, principal, client_id, api,
        list({error_code: error_code, requests: requests} ORDER BY error_code) AS errors
    FROM with_error
    GROUP BY ALL
)
SELECT
    cluster_id, CAST(event_time AS DATE) AS event_date, event_time, broker_id, principal, client_id,
    api, sum(requests) AS request_count, sum(timed_requests) AS timed_requests,
    sum(throttled_requests) AS throttled_requests, sum(total) / 1e3 AS total_time_ms,
    max(longest) / 1e3 AS longest_time_ms, sum(request_queue) / 1e3 AS request_queue_time_ms,
    sum(local) / 1e3 AS local_time_ms, sum(remote) / 1e3 AS remote_time_ms,
    sum(response_queue) / 1e3 AS response_queue_time_ms, sum(send) / 1e3 AS send_time_ms,
    sum(unknown) / 1e3 AS unknown_time_ms, sum(throttle) / 1e3 AS throttle_time_ms,
    sum(waited) / 1e3 AS waited_time_ms, sum(bytes) AS bytes, sum(batches) AS batches,
    max(errors) AS errors, max(waited_histogram) AS waited_histogram,
    max(software) AS software, sum(lines) AS line_count,
    coalesce(max(part_histograms), []) AS part_histograms, max(error_resources) AS error_resources
FROM (
    FROM in_buckets UNION ALL BY NAME FROM errors UNION ALL BY NAME FROM histograms
    UNION ALL BY NAME FROM softwares UNION ALL BY NAME FROM part_histograms
    UNION ALL BY NAME FROM resources
)
GROUP BY cluster_id, event_time, broker_id, principal, client_id, api
