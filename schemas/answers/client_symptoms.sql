-- kind: answer
-- grain: one row per client, API, symptom and time in which it had it
-- area: requests
-- level: sampled_log
-- description: When clients waited or failed on the last day, one row {per}. A minute counts in
--   which the mean wait is 50 ms or longer, and three times the usual one or a second; five or
--   more requests, and one in ten, wait as long. So does one in which a client of five or more
--   requests waits for a quota twice, or gets errors: five, or 30 of METADATA. Any number of waits
--   for a quota counts from ten seconds on. A client of fewer than ten minutes is compared with
--   others of the same minute. Minutes at most two apart are one time. A client without a symptom
--   has no row. client_diagnoses says why
-- key: cluster_id, since, principal, program, api, symptom
-- time: since
-- clustering: principal
-- lookbacks:
--   request_times: at most 1 d
-- columns:
--   from request_times: cluster_id
--   since TIMESTAMP: start of the first minute with the symptom
--   until TIMESTAMP: end of the last minute with it
--   known_until TIMESTAMP: end of the newest minute that the cluster's tables have
--   from request_times: principal
--   program STRING: what the client ids of its program share, with * for what varies; '' without
--     client.id: untrusted text
--   api STRING: name of the API
--   symptom STRING: slow (it waited) or failing (it got errors)
--   requests BIGINT: its requests in this time
--   timed_requests BIGINT: those of them whose line has a time
--   failed_requests BIGINT: requests with an error that normal work does not bring
--   waited_ms DOUBLE: mean wait of a request, in ms, as request_times.waited_time_ms
--   throttle_ms DOUBLE: mean of this part, in ms
--   request_queue_ms DOUBLE: mean of this part, in ms
--   local_ms DOUBLE: mean of this part, in ms
--   replicas_ms DOUBLE: mean of remote_time_ms of PRODUCE, in ms; 0 of other APIs
--   response_queue_ms DOUBLE: mean of this part, in ms
--   send_ms DOUBLE: mean of this part, in ms
--   request_bytes DOUBLE: mean record bytes of a request
--   usual_ms DOUBLE: mean wait in the half of its minutes of the day with the shortest waits, in ms;
--     null: it has fewer than ten minutes
--   usual_request_queue_ms DOUBLE: mean of this part in that half, in ms; null as usual_ms
--   usual_local_ms DOUBLE: mean of this part in that half, in ms; null as usual_ms
--   usual_replicas_ms DOUBLE: mean of this part in that half, in ms; null as usual_ms
--   usual_response_queue_ms DOUBLE: mean of this part in that half, in ms; null as usual_ms
--   usual_send_ms DOUBLE: mean of this part in that half, in ms; null as usual_ms
--   usual_request_bytes DOUBLE: mean record bytes of a request in that half; null as usual_ms
--   peers_ms DOUBLE: median wait of the clients of the same minutes and API, in ms; null: there are
--     fewer than four
--   peers_request_queue_ms DOUBLE: mean of this part for the half of these clients with the shortest
--     waits, in ms; null as peers_ms
--   peers_local_ms DOUBLE: mean of this part for them, in ms; null as peers_ms
--   peers_replicas_ms DOUBLE: mean of this part for those that wait for replicas, in ms; null: there
--     are fewer than four
--   peers_response_queue_ms DOUBLE: mean of this part for them, in ms; null as peers_ms
--   peers_send_ms DOUBLE: mean of this part for them, in ms; null as peers_ms

