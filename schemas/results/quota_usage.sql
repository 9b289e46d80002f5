-- kind: result
-- grain: one row per window of conf's quotas (11 s)
-- area: quotas
-- level: sampled_log
-- question: Quota use. How much of its quota does each client use, and what limits it?
-- description: What each client used of a kind of client quota at a broker, and what limits it,
--   {per}. Windows are aligned, so that at its end a window's usage is Kafka's Rate over as many
--   samples; limits are those that stand when it ends. Usage is what the request log shows: records
--   without the bytes around them. Upkeep rolls old windows up: a row then has those that start in
--   one minute or hour, apart by quota and by the cause of a throttle. Over any rows sum amount and
--   counts, and take the greatest peak_usage
-- key: cluster_id, event_time, broker_id, principal, client_id, quota_type, quota_level, quota,
--   quota_bucket_user, quota_bucket_client_id, enforcement, throttled_by, throttled_requests
-- time: event_time
-- partitioning: event_date
-- facts: requests
-- relevant: principal IS NOT NULL AND replica_id IS NULL
-- bucket: $quota_rate_period_s
-- lookback: $quota_rate_period_s
-- split_by: cluster_id, broker_id
-- split_shared: api IN ('CREATE_TOPICS', 'CREATE_PARTITIONS', 'DELETE_TOPICS')
-- rolls_up: yes
-- lookups:
--   client_quotas: from coalesce(set_at, event_time)
--   configs: from event_time
--   brokers: from event_time
--   topics: from event_time
-- columns:
--   from requests: cluster_id
--   event_date DATE: UTC date of event_time
--   event_time TIMESTAMP: start of the window, or of the minute or hour of windows
--   broker_id INT: broker that charges: quotas are each broker's own. Mutations are charged by the
--     active controller; null: no snapshot has it
--   from requests: principal, client_id
--   quota_type STRING: producer_byte_rate, consumer_byte_rate, request_percentage or
--     controller_mutation_rate
--   usage DOUBLE: this client's own over period_s: bytes per second, per cent of one thread, or
--     partitions created and deleted per second. Rows of one event_time and period_s add up
--   is_estimated BOOLEAN: the broker charges more than usage has: network threads beside IO
--     threads; partitions of topics that no snapshot had counted, taken as one each; requests of an
--     API that ingest samples, or whose line does not have the bytes (SHARE_FETCH never does)
--   request_count BIGINT: requests, each in one row: PRODUCE, FETCH and SHARE_FETCH under their
--     bytes, changes of topics under mutations, all others under request_percentage, but those that
--     brokers exempt from quotas (such as WRITE_TXN_MARKERS)
--   throttled_requests BIGINT: those of them that were throttled, by any quota
--   throttle_time_ms DOUBLE: throttle time in their answers, in ms
--   throttled_by STRING: inferred: of the quotas that could have throttled them the one fullest in
--     this or the window before. A throttle longer than quotas.window_ms is not of request time, as
--     brokers bound that; one of a bucket with a lower bound is of its bytes, unless request time
--     was used up. Null: none throttled, or no quota known that could
--   quota_level INT: level of the entity that sets the quota: 1 user and client id, 2 user and
--     default client id, 3 user, 4 default user and client id, 5 default user and default client
--     id, 6 default user, 7 client id, 8 default client id; null: none is known
--   quota DOUBLE: limit that applies, in the unit of usage; null: none is known
--   is_quota_changed BOOLEAN: another quota applied during a part of the window
--   quota_bucket_user STRING: user that shares the quota; null: all users
--   quota_bucket_client_id STRING: client id that shares the quota; null: all of them
--   quota_bucket_usage DOUBLE: usage of all clients that share the quota; the greatest of the row's
--     windows
--   headroom DOUBLE: quota - quota_bucket_usage at the end of the window. Throttled requests show
--     that there was none between two ends; null: none is known
--   is_over BOOLEAN: quota_bucket_usage above the quota
--   enforcement STRING: stock; callback: the broker has a client.quota.callback.class, so that the
--     quota is not enforced by stock rules; unknown: no snapshot of the broker's configs by then
--   amount BIGINT: what usage is made of: bytes, microseconds of IO threads, or partitions
--   period_s INT: time that the row covers, in seconds: a window, or all windows that start in its
--     minute or hour
--   rolled_up_s INT: 60 or 3600: the row has the windows that start in this minute or hour; null:
--     it has one window
--   windows BIGINT: windows in which the client had requests
--   peak_usage DOUBLE: its greatest usage in a window
--   usage_histogram ARRAY<STRUCT<bucket: INT, windows: BIGINT>>: windows by usage, in buckets of
--     OpenTelemetry's exponential histogram of scale 3: usage above 2^(bucket / 8), up to
--     2^((bucket + 1) / 8); bucket null: no usage. Null in rows of one window
--   user_windows ARRAY<STRUCT<quota: DOUBLE, quota_level: INT, is_throttled: BOOLEAN, bucket: INT,
--     windows: BIGINT, peak_usage: DOUBLE, last_window: TIMESTAMP>>: windows of the user: its usage
--     at the broker over all client ids but those with a quota of levels 1 and 2, by bucket as
--     above, by the quota of users that applied, and by whether this kind of quota throttled
--     requests. One row of a user, broker, kind of quota and period has all of them; null in the
--     others and in rows of one window
--   share_requests BIGINT: consumer_byte_rate: those of request_count that are SHARE_FETCH. Brokers
--     charge their bytes and log none, so usage is less than was charged
--   is_lower_bound BOOLEAN: quota_bucket_usage is a lower bound, and headroom an upper one: some
--     client of the bucket sent SHARE_FETCH

