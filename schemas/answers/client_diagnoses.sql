-- kind: answer
-- grain: one row per client, API, time in which it suffered, symptom and cause
-- area: requests
-- level: sampled_log
-- question: Slow clients. Who waits for brokers, on what, and why?
-- description: Why clients waited or failed on the last day, one row {per}, the greatest share first.
--   A minute counts in which a client of five or more requests waits longer than it usually does and
--   than others of its minute do, waits for a quota, or gets errors. Minutes at most two apart are
--   one time. A client without a symptom has no row. What clients name is no proof of who is guilty.
-- empty: while no client waits longer than usual or fails
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
-- columns:
--   from request_times: cluster_id
--   since TIMESTAMP: start of the first minute with the symptom
--   until TIMESTAMP: end of the last minute with it
--   known_until TIMESTAMP: end of the newest minute that the cluster's tables have
--   from request_times: principal
--   client_id STRING: client.id as the client gave it: untrusted text; of several ids of one
--     program what they share, with * for what varies: producer-*
--   client_ids BIGINT: client ids of the program in this time
--   api STRING: PRODUCE, FETCH or SHARE_FETCH
--   symptom STRING: slow (it waited) or failing (it got errors)
--   requests BIGINT: its requests in this time
--   waited_ms DOUBLE: mean wait for a broker and for quotas, in ms, as
--     request_times.waited_time_ms
--   usual_ms DOUBLE: mean wait in the half of its minutes of the day with the lowest one, in ms;
--     null: it has fewer than ten minutes
--   peers_ms DOUBLE: the median of the mean waits of other clients in the same minutes, in ms;
--     null: there are fewer than three
--   budget ARRAY<STRUCT<part: STRING, ms: DOUBLE>>: the parts of waited_ms: throttle, request_queue,
--     local, replicas, response_queue, send and unknown; outside: what the client measured beyond
--     these, which is no part of the sum
--   rank INT: 1 for the cause with the greatest share
--   cause STRING: quota, noisy_neighbour, own_load, busy_broker, slow_broker, large_requests,
--     slow_appends, throttled_move, slow_follower, slow_replicas, busy_network, slow_reader,
--     not_authorized, unknown_topic, too_large, not_enough_replicas, leader_changes, timed_out,
--     coordinator_changes,
--     fenced, refused_by_quota, out_of_range, other_errors or not_explained
--   share DOUBLE: part of the wait or of the errors that the cause explains, 0 to 1; the shares of a
--     symptom add up to 1
--   confidence DOUBLE: 0.3 to 0.95, how well the evidence supports it; null: not_explained
--   detail STRING: which quota, broker, client, partition or error; null: the cause has none
--   evidence ARRAY<STRUCT<signal: STRING, value: DOUBLE>>: the numbers that the cause rests on;
--     those that are not known are left out
--   facts ARRAY<STRUCT<fact: STRING, text: STRING>>: names that belong to the cause: whose quota it
--     is, who set it and when, which config changed right before