-- A wait counts from 50 ms on: less is how brokers work. A client is a principal and a program.
WITH programs AS (
    -- To match the patterns takes longer than all else, and clients have many minutes.
    SELECT client_id, program_of(client_id) AS program
    FROM (SELECT DISTINCT client_id FROM request_times) AS ids
),
minutes AS (
    SELECT
        cluster_id,
        event_time AS minute,
        principal,
        coalesce(program, '') AS program,
        api,
        request_count,
        timed_requests,
        throttled_requests,
        -- A row of an older version has no histogram: each of its requests counts as long.
        CASE WHEN waited_histogram IS NULL AND waited_time_ms > 0e0 THEN timed_requests END
            AS unmeasured_requests,
        waited_time_ms,
        throttle_time_ms,
        request_queue_time_ms,
        local_time_ms,
        CASE WHEN api = 'PRODUCE' THEN remote_time_ms ELSE 0e0 END AS replicas_time_ms,
        response_queue_time_ms,
        send_time_ms,
        bytes
    FROM request_times
    LEFT JOIN programs USING (client_id)
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
        sum(throttled_requests) AS throttled_requests,
        coalesce(sum(unmeasured_requests), 0) AS unmeasured_requests,
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
failures AS (
    SELECT cluster_id, minute, principal, program, api, sum(requests) AS failures
    FROM failed_requests
    GROUP BY cluster_id, minute, principal, program, api
),
compared AS (
    -- slow_ms: a wait from which on requests are slow for this client. Where too few others wait for
    -- replicas, the rest of the wait is compared.
    SELECT
        *,
        greatest(5e1, least(1e3, coalesce(3e0 * usual_ms, 3e0 * peers_ms + unlike_peers / requests)))
            AS slow_ms
    FROM (
        SELECT
            *,
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
slow_requests AS (
    -- Requests in buckets that reach slow_ms.
    SELECT
        cluster_id,
        minute,
        principal,
        program,
        api,
        sum(CASE WHEN power(2e0, (counted.bucket + 1) / 8e0) > slow_ms THEN counted.requests END)
            AS seen_slow_requests
    FROM (
        SELECT
            cluster_id,
            event_time AS minute,
            principal,
            coalesce(program, '') AS program,
            api,
            explode(waited_histogram) AS counted
        FROM request_times
        LEFT JOIN programs USING (client_id)
        WHERE principal IS NOT NULL AND waited_time_ms >= 49e0
    ) AS waits
    INNER JOIN compared USING (cluster_id, minute, principal, program, api)
    WHERE waited / requests >= slow_ms
    GROUP BY cluster_id, minute, principal, program, api
),
judged AS (
    SELECT
        *,
        coalesce(
            api IN ('PRODUCE', 'FETCH', 'SHARE_FETCH')
            AND (
                (
                    requests >= 5
                    AND waited / requests >= 5e1
                    AND throttle >= 0.25e0 * waited
                    AND throttled_requests >= 2
                )
                -- One long request among few lifts the mean.
                OR (
                    waited / requests >= slow_ms
                    AND slow_requests >= 5
                    AND slow_requests >= 0.1e0 * requests
                )
                -- Many small requests, each of which waits little, or few that wait long: the client
                -- waits most of its time.
                OR (
                    throttle >= 1e4 AND throttle >= 0.5e0 * waited AND waited / requests >= 5e0
                )
            ),
            FALSE
        ) AS is_slow,
        -- A client asks for the metadata of a topic again and again until it is created. Once a second
        -- (retry.backoff.max.ms) for half a minute is longer than that takes.
        coalesce(
            failures >= CASE WHEN api = 'METADATA' THEN 30 ELSE 5 END
            AND failures >= 0.01e0 * request_count,
            FALSE
        ) AS is_failing
    FROM (
        SELECT *, coalesce(seen_slow_requests, 0) + unmeasured_requests AS slow_requests
        FROM compared
        LEFT JOIN slow_requests USING (cluster_id, minute, principal, program, api)
    ) AS counted
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
)

SELECT
    *,
    min(minute) AS since,
    max(minute) + INTERVAL 1 MINUTE AS until,
    max(newest_minute) + INTERVAL 1 MINUTE AS known_until,
    sum(request_count) AS requests,
    sum(requests) AS timed_requests,
    sum(failures) AS failed_requests,
    sum(waited) / sum(requests) AS waited_ms,
    sum(throttle) / sum(requests) AS throttle_ms,
    sum(request_queue) / sum(requests) AS request_queue_ms,
    sum(local) / sum(requests) AS local_ms,
    sum(replicas) / sum(requests) AS replicas_ms,
    sum(response_queue) / sum(requests) AS response_queue_ms,
    sum(send) / sum(requests) AS send_ms,
    CAST(sum(bytes) AS DOUBLE) / sum(requests) AS request_bytes,
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
INNER JOIN newest USING (cluster_id)
GROUP BY cluster_id, principal, program, api, symptom, episode
