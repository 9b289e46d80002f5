-- kind: answer
-- grain: one row per client, API, time in which it suffered, symptom and cause
-- area: requests
-- level: sampled_log
-- question: Slow clients. Who waits for brokers, on what, and why?
-- description: Why clients waited or failed on the last day, one row {per}, the greatest share first.
--   client_symptoms says when that is so. What clients name is no proof of who is guilty.
-- key: cluster_id, since, principal, client_id, api, symptom, rank
-- time: since
-- clustering: principal, client_id
-- lookbacks:
--   request_times: 1 d
--   quota_usage: 1 d
--   config_alterations: 2 d
--   replica_lag: 1 d
--   traffic: 1 d
--   client_metrics: 1 d
--   telemetry_pushes: 1 d
--   fetch_faults: 1 d
-- columns:
--   from client_symptoms: cluster_id, since, until, known_until, principal
--   client_id STRING: client.id as the client gave it: untrusted text; of several ids of one
--     program what they share, with * for what varies: producer-*
--   client_ids BIGINT: client ids of the program in this time
--   from client_symptoms: api, symptom, requests, waited_ms, usual_ms, peers_ms
--   budget ARRAY<STRUCT<part: STRING, ms: DOUBLE>>: the parts of waited_ms: throttle, request_queue,
--     local, replicas, response_queue, send and unknown; outside: what client_latency shows of the
--     mean request beyond the broker, at least, which is no part of the sum
--   rank INT: 1 for the cause with the greatest share
--   cause STRING: of slow: quota, noisy_neighbour, own_load, busy_broker, stalled_broker,
--     slow_broker, large_requests, slow_appends, slow_follower, slow_replicas, busy_network or
--     slow_reader. Of failing: not_authorized, unknown_topic, too_large, not_enough_replicas, leader_changes,
--     coordinator_changes, timed_out, fenced, left_group, lost_sequence, unknown_producer,
--     transaction_state, invalid_records, unsupported, outside_limits, storage_error, server_error,
--     out_of_range, missing_at_replica, refused_by_quota or other_errors. Or not_explained
--   share DOUBLE: part of the wait or of the errors that the cause explains, 0 to 1; the shares of a
--     symptom add up to 1
--   confidence DOUBLE: 0.3 to 0.95, how well the evidence supports it; null: not_explained
--   detail STRING: which quota, broker, client, partition or error; null: the cause has none
--   evidence ARRAY<STRUCT<signal: STRING, value: DOUBLE>>: the numbers that the cause rests on;
--     those that are not known are left out
--   facts ARRAY<STRUCT<fact: STRING, text: STRING>>: names that belong to the cause: whose quota it
--     is, who set it and when; of the first cause the last config that changed within the five
--     minutes before, concerns the client's quotas, topics or broker, and can bring this cause