-- A wait counts from 50 ms on: less is how brokers work. A client is a principal and a program.
WITH minutes AS (
    SELECT
        cluster_id,
        event_time AS minute,
        broker_id,
        principal,
        client_id,
        coalesce(program_of(client_id), '') AS program,
        api,
        request_count,
        timed_requests,
        throttled_requests,
        waited_time_ms,
        throttle_time_ms,
        request_queue_time_ms,
        local_time_ms,
        CASE WHEN api = 'PRODUCE' THEN remote_time_ms ELSE 0e0 END AS replicas_time_ms,
        response_queue_time_ms,
        send_time_ms,
        unknown_time_ms,
        bytes,
        batches,
        errors
    FROM request_times
    WHERE principal IS NOT NULL
),
newest AS (
    SELECT cluster_id, max(minute) AS newest_minute FROM minutes GROUP BY cluster_id
),
per_minute AS (
    SELECT
        cluster_id,
        minute,
        principal,
        program,
        api,
        sum(request_count) AS request_count,
        nullif(sum(timed_requests), 0) AS requests,
        sum(waited_time_ms) AS waited,
        sum(throttle_time_ms) AS throttle,
        sum(request_queue_time_ms) AS request_queue,
        sum(local_time_ms) AS local,
        sum(replicas_time_ms) AS replicas,
        sum(response_queue_time_ms) AS response_queue,
        sum(send_time_ms) AS send,
        sum(bytes) AS bytes
    FROM minutes
    GROUP BY cluster_id, minute, principal, program, api
),
in_order AS (
    SELECT
        *,
        row_number() OVER (
            PARTITION BY cluster_id, principal, program, api ORDER BY waited / requests, minute
        ) AS nth,
        count(*) OVER (PARTITION BY cluster_id, principal, program, api) AS minutes,
        row_number() OVER (
            PARTITION BY cluster_id, minute, api
            ORDER BY (waited - replicas) / requests, principal, program
        ) AS nth_peer,
        count(*) OVER (PARTITION BY cluster_id, minute, api) AS peers,
        -- Only some wait for replicas (acks=all): they come first here.
        row_number() OVER (
            PARTITION BY cluster_id, minute, api
            ORDER BY CASE WHEN replicas > 0e0 THEN 0 ELSE 1 END, replicas / requests, principal,
                program
        ) AS nth_replicated,
        count(CASE WHEN replicas > 0e0 THEN 1 END) OVER (PARTITION BY cluster_id, minute, api)
            AS replicated
    FROM per_minute
    WHERE requests IS NOT NULL AND api IN ('PRODUCE', 'FETCH', 'SHARE_FETCH')
),
usual AS (
    -- The half of its minutes with the shortest waits.
    SELECT
        cluster_id,
        principal,
        program,
        api,
        sum(waited) / sum(requests) AS usual_ms,
        sum(request_queue) / sum(requests) AS usual_request_queue_ms,
        sum(local) / sum(requests) AS usual_local_ms,
        sum(replicas) / sum(requests) AS usual_replicas_ms,
        sum(response_queue) / sum(requests) AS usual_response_queue_ms,
        sum(send) / sum(requests) AS usual_send_ms,
        CAST(sum(bytes) AS DOUBLE) / sum(requests) AS usual_request_bytes
    FROM in_order
    WHERE nth * 2 <= minutes AND minutes >= 10
    GROUP BY cluster_id, principal, program, api
),
peers AS (
    -- The half of the clients of a minute with the shortest waits.
    SELECT
        cluster_id,
        minute,
        api,
        max((waited - replicas) / requests) AS peers_own_ms,
        sum(request_queue) / sum(requests) AS peers_request_queue_ms,
        sum(local) / sum(requests) AS peers_local_ms,
        sum(response_queue) / sum(requests) AS peers_response_queue_ms,
        sum(send) / sum(requests) AS peers_send_ms
    FROM in_order
    WHERE nth_peer * 2 <= peers AND peers >= 4
    GROUP BY cluster_id, minute, api
),
replicated_peers AS (
    SELECT cluster_id, minute, api, sum(replicas) / sum(requests) AS peers_replicas_ms
    FROM in_order
    WHERE nth_replicated * 2 <= replicated AND replicated >= 4
    GROUP BY cluster_id, minute, api
),
failed AS (
    -- What a client meets in its normal work is no error: a rebalance, a new session or member.
    SELECT cluster_id, minute, principal, program, api, error.error_code, error.requests
    FROM (SELECT *, explode(errors) AS error FROM minutes) AS erred
    WHERE error.error_code NOT IN (27, 70, 71, 79, 110, 117)
),
failures AS (
    SELECT cluster_id, minute, principal, program, api, sum(requests) AS failures
    FROM failed
    GROUP BY cluster_id, minute, principal, program, api
),
judged AS (
    SELECT
        *,
        coalesce(
            is_data AND requests >= 5 AND waited / requests >= 5e1
            AND (
                throttle >= 0.25e0 * waited
                OR waited / requests >= 3e0 * usual_ms
                OR (waited - unlike_peers) / requests >= 3e0 * peers_ms
                OR waited / requests >= 1e3
            ),
            FALSE
        ) AS is_slow,
        coalesce(failures >= 5 AND failures >= 0.01e0 * request_count, FALSE) AS is_failing
    FROM (
        -- Where too few others wait for replicas, the rest of the wait is compared.
        SELECT
            *,
            api IN ('PRODUCE', 'FETCH', 'SHARE_FETCH') AS is_data,
            peers_own_ms + CASE WHEN replicas > 0e0 THEN coalesce(peers_replicas_ms, 0e0) ELSE 0e0 END
                AS peers_ms,
            CASE WHEN peers_replicas_ms IS NULL THEN replicas ELSE 0e0 END AS unlike_peers
        FROM per_minute
        LEFT JOIN usual USING (cluster_id, principal, program, api)
        LEFT JOIN peers USING (cluster_id, minute, api)
        LEFT JOIN replicated_peers USING (cluster_id, minute, api)
        LEFT JOIN failures USING (cluster_id, minute, principal, program, api)
    ) AS sums
),
marked AS (
    SELECT *, 'slow' AS symptom FROM judged WHERE is_slow
    UNION ALL
    SELECT *, 'failing' AS symptom FROM judged WHERE is_failing
),
begun AS (
    SELECT
        *,
        CASE
            WHEN unix_micros(minute) - unix_micros(lag(minute) OVER (
                PARTITION BY cluster_id, principal, program, api, symptom ORDER BY minute
            )) <= 180000000 THEN 0
            ELSE 1
        END AS is_start
    FROM marked
),
numbered AS (
    SELECT
        *,
        sum(is_start) OVER (
            PARTITION BY cluster_id, principal, program, api, symptom ORDER BY minute
        ) AS episode
    FROM begun
),
episodes AS (
    -- A row is a time in which a client suffered, with sums and means over its minutes.
    SELECT
        row_number() OVER (ORDER BY cluster_id, principal, program, api, symptom, episode) AS id,
        *
    FROM (
        SELECT
            cluster_id,
            principal,
            program,
            api,
            symptom,
            episode,
            min(minute) AS since,
            max(minute) AS last_minute,
            sum(request_count) AS requests,
            sum(requests) AS timed_requests,
            sum(waited) AS waited,
            sum(throttle) AS throttle,
            sum(request_queue) AS request_queue,
            sum(local) AS local,
            sum(replicas) AS replicas,
            sum(response_queue) AS response_queue,
            sum(send) AS send,
            sum(bytes) AS bytes,
            max(usual_ms) AS usual_ms,
            max(usual_request_queue_ms) AS usual_request_queue_ms,
            max(usual_local_ms) AS usual_local_ms,
            max(usual_replicas_ms) AS usual_replicas_ms,
            max(usual_response_queue_ms) AS usual_response_queue_ms,
            max(usual_send_ms) AS usual_send_ms,
            max(usual_request_bytes) AS usual_request_bytes,
            avg(peers_ms) AS peers_ms,
            avg(peers_request_queue_ms) AS peers_request_queue_ms,
            avg(peers_local_ms) AS peers_local_ms,
            avg(peers_replicas_ms) AS peers_replicas_ms,
            avg(peers_response_queue_ms) AS peers_response_queue_ms,
            avg(peers_send_ms) AS peers_send_ms
        FROM numbered
        GROUP BY cluster_id, principal, program, api, symptom, episode
    ) AS summed
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
        sum(throttled_requests) AS throttled_requests
    FROM suffered
    GROUP BY id
),
slowest AS (
    -- A row is the broker that a client waited for most.
    SELECT
        id,
        max_by(broker_id, waited) AS broker_id,
        max(waited) / nullif(sum(waited), 0e0) AS broker_share
    FROM (
        SELECT id, broker_id, sum(waited_time_ms) AS waited
        FROM suffered
        GROUP BY id, broker_id
    ) AS by_broker
    GROUP BY id
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
        max(CASE WHEN NOT is_own THEN handler_ms END) / nullif(sum(handler_ms), 0e0)
            AS neighbour_share,
        max_by(principal, CASE WHEN NOT is_own THEN handler_ms END) AS neighbour_principal,
        max_by(program, CASE WHEN NOT is_own THEN handler_ms END) AS neighbour,
        sum(CASE WHEN NOT is_own THEN same_api_ms END)
        / nullif(sum(CASE WHEN NOT is_own THEN same_api_requests END), 0) AS others_local_ms
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
        *,
        date_trunc('minute', event_time) AS minute,
        coalesce(program_of(client_id), '') AS program
    FROM quota_usage
),
throttles AS (
    -- A row is the quota that throttled the client longest.
    SELECT id, max_by(throttled_by, throttle_time_ms) AS throttled_by
    FROM (
        SELECT episodes.id, used.throttled_by, sum(used.throttle_time_ms) AS throttle_time_ms
        FROM episodes
        INNER JOIN used
            ON episodes.cluster_id = used.cluster_id
            AND episodes.principal = used.principal
            AND episodes.program = used.program
            AND used.minute BETWEEN episodes.since AND episodes.last_minute
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
        max_by(used.quota, used.event_time) AS quota,
        max_by(used.quota_level, used.event_time) AS quota_level,
        max_by(used.quota_bucket_user, used.event_time) AS quota_user,
        max_by(used.quota_bucket_client_id, used.event_time) AS quota_client_id
    FROM throttles
    INNER JOIN episodes ON throttles.id = episodes.id
    INNER JOIN used
        ON episodes.cluster_id = used.cluster_id
        AND episodes.principal = used.principal
        AND episodes.program = used.program
        AND throttles.throttled_by = used.quota_type
        AND used.minute BETWEEN episodes.since AND episodes.last_minute
    GROUP BY throttles.id, throttles.throttled_by
),
sharers AS (
    SELECT limits.id, count(DISTINCT concat(used.principal, ' ', used.program)) AS clients_of_quota
    FROM limits
    INNER JOIN episodes ON limits.id = episodes.id
    INNER JOIN used
        ON episodes.cluster_id = used.cluster_id
        AND limits.throttled_by = used.quota_type
        AND limits.quota_level = used.quota_level
        AND limits.quota_user IS NOT DISTINCT FROM used.quota_bucket_user
        AND limits.quota_client_id IS NOT DISTINCT FROM used.quota_bucket_client_id
        AND used.minute BETWEEN episodes.since AND episodes.last_minute
    WHERE used.amount > 0
    GROUP BY limits.id
),
setters AS (
    SELECT
        limits.id,
        max_by(altered.principal, altered.event_time) AS quota_set_by,
        max(altered.event_time) AS quota_set_at
    FROM limits
    INNER JOIN episodes ON limits.id = episodes.id
    INNER JOIN accepted_alterations AS altered
        ON episodes.cluster_id = altered.cluster_id
        AND limits.throttled_by = altered.config_key
        AND altered.entity_name = coalesce(
            CASE WHEN altered.entity_type = 'user' THEN limits.quota_user END,
            CASE WHEN altered.entity_type = 'client-id' THEN limits.quota_client_id END,
            ''
        )
        AND unix_micros(altered.event_time) < unix_micros(episodes.last_minute) + 60000000
    WHERE
        altered.entity_type IN ('user', 'client-id')
        AND altered.operation = 'SET'
    GROUP BY limits.id
),
produced AS (
    SELECT DISTINCT
        cluster_id, principal, coalesce(program_of(client_id), '') AS program, topic_id, topic
    FROM traffic
    WHERE direction = 'produced'
),
followers AS (
    -- A row is the follower that is farthest behind in a topic of the client.
    SELECT
        episodes.id,
        max_by(behind.replica_id, behind.max_lag) AS follower_id,
        max_by(behind.topic, behind.max_lag) AS follower_topic,
        max_by(behind.partition, behind.max_lag) AS follower_partition,
        max(behind.max_lag) AS follower_lag,
        count(DISTINCT moves.replica_id) AS moving_replicas
    FROM episodes
    INNER JOIN produced
        ON episodes.cluster_id = produced.cluster_id
        AND episodes.principal = produced.principal
        AND episodes.program = produced.program
    INNER JOIN replica_lag AS behind
        ON episodes.cluster_id = behind.cluster_id
        AND (produced.topic_id = behind.topic_id OR produced.topic = behind.topic)
        AND date_trunc('minute', behind.event_time) BETWEEN episodes.since AND episodes.last_minute
    LEFT JOIN reassignments AS moves
        ON behind.cluster_id = moves.cluster_id
        AND behind.topic = moves.topic
        AND behind.partition = moves.partition
        AND behind.replica_id = moves.replica_id
        AND moves.state IN ('moving', 'stuck', 'never_converges')
    WHERE episodes.api = 'PRODUCE' AND episodes.symptom = 'slow'
    GROUP BY episodes.id
),
measured AS (
    SELECT episodes.id, avg(latency.outside_avg_ms) AS outside_ms
    FROM episodes
    INNER JOIN client_latency AS latency
        ON episodes.cluster_id = latency.cluster_id
        AND episodes.principal = latency.principal
        AND episodes.program = coalesce(program_of(latency.client_id), '')
        AND episodes.api = latency.api
        AND latency.minute BETWEEN episodes.since AND episodes.last_minute
    GROUP BY episodes.id
),
errors AS (
    SELECT
        id,
        array_sort(collect_list(named_struct('error_code', error_code, 'requests', requests)))
            AS errors
    FROM (
        SELECT episodes.id, failed.error_code, sum(failed.requests) AS requests
        FROM episodes
        INNER JOIN failed
            ON episodes.cluster_id = failed.cluster_id
            AND episodes.principal = failed.principal
            AND episodes.program = failed.program
            AND episodes.api = failed.api
            AND failed.minute BETWEEN episodes.since AND episodes.last_minute
        GROUP BY episodes.id, failed.error_code
    ) AS by_code
    GROUP BY id
)

SELECT
    episodes.cluster_id,
    episodes.since,
    episodes.last_minute + INTERVAL 1 MINUTE AS until,
    newest.newest_minute + INTERVAL 1 MINUTE AS known_until,
    episodes.principal,
    CASE WHEN ids.client_ids > 1 THEN episodes.program ELSE ids.client_id END AS client_id,
    ids.client_ids,
    episodes.api,
    episodes.symptom,
    episodes.requests,
    episodes.waited / episodes.timed_requests AS waited_ms,
    episodes.throttle / episodes.timed_requests AS throttle_ms,
    episodes.request_queue / episodes.timed_requests AS request_queue_ms,
    episodes.local / episodes.timed_requests AS local_ms,
    episodes.replicas / episodes.timed_requests AS replicas_ms,
    episodes.response_queue / episodes.timed_requests AS response_queue_ms,
    episodes.send / episodes.timed_requests AS send_ms,
    measured.outside_ms,
    CAST(episodes.bytes AS DOUBLE) / episodes.timed_requests AS request_bytes,
    episodes.usual_ms,
    episodes.usual_request_queue_ms,
    episodes.usual_local_ms,
    episodes.usual_replicas_ms,
    episodes.usual_response_queue_ms,
    episodes.usual_send_ms,
    episodes.usual_request_bytes,
    episodes.peers_ms,
    episodes.peers_request_queue_ms,
    episodes.peers_local_ms,
    episodes.peers_replicas_ms,
    episodes.peers_response_queue_ms,
    episodes.peers_send_ms,
    slowest.broker_id,
    slowest.broker_share,
    ids.throttled_requests,
    limits.throttled_by,
    limits.quota,
    limits.quota_user,
    limits.quota_client_id,
    sharers.clients_of_quota,
    setters.quota_set_by,
    setters.quota_set_at,
    handlers.own_share,
    handlers.neighbour_share,
    handlers.neighbour_principal,
    handlers.neighbour,
    handlers.others_local_ms,
    usual_of_brokers.broker_usual_local_ms,
    followers.follower_id,
    followers.follower_topic,
    followers.follower_partition,
    followers.follower_lag,
    followers.moving_replicas,
    errors.errors
FROM episodes
INNER JOIN newest ON episodes.cluster_id = newest.cluster_id
INNER JOIN ids ON episodes.id = ids.id
LEFT JOIN slowest ON episodes.id = slowest.id
LEFT JOIN limits ON episodes.id = limits.id
LEFT JOIN sharers ON episodes.id = sharers.id
LEFT JOIN setters ON episodes.id = setters.id
LEFT JOIN handlers ON episodes.id = handlers.id
LEFT JOIN usual_of_brokers
    ON episodes.cluster_id = usual_of_brokers.cluster_id
    AND slowest.broker_id = usual_of_brokers.broker_id
    AND episodes.api = usual_of_brokers.api
LEFT JOIN followers ON episodes.id = followers.id
LEFT JOIN measured ON episodes.id = measured.id
LEFT JOIN errors ON episodes.id = errors.id