-- What clients use of their quotas at each broker, and what limits them (KIP-13, KIP-124, KIP-599).
-- A window is aligned and as long as the broker's rate period. At its end, usage divided by length
-- equals Kafka's Rate. A row depends only on its window and the one before.
-- A broker charges whole requests and responses, and the time of network threads too. It logs the
-- bytes of records and the time of IO threads. It logs no bytes of SHARE_FETCH, which brokers charge
-- to consumer_byte_rate (KafkaApis.processShareFetchResponse): there usage is a lower bound.
WITH charged AS NOT MATERIALIZED (
    -- A row is a request, in its window. Times are whole microseconds: sums of these are exact in
    -- any order. A request that changes topics is one row too, also if its line has partitions, so
    -- it is charged once. What brokers and controllers exempt is left out; a throttle time shows that
    -- a request was charged.
    -- NOT MATERIALIZED: its second reader needs few rows, and to store all of them costs more than to
    -- read them again.
    SELECT
        cluster_id, broker_id, principal, coalesce(client_id, '') AS client_id, event_time, api,
        body, floored(event_time, $bucket_s) AS start, weight_of(weight) AS weight,
        coalesce(list_sum([p.bytes FOR p IN partitions]), 0) * weight_of(weight) AS bytes,
        -- What was sent or answered and has no readable size.
        partitions IS NULL OR list_contains(
            if(
                api = 'PRODUCE',
                [p.bytes IS NULL AND p.in_request FOR p IN partitions],
                [p.bytes IS NULL AND p.in_response AND coalesce(p.error_code, 0) = 0
                    FOR p IN partitions]
            ), true) AS is_unsized,
        TRY_CAST(round(coalesce(local_time_ms, 0) * 1_000) AS BIGINT) * weight_of(weight) AS local_us,
        TRY_CAST(round(coalesce(throttle_time_ms, 0) * 1_000) AS BIGINT) * weight_of(weight)
            AS throttle_us,
        throttle_time_ms, if(api = 'SHARE_FETCH', weight_of(weight), 0) AS share_requests,
        CASE
            WHEN api = 'PRODUCE' THEN 'producer_byte_rate'
            WHEN api IN ('FETCH', 'SHARE_FETCH') THEN 'consumer_byte_rate'
            WHEN api IN ('CREATE_TOPICS', 'CREATE_PARTITIONS', 'DELETE_TOPICS')
                THEN 'controller_mutation_rate'
            ELSE 'request_percentage'
        END AS counted_as
    FROM requests
    WHERE NOT (
        list_contains($exempt_apis, api)
        AND error_code IS DISTINCT FROM $refused
        AND coalesce(throttle_time_ms, 0) <= 0
    )
),
topic_changes AS (
    -- A row is a request that changes topics. Without answers its body was not kept, or is broken.
    SELECT
        * EXCLUDE (body, parsed), parsed.request.topics AS requested,
        coalesce(parsed.response.topics, parsed.response.responses, parsed.response.results)
            AS answers
    FROM (
        SELECT *, from_json(json_or_null(body), '{
            "request": {"topics": [{"name": "VARCHAR", "numPartitions": "JSON", "count": "JSON",
                                    "assignments": ["JSON"]}]},
            "response": {
                "topics": [{"name": "VARCHAR", "errorCode": "JSON", "numPartitions": "JSON"}],
                "responses": [{"name": "VARCHAR", "errorCode": "JSON", "numPartitions": "JSON"}],
                "results": [{"name": "VARCHAR", "errorCode": "JSON", "numPartitions": "JSON"}]
            }}') AS parsed
        FROM charged
        WHERE counted_as = 'controller_mutation_rate'
    )
),
controllers AS (
    -- A row is the active controller from a snapshot on.
    SELECT cluster_id, event_time AS since, max(broker_id) AS controller_id
    FROM brokers
    WHERE is_controller AND NOT is_removed
    GROUP BY ALL
),
at_controller AS (
    -- A row is the same request, at the broker that charges it.
    SELECT t.* EXCLUDE (broker_id), c.controller_id AS broker_id
    FROM topic_changes AS t
    ASOF LEFT JOIN controllers AS c ON c.cluster_id = t.cluster_id AND c.since < t.event_time
),
changed_topics AS (
    -- A row is a topic that a request changed, with its part of the request.
    SELECT
        * EXCLUDE (requested, answers), answer.name AS topic,
        list_filter(requested, lambda t: t.name = answer.name)[1] AS request
    FROM (
        SELECT *, unnest(list_filter(answers, lambda t: json_int(t."errorCode") = 0)) AS answer
        FROM at_controller
    )
    WHERE answer.name IS NOT NULL
),
topic_sizes AS (
    -- A row is the number of a topic's partitions from a snapshot on.
    SELECT cluster_id, topic, event_time AS since, max(partition_count) AS partition_count
    FROM topics
    WHERE NOT is_removed
    GROUP BY ALL
),
mutations AS (
    -- A row is a changed topic, with how many partitions it got or lost; null if not known.
    SELECT
        c.*, CASE c.api
            WHEN 'CREATE_TOPICS' THEN coalesce(
                positive(json_int(c.answer."numPartitions")),
                positive(json_int(c.request."numPartitions")),
                positive(len(c.request.assignments))
            )
            WHEN 'CREATE_PARTITIONS' THEN positive(coalesce(
                json_int(c.request.count) - s.partition_count, len(c.request.assignments)
            ))
            WHEN 'DELETE_TOPICS' THEN s.partition_count
        END AS partitions
    FROM changed_topics AS c
    ASOF LEFT JOIN topic_sizes AS s
        ON s.cluster_id = c.cluster_id AND s.topic = c.topic AND s.since < c.event_time
),
by_kind AS (
    -- A row is a client's requests of a window at a broker that count under one kind of quota.
    SELECT
        cluster_id, broker_id, principal, client_id, start, counted_as, sum(bytes) AS bytes,
        sum(local_us) AS local_us, sum(weight) AS requests,
        coalesce(sum(weight) FILTER (throttle_us > 0), 0) AS throttled_requests,
        sum(throttle_us) AS throttle_us, max(throttle_time_ms) AS longest_throttle_ms,
        sum(share_requests) AS share_requests, bool_or(weight > 1 OR is_unsized) AS is_estimated
    FROM charged
    GROUP BY ALL
),
charges AS (
    -- A row is what requests are charged by one kind of quota: bytes, microseconds of IO threads or
    -- partitions. A request counts under one kind only.
    SELECT * EXCLUDE (counted_as, bytes, local_us), counted_as AS quota_type, bytes AS amount
    FROM by_kind
    WHERE counted_as IN ('producer_byte_rate', 'consumer_byte_rate')
    UNION ALL BY NAME
    SELECT
        cluster_id, broker_id, principal, client_id, start, 'request_percentage' AS quota_type,
        local_us AS amount, if(counted_as = 'request_percentage', requests, 0) AS requests,
        if(counted_as = 'request_percentage', throttled_requests, 0) AS throttled_requests,
        if(counted_as = 'request_percentage', throttle_us, 0) AS throttle_us,
        NULL AS longest_throttle_ms, 0 AS share_requests, true AS is_estimated
    FROM by_kind
    UNION ALL BY NAME
    SELECT
        cluster_id, broker_id, principal, client_id, start, counted_as AS quota_type,
        0 AS amount, weight AS requests, if(throttle_us > 0, weight, 0) AS throttled_requests,
        throttle_us, throttle_time_ms AS longest_throttle_ms, share_requests,
        answers IS NULL AS is_estimated
    FROM at_controller
    UNION ALL BY NAME
    SELECT
        cluster_id, broker_id, principal, client_id, start, counted_as AS quota_type,
        coalesce(partitions, 1) AS amount, 0 AS requests, 0 AS throttled_requests,
        0 AS throttle_us, NULL AS longest_throttle_ms, 0 AS share_requests,
        partitions IS NULL AS is_estimated
    FROM mutations
),
windows AS (
    -- A row is a client's window at a broker, for one kind of quota.
    SELECT
        cluster_id, broker_id, principal, client_id, start AS event_time,
        start + to_seconds($bucket_s) AS window_end, quota_type, sum(amount) AS amount,
        -- Of an IO thread that works all the time 1 % is 10,000 microseconds a second.
        $bucket_s * if(quota_type = 'request_percentage', 10_000.0::DOUBLE, 1) AS per,
        bool_or(is_estimated) AS is_estimated, sum(requests) AS request_count,
        sum(throttled_requests) AS throttled_requests, sum(throttle_us) / 1_000 AS throttle_time_ms,
        max(longest_throttle_ms) AS longest_throttle_ms, sum(share_requests) AS share_requests
    FROM charges
    GROUP BY ALL
),
shared AS (
    -- A row is the same, with what all clients of its bucket used, and in the window before.
    SELECT
        *, sum(amount) OVER (bucket RANGE BETWEEN CURRENT ROW AND CURRENT ROW) / per
            AS quota_bucket_usage,
        coalesce(sum(amount) OVER (bucket RANGE BETWEEN to_seconds($bucket_s) PRECEDING
            AND to_seconds($bucket_s) PRECEDING), 0) / per AS usage_before,
        bool_or(share_requests > 0) OVER (bucket RANGE BETWEEN CURRENT ROW AND CURRENT ROW)
            AS is_lower_bound,
        -- A throttle may be of what the window before brought.
        bool_or(share_requests > 0) OVER (bucket RANGE BETWEEN to_seconds($bucket_s) PRECEDING
            AND CURRENT ROW) AS is_throttle_of_unlogged
    FROM with_limits(windows)
    WINDOW bucket AS (
        PARTITION BY cluster_id, broker_id, quota_type, quota_bucket_user, quota_bucket_client_id
        ORDER BY event_time
    )
),
filled AS (
    -- A row is the same, with how full its quota was, and the client's quota of request time: what
    -- a request moves or its time delays it, by the longer delay. A delay is as long as a quota is
    -- exceeded.
    SELECT
        *, ratio(greatest(quota_bucket_usage, usage_before), quota) AS fullness,
        max(if(quota_type = 'request_percentage', fullness, NULL)) OVER (
            PARTITION BY cluster_id, broker_id, principal, client_id, event_time
        ) AS time_fullness
    FROM shared
),
broker_configs AS (
    -- A row is a snapshot of a broker's configs. is_callback is null if it has no row of the
    -- callback; any config shows that a snapshot saw the broker.
    SELECT
        cluster_id, int_or_null(entity_name) AS broker_id, event_time AS since,
        bool_or(NOT is_removed AND coalesce(config_value, '') <> '')
            FILTER (config_key = 'client.quota.callback.class') AS is_callback
    FROM configs
    WHERE entity_type = 'broker'
    GROUP BY ALL
),
known_brokers AS (
    -- A row is a broker, and since when its configs are known.
    SELECT cluster_id, broker_id, min(since) AS known_since FROM broker_configs GROUP BY ALL
)
SELECT
    f.cluster_id, CAST(f.event_time AS DATE) AS event_date, f.event_time, f.broker_id, f.principal,
    f.client_id, f.quota_type, f.amount / f.per AS usage, f.is_estimated, f.request_count,
    f.throttled_requests, f.throttle_time_ms,
    CASE WHEN f.throttled_requests > 0 THEN throttling_quota(
        f.quota_type, f.fullness, f.time_fullness, f.is_throttle_of_unlogged,
        f.longest_throttle_ms > $quota_window_ms) END AS throttled_by,
    f.quota_level, f.quota, f.is_quota_changed, f.quota_bucket_user, f.quota_bucket_client_id,
    f.quota_bucket_usage, f.quota - f.quota_bucket_usage AS headroom,
    coalesce(f.quota_bucket_usage > f.quota, false) AS is_over,
    CASE
        WHEN c.is_callback THEN 'callback'
        WHEN k.known_since < f.window_end THEN 'stock'
        ELSE 'unknown'
    END AS enforcement,
    -- Upkeep fills these columns in rows of minutes and hours.
    f.amount, $bucket_s AS period_s, NULL AS rolled_up_s, 1 AS windows,
    f.amount / f.per AS peak_usage, NULL AS usage_histogram, NULL AS user_windows,
    f.share_requests, f.is_lower_bound
FROM filled AS f
LEFT JOIN known_brokers AS k ON k.cluster_id = f.cluster_id AND k.broker_id = f.broker_id
ASOF LEFT JOIN (FROM broker_configs WHERE is_callback IS NOT NULL) AS c
    ON c.cluster_id = f.cluster_id AND c.broker_id = f.broker_id AND c.since < f.window_end
