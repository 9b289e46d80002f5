-- One row per push, and per answer to GetTelemetrySubscriptions, of a client instance: with the
-- interval it was asked to push at by then, whether it was asked for any metrics (is_wanted), the
-- time of its previous accepted push, and the intervals that passed since then (due). Each span
-- counts by the answer that held in it: not at all where no metrics were asked for, and where only
-- the pushes at its ends tell of an interval, by the longer one. Of pushes in one millisecond the
-- accepted one counts as the first.
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
        CASE WHEN error_code = 0 THEN push_interval_ms END AS push_interval_ms,
        CASE
            WHEN error_code = 0 THEN requested_metrics IS NULL OR cardinality(requested_metrics) > 0
        END AS names_metrics
    FROM telemetry_subscriptions
    WHERE client_instance_id IS NOT NULL
),
told AS (
    SELECT
        *,
        coalesce(
            last_value(push_interval_ms) IGNORE NULLS OVER by_then,
            first_value(push_interval_ms) IGNORE NULLS OVER ever
        ) AS interval_ms,
        coalesce(last_value(names_metrics) IGNORE NULLS OVER by_then, TRUE) AS is_wanted,
        max(CASE WHEN is_push = 1 AND accepted THEN event_time END) OVER before AS previous_push
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
spans AS (
    SELECT
        *,
        CASE
            WHEN previous_push IS NOT NULL AND lag(is_wanted) OVER series
                THEN CAST(
                    unix_millis(event_time) - lag(unix_millis(event_time)) OVER series AS DOUBLE
                ) / greatest(
                    lag(interval_ms) OVER series, CASE WHEN is_push = 1 THEN interval_ms END
                )
        END AS intervals
    FROM told
    WINDOW series AS (
        PARTITION BY cluster_id, client_instance_id
        ORDER BY event_time, is_push, coalesce(error_code, 0)
    )
)
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
    is_push,
    accepted,
    error_code,
    terminating,
    subscription_id,
    push_interval_ms,
    interval_ms,
    is_wanted,
    previous_push,
    -- Rounded, for parts of an interval may add up to a little less than a whole one.
    coalesce(round(sum(intervals) OVER since_push, 3), 0e0) AS due
FROM spans
WINDOW since_push AS (
    PARTITION BY cluster_id, client_instance_id, previous_push
    ORDER BY event_time, is_push, coalesce(error_code, 0)
    ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
)