WITH minutes AS (
    SELECT
        cluster_id,
        event_time AS minute,
        broker_id,
        principal,
        client_id,
        coalesce(program, '') AS program,
        api,
        timed_requests,
        throttled_requests,
        waited_time_ms,
        local_time_ms,
        part_histograms
    FROM request_times
    -- To match the patterns takes longer than all else, and clients have many minutes. Each part has
    -- ids of its own table: Spark computes a common one again wherever it is named.
    LEFT JOIN (
        SELECT client_id, program_of(client_id) AS program
        FROM (SELECT DISTINCT client_id FROM request_times) AS ids
    ) AS programs USING (client_id)
    WHERE principal IS NOT NULL
),
episodes AS (
    SELECT
        *,
        until - INTERVAL 1 MINUTE AS last_minute,
        row_number() OVER (ORDER BY cluster_id, since, principal, program, api, symptom) AS id
    FROM client_symptoms
),
suffered AS (
    SELECT episodes.id, minutes.*
    FROM episodes
    INNER JOIN minutes
        ON episodes.cluster_id = minutes.cluster_id
        AND episodes.principal = minutes.principal
        AND episodes.program = minutes.program
        AND episodes.api = minutes.api
        AND minutes.minute BETWEEN episodes.since AND episodes.last_minute
),
ids AS (
    SELECT
        id,
        count(DISTINCT client_id) AS client_ids,
        max(client_id) AS client_id,
        sum(throttled_requests) AS throttled_requests,
        count(part_histograms) = count(*) AS has_parts
    FROM suffered
    GROUP BY id
),
long_parts AS (
    -- Requests by how long they waited in each part; null if a row is of an older version.
    SELECT
        id,
        array_sort(collect_list(
            named_struct('part', part, 'bucket', bucket, 'requests', requests)
        )) AS long_parts
    FROM (
        SELECT
            id,
            CASE WHEN counted.part = 'remote' THEN 'replicas' ELSE counted.part END AS part,
            counted.bucket,
            sum(counted.requests) AS requests
        FROM (
            SELECT suffered.id, explode(part_histograms) AS counted
            FROM suffered
            INNER JOIN episodes ON suffered.id = episodes.id
            WHERE episodes.symptom = 'slow'
        ) AS exploded
        GROUP BY 1, 2, 3
    ) AS by_bucket
    GROUP BY id
),
slowest AS (
    -- A row is the broker that a client waited for most.
    SELECT
        id,
        most.broker_id,
        most.requests AS broker_requests,
        most.waited / nullif(most.requests, 0) AS broker_waited_ms
    FROM (
        SELECT
            id,
            max(
                named_struct('waited', waited, 'broker_id', broker_id, 'requests', requests)
            ) AS most
        FROM (
            SELECT
                id,
                broker_id,
                sum(waited_time_ms) AS waited,
                sum(timed_requests) AS requests
            FROM suffered
            GROUP BY id, broker_id
        ) AS by_broker
        GROUP BY id
    ) AS of_most
),
at_broker AS (
    -- A row is who used that broker in the client's minutes.
    SELECT
        episodes.id,
        minutes.principal,
        minutes.program,
        minutes.principal = episodes.principal AND minutes.program = episodes.program AS is_own,
        sum(minutes.local_time_ms) AS handler_ms,
        sum(CASE WHEN minutes.api = episodes.api THEN minutes.local_time_ms END) AS same_api_ms,
        sum(CASE WHEN minutes.api = episodes.api THEN minutes.timed_requests END) AS same_api_requests
    FROM episodes
    INNER JOIN slowest ON episodes.id = slowest.id
    INNER JOIN minutes
        ON episodes.cluster_id = minutes.cluster_id
        AND slowest.broker_id = minutes.broker_id
        AND minutes.minute BETWEEN episodes.since AND episodes.last_minute
    WHERE episodes.symptom = 'slow'
    GROUP BY 1, 2, 3, 4
),
handlers AS (
    SELECT
        id,
        max(CASE WHEN is_own THEN handler_ms END) / nullif(sum(handler_ms), 0e0) AS own_share,
        sum(handler_ms) AS all_ms,
        count(CASE WHEN same_api_requests > 0 THEN 1 END) AS broker_clients,
        max(
            CASE
                WHEN NOT is_own
                    THEN named_struct('ms', handler_ms, 'principal', principal, 'program', program)
            END
        ) AS busiest,
        -- One slow request of one client must not speak for all.
        median(CASE WHEN NOT is_own THEN same_api_ms / nullif(same_api_requests, 0) END)
            AS others_local_ms
    FROM at_broker
    GROUP BY id
),
usual_of_brokers AS (
    -- What a broker takes for requests of an API, in the half of its minutes that are calmest.
    SELECT
        cluster_id,
        broker_id,
        api,
        sum(local_time_ms) / sum(timed_requests) AS broker_usual_local_ms
    FROM (
        SELECT
            *,
            row_number() OVER (
                PARTITION BY cluster_id, broker_id, api
                ORDER BY local_time_ms / timed_requests, minute
            ) AS nth,
            count(*) OVER (PARTITION BY cluster_id, broker_id, api) AS minutes
        FROM (
            SELECT
                cluster_id,
                broker_id,
                api,
                minute,
                sum(local_time_ms) AS local_time_ms,
                sum(timed_requests) AS timed_requests
            FROM minutes
            WHERE timed_requests > 0
            GROUP BY cluster_id, broker_id, api, minute
        ) AS by_minute
    ) AS ordered
    WHERE nth * 2 <= minutes AND minutes >= 10
    GROUP BY cluster_id, broker_id, api
),
used AS (
    SELECT
        quota_usage.*,
        date_trunc('minute', event_time) AS minute,
        -- A window can begin in one minute and end in the next.
        unix_micros(event_time) + coalesce(CAST(period_s AS BIGINT), 1) * 1000000 - 1 AS last_us,
        coalesce(programs.program, '') AS program
    FROM quota_usage
    LEFT JOIN (
        SELECT client_id, program_of(client_id) AS program
        FROM (SELECT DISTINCT client_id FROM quota_usage) AS ids
    ) AS programs ON quota_usage.client_id = programs.client_id
),
throttles AS (
    -- A row is the quota that throttled the client longest.
    SELECT
        id,
        max_by(throttled_by, named_struct('ms', throttle_time_ms, 'quota', throttled_by))
            AS throttled_by
    FROM (
        SELECT episodes.id, used.throttled_by, sum(used.throttle_time_ms) AS throttle_time_ms
        FROM episodes
        INNER JOIN used
            ON episodes.cluster_id = used.cluster_id
            AND episodes.principal = used.principal
            AND episodes.program = used.program
            AND used.minute <= episodes.last_minute
            AND used.last_us >= unix_micros(episodes.since)
        WHERE
            episodes.symptom = 'slow'
            AND used.throttled_by IS NOT NULL
            AND used.quota_type
            = CASE WHEN episodes.api = 'PRODUCE' THEN 'producer_byte_rate' ELSE 'consumer_byte_rate' END
        GROUP BY episodes.id, used.throttled_by
    ) AS by_quota
    GROUP BY id
),
limits AS (
    -- A row is that quota, as it was last.
    SELECT
        throttles.id,
        throttles.throttled_by,
        max(
            named_struct(
                'at', used.event_time, 'quota', used.quota, 'level', used.quota_level,
                'user', used.quota_bucket_user, 'client_id', used.quota_bucket_client_id
            )
        ) AS last
    FROM throttles
    INNER JOIN episodes ON throttles.id = episodes.id
    INNER JOIN used
        ON episodes.cluster_id = used.cluster_id
        AND episodes.principal = used.principal
        AND episodes.program = used.program
        AND throttles.throttled_by = used.quota_type
        AND used.minute <= episodes.last_minute
        AND used.last_us >= unix_micros(episodes.since)
    GROUP BY throttles.id, throttles.throttled_by
),
sharers AS (
    SELECT limits.id, count(DISTINCT concat(used.principal, ' ', used.program)) AS clients_of_quota
    FROM limits
    INNER JOIN episodes ON limits.id = episodes.id
    INNER JOIN used
        ON episodes.cluster_id = used.cluster_id
        AND limits.throttled_by = used.quota_type
        AND limits.last.level = used.quota_level
        AND limits.last.user IS NOT DISTINCT FROM used.quota_bucket_user
        AND limits.last.client_id IS NOT DISTINCT FROM used.quota_bucket_client_id
        AND used.minute <= episodes.last_minute
        AND used.last_us >= unix_micros(episodes.since)
    WHERE used.amount > 0
    GROUP BY limits.id
),
setters AS (
    SELECT
        limits.id,
        max(named_struct('at', altered.event_time, 'by', altered.principal)) AS last
    FROM limits
    INNER JOIN episodes ON limits.id = episodes.id
    INNER JOIN accepted_alterations AS altered
        ON episodes.cluster_id = altered.cluster_id
        AND limits.throttled_by = altered.config_key
        AND altered.entity_name = coalesce(
            CASE WHEN altered.entity_type = 'user' THEN limits.last.user END,
            CASE WHEN altered.entity_type = 'client-id' THEN limits.last.client_id END,
            ''
        )
        AND unix_micros(altered.event_time) < unix_micros(episodes.last_minute) + 60000000
    WHERE
        altered.entity_type IN ('user', 'client-id')
        AND altered.operation = 'SET'
    GROUP BY limits.id
),
used_topics AS (
    SELECT DISTINCT
        cluster_id,
        principal,
        coalesce(program, '') AS program,
        direction,
        coalesce(traffic.topic, names.topic, traffic.topic_id) AS topic
    FROM traffic
    LEFT JOIN topic_ids AS names USING (cluster_id, topic_id)
    LEFT JOIN (
        SELECT client_id, program_of(client_id) AS program
        FROM (SELECT DISTINCT client_id FROM traffic) AS ids
    ) AS programs USING (client_id)
),
changes AS (
    -- A row has what was altered right before and concerns the client. What is of its broker
    -- concerns all clients there, so it comes behind what is of its own topics or quotas.
    SELECT
        episodes.id,
        collect_set(
            named_struct(
                'is_own', altered.entity_type <> 'broker', 'at', altered.event_time, 'by',
                altered.principal, 'what', concat(
                    altered.entity_type, ' ', coalesce(nullif(altered.entity_name, ''), 'default'),
                    ': ', altered.config_key
                ), 'config_key', altered.config_key
            )
        ) AS changes
    FROM episodes
    INNER JOIN slowest ON episodes.id = slowest.id
    INNER JOIN accepted_alterations AS altered
        ON episodes.cluster_id = altered.cluster_id
        AND unix_micros(altered.event_time) > unix_micros(episodes.since) - 300000000
        AND unix_micros(altered.event_time) < unix_micros(episodes.since) + 60000000
    LEFT JOIN used_topics
        ON episodes.cluster_id = used_topics.cluster_id
        AND episodes.principal = used_topics.principal
        AND episodes.program = used_topics.program
        AND altered.entity_type = 'topic'
        AND altered.entity_name = used_topics.topic
    WHERE
        used_topics.topic IS NOT NULL
        OR (
            altered.entity_type = 'user'
            AND altered.entity_name
            IN ('', substring(episodes.principal, instr(episodes.principal, ':') + 1))
        )
        OR (altered.entity_type = 'client-id' AND altered.entity_name IN ('', episodes.program))
        OR (
            altered.entity_type = 'broker'
            AND altered.entity_name IN ('', CAST(slowest.broker_id AS STRING))
        )
    GROUP BY episodes.id
),
lags AS (
    SELECT
        cluster_id,
        coalesce(replica_lag.topic, names.topic, replica_lag.topic_id) AS topic,
        partition,
        replica_id,
        date_trunc('minute', event_time) AS minute,
        max_lag
    FROM replica_lag
    LEFT JOIN topic_ids AS names USING (cluster_id, topic_id)
),
followers AS (
    -- A row is the follower that is farthest behind in a topic of the client.
    SELECT
        episodes.id,
        max(
            named_struct(
                'records', behind.max_lag, 'topic', behind.topic, 'partition', behind.partition,
                'replica_id', behind.replica_id
            )
        ) AS farthest
    FROM episodes
    INNER JOIN used_topics AS produced USING (cluster_id, principal, program)
    INNER JOIN lags AS behind
        ON episodes.cluster_id = behind.cluster_id
        AND produced.topic = behind.topic
        AND behind.minute BETWEEN episodes.since AND episodes.last_minute
    -- A replica that moves is not in sync yet: acks=all does not wait for it.
    LEFT ANTI JOIN reassignments AS moves
        ON behind.cluster_id = moves.cluster_id
        AND behind.topic = moves.topic
        AND behind.partition = moves.partition
        AND behind.replica_id = moves.replica_id
        AND moves.state <> 'in_place'
        AND unix_micros(moves.requested_time) < unix_micros(behind.minute) + 60000000
        AND coalesce(moves.joined_time >= behind.minute, TRUE)
    WHERE
        episodes.api = 'PRODUCE'
        AND episodes.symptom = 'slow'
        AND produced.direction = 'produced'
    GROUP BY episodes.id
),
measured AS (
    -- The mean is at least that of the least row: how many requests each has is not known.
    SELECT
        episodes.id,
        CASE WHEN count(latency.outside_avg_ms) = count(*) THEN min(latency.outside_avg_ms) END
            AS outside_ms
    FROM episodes
    INNER JOIN (
        SELECT client_latency.*, coalesce(programs.program, '') AS program
        FROM client_latency
        LEFT JOIN (
            SELECT client_id, program_of(client_id) AS program
            FROM (SELECT DISTINCT client_id FROM client_latency) AS ids
        ) AS programs ON client_latency.client_id = programs.client_id
    ) AS latency
        ON episodes.cluster_id = latency.cluster_id
        AND episodes.principal = latency.principal
        AND episodes.program = latency.program
        AND episodes.api = latency.api
        AND latency.minute BETWEEN episodes.since AND episodes.last_minute
    GROUP BY episodes.id
),
errors AS (
    SELECT
        id,
        array_sort(collect_list(named_struct(
            'error_code', error_code, 'error_name', error_name, 'requests', requests
        ))) AS errors
    FROM (
        SELECT
            episodes.id,
            failed.error_code,
            max(coalesce(names.error_name, CAST(failed.error_code AS STRING))) AS error_name,
            sum(failed.requests) AS requests
        FROM episodes
        INNER JOIN failed_requests AS failed
            ON episodes.cluster_id = failed.cluster_id
            AND episodes.principal = failed.principal
            AND episodes.program = failed.program
            AND episodes.api = failed.api
            AND failed.minute BETWEEN episodes.since AND episodes.last_minute
        LEFT JOIN error_names AS names ON failed.error_code = names.error_code
        GROUP BY episodes.id, failed.error_code
    ) AS by_code
    GROUP BY id
),
refused AS (
    -- Of offsets that a replica refused, those that its leader has: the client asks for what exists.
    SELECT
        episodes.id,
        sum(faults.answers) AS refused_answers,
        sum(faults.missing) AS missing_answers,
        max_by(
            faults.broker_id, named_struct('missing', faults.missing, 'broker_id', faults.broker_id)
        ) AS missing_broker
    FROM episodes
    INNER JOIN (
        SELECT
            cluster_id,
            event_time,
            principal,
            coalesce(program_of(client_id), '') AS program,
            broker_id,
            answers,
            CASE
                WHEN fault = 'unavailable_offset' THEN answers
                WHEN fault = 'offset_too_small' THEN coalesce(answers_leader_has, 0)
                ELSE 0
            END AS missing
        FROM fetch_faults
        WHERE
            fault IN (
                'unavailable_offset', 'offset_too_small', 'offset_too_large', 'out_of_range_unknown'
            )
    ) AS faults
        ON episodes.cluster_id = faults.cluster_id
        AND episodes.principal = faults.principal
        AND episodes.program = faults.program
        AND faults.event_time BETWEEN episodes.since AND episodes.last_minute
    WHERE episodes.symptom = 'failing' AND episodes.api = 'FETCH'
    GROUP BY episodes.id
)

