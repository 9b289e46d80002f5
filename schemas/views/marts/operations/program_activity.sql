-- kind: mart
-- grain: one row per principal and program
-- area: requests
-- level: sampled_log
-- question: Silent programs. Which applications have fallen silent, and since when?
-- description: When each program sent requests in the week before the newest request of the cluster, by the
--   minute. A program that sends in bursts, as a batch job does, is silent only if it stays away for longer
--   than it ever did. One that was meant to end is silent too. In a sampled log gaps are longer.
-- first: is_silent, silent_s
-- columns:
--   from request_times: cluster_id, principal
--   program: what the client ids of a program share, with * for what varies; '' without client.id:
--     untrusted text
--   first_seen: start of the first minute with its requests
--   last_seen: start of the last minute with its requests
--   requests_of_day: requests in the day before the newest request of the cluster
--   active_minutes: minutes with its requests
--   usual_gap_s: median time from one of these minutes to the next, in seconds; null: there is one alone
--   longest_gap_s: longest such time, in seconds; null: there is one alone
--   silent_s: time from last_seen to the newest minute of the cluster with requests, in seconds
--   is_silent: silent_s is more than ten times usual_gap_s, and more than longest_gap_s; null: it has fewer
--     than five active_minutes
WITH newest AS (
    SELECT cluster_id, max(event_time) AS newest_minute
    FROM request_times
    GROUP BY cluster_id
),
minutes AS (
    SELECT
        times.cluster_id,
        times.principal,
        coalesce(program_of(times.client_id), '') AS program,
        times.event_time AS minute,
        max(newest.newest_minute) AS newest_minute,
        sum(times.request_count) AS requests
    FROM request_times AS times
    INNER JOIN newest ON times.cluster_id = newest.cluster_id
    WHERE
        times.principal IS NOT NULL
        AND unix_micros(times.event_time) > unix_micros(newest.newest_minute) - 604800000000
    GROUP BY times.cluster_id, times.principal, coalesce(program_of(times.client_id), ''), times.event_time
),
gaps AS (
    SELECT
        *,
        (
            unix_micros(minute)
            - unix_micros(lag(minute) OVER (PARTITION BY cluster_id, principal, program ORDER BY minute))
        ) / 1e6 AS gap_s
    FROM minutes
),
programs AS (
    SELECT
        cluster_id,
        principal,
        program,
        min(minute) AS first_seen,
        max(minute) AS last_seen,
        CAST(sum(
            CASE
                WHEN unix_micros(minute) > unix_micros(newest_minute) - 86400000000 THEN requests
                ELSE 0
            END
        ) AS BIGINT) AS requests_of_day,
        count(*) AS active_minutes,
        median(gap_s) AS usual_gap_s,
        max(gap_s) AS longest_gap_s,
        (max(unix_micros(newest_minute)) - max(unix_micros(minute))) / 1e6 AS silent_s
    FROM gaps
    GROUP BY cluster_id, principal, program
)

SELECT
    *,
    CASE
        WHEN active_minutes >= 5 THEN silent_s > 10 * usual_gap_s AND silent_s > longest_gap_s
    END AS is_silent
FROM programs
