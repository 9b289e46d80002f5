-- kind: intermediate
-- grain: one row per push and per answer to GetTelemetrySubscriptions of a client instance
-- area: telemetry
-- level: telemetry
-- description: The contacts of each client instance with the push interval of its subscription at
--   that time. Each time between contacts counts by the current answer: not at all if it names no
--   metrics; if only the pushes at its ends name an interval, the longer one counts. Of pushes in the
--   same millisecond the accepted one counts as the first.
-- history: telemetry_subscriptions
-- columns:
--   from unique_pushes: cluster_id, client_instance_id
--   event_time: when the broker answered
--   from unique_pushes: broker_id, principal, client_id, client_software_name, client_software_version,
--     client_address
--   is_push: 1: a push; 0: an answer to GetTelemetrySubscriptions
--   accepted: the broker took the push, or answered without an error
--   from unique_pushes: error_code, terminating, subscription_id, wire_bytes
--   push_interval_ms: interval that this contact names, in ms; null: none
--   interval_ms: interval at this contact, in ms; null: none was ever named
--   is_subscribed: the subscription at this contact names metrics
--   previous_push: time of the accepted push before; null: none
--   elapsed_intervals: push intervals that passed since previous_push while a subscription named
--     metrics; 0 without one
WITH contacts AS (
    SELECT
        cluster_id,
        client_instance_id,
        event_time,
        broker_id,
        principal,
        client_id,
        client_software_name,
        client_software_version,
        client_address,
        1 AS is_push,
        accepted,
        error_code,
        terminating,
        subscription_id,
        wire_bytes,
        push_interval_ms,
        CAST(NULL AS BOOLEAN) AS names_metrics
    FROM unique_pushes
    UNION ALL
    SELECT
        cluster_id,
        client_instance_id,
        event_time,
        broker_id,
        principal,
        client_id,
        client_software_name,
        client_software_version,
        client_address,
        0 AS is_push,
        error_code = 0 AS accepted,
        error_code,
        FALSE AS terminating,
        subscription_id,
        CAST(NULL AS BIGINT) AS wire_bytes,
        CASE WHEN error_code = 0 THEN push_interval_ms END AS push_interval_ms,
        CASE
            WHEN error_code = 0 THEN requested_metrics IS NULL OR cardinality(requested_metrics) > 0
        END AS names_metrics
    FROM telemetry_subscriptions
    WHERE client_instance_id IS NOT NULL
),
timed AS (
    SELECT
        *,
        coalesce(
            last_value(push_interval_ms) IGNORE NULLS OVER by_then,
            first_value(push_interval_ms) IGNORE NULLS OVER ever
        ) AS interval_ms,
        coalesce(
            last_value(push_interval_ms) IGNORE NULLS OVER before,
            first_value(push_interval_ms) IGNORE NULLS OVER ever
        ) AS interval_before_ms,
        coalesce(last_value(names_metrics) IGNORE NULLS OVER by_then, TRUE) AS is_subscribed,
        coalesce(last_value(names_metrics) IGNORE NULLS OVER before, TRUE) AS was_subscribed,
        max(CASE WHEN is_push = 1 AND accepted THEN event_time END) OVER before AS previous_push,
        max(event_time) OVER before AS previous_contact
    FROM contacts
    WINDOW by_then AS (
        PARTITION BY cluster_id, client_instance_id
        ORDER BY event_time, is_push, coalesce(error_code, 0)
        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ),
    before AS (
        PARTITION BY cluster_id, client_instance_id
        ORDER BY event_time, is_push, coalesce(error_code, 0)
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ),
    ever AS (
        PARTITION BY cluster_id, client_instance_id
        ORDER BY event_time, is_push, coalesce(error_code, 0)
        ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
    )
),
elapsed AS (
    SELECT
        *,
        CASE
            WHEN previous_push IS NOT NULL AND was_subscribed
                THEN CAST(unix_millis(event_time) - unix_millis(previous_contact) AS DOUBLE)
                / greatest(interval_before_ms, CASE WHEN is_push = 1 THEN interval_ms END)
        END AS intervals
    FROM timed
)
SELECT
    *,
    -- Rounded, for parts of an interval may add up to a little less than a whole one; to digits that
    -- parts in ms of usual intervals do not end between, where engines round differently.
    coalesce(round(sum(intervals) OVER since_push, 6), 0e0) AS elapsed_intervals
FROM elapsed
WINDOW since_push AS (
    PARTITION BY cluster_id, client_instance_id, previous_push
    ORDER BY event_time, is_push, coalesce(error_code, 0)
    ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
)