SELECT
    CASE WHEN ids.client_ids > 1 THEN episodes.program ELSE ids.client_id END AS client_id,
    ids.client_ids,
    measured.outside_ms,
    slowest.broker_id,
    slowest.broker_requests,
    slowest.broker_waited_ms,
    ids.throttled_requests,
    limits.throttled_by,
    limits.last.quota,
    limits.last.user AS quota_user,
    limits.last.client_id AS quota_client_id,
    sharers.clients_of_quota,
    setters.last.by AS quota_set_by,
    setters.last.at AS quota_set_at,
    changes.changes,
    handlers.all_ms * 1e3 / (unix_micros(episodes.until) - unix_micros(episodes.since))
        AS handlers_busy,
    handlers.broker_clients,
    handlers.own_share,
    handlers.busiest.ms / nullif(handlers.all_ms, 0e0) AS neighbour_share,
    handlers.busiest.principal AS neighbour_principal,
    handlers.busiest.program AS neighbour,
    handlers.others_local_ms,
    usual_of_brokers.broker_usual_local_ms,
    followers.farthest.replica_id AS follower_id,
    followers.farthest.topic AS follower_topic,
    followers.farthest.partition AS follower_partition,
    followers.farthest.records AS follower_lag,
    refused.refused_answers,
    refused.missing_answers,
    refused.missing_broker,
    errors.errors,
    CASE WHEN ids.has_parts THEN coalesce(long_parts.long_parts, array()) END AS long_parts,
    episodes.*
FROM episodes
INNER JOIN ids ON episodes.id = ids.id
LEFT JOIN slowest ON episodes.id = slowest.id
LEFT JOIN long_parts ON episodes.id = long_parts.id
LEFT JOIN limits ON episodes.id = limits.id
LEFT JOIN sharers ON episodes.id = sharers.id
LEFT JOIN setters ON episodes.id = setters.id
LEFT JOIN changes ON episodes.id = changes.id
LEFT JOIN handlers ON episodes.id = handlers.id
LEFT JOIN usual_of_brokers
    ON episodes.cluster_id = usual_of_brokers.cluster_id
    AND slowest.broker_id = usual_of_brokers.broker_id
    AND episodes.api = usual_of_brokers.api
LEFT JOIN followers ON episodes.id = followers.id
LEFT JOIN measured ON episodes.id = measured.id
LEFT JOIN errors ON episodes.id = errors.id
LEFT JOIN refused ON episodes.id = refused.id
