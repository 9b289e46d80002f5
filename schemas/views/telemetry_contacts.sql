-- One row per push, and per answer to GetTelemetrySubscriptions, of a client instance: with the
-- interval it was asked to push at by then, and the time of its previous accepted push. Of pushes
-- in one millisecond the accepted one counts as the first.
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
        push_interval_ms
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
        CASE WHEN error_code = 0 THEN push_interval_ms END AS push_interval_ms
    FROM telemetry_subscriptions
    WHERE client_instance_id IS NOT NULL
)
SELECT
    *,
    coalesce(
        last_value(push_interval_ms) IGNORE NULLS OVER (
            PARTITION BY cluster_id, client_instance_id
            ORDER BY event_time, is_push, coalesce(error_code, 0)
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ),
        first_value(push_interval_ms) IGNORE NULLS OVER (
            PARTITION BY cluster_id, client_instance_id
            ORDER BY event_time, is_push, coalesce(error_code, 0)
            ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
        )
    ) AS interval_ms,
    max(CASE WHEN is_push = 1 AND accepted THEN event_time END) OVER (
        PARTITION BY cluster_id, client_instance_id
        ORDER BY event_time, is_push, coalesce(error_code, 0)
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS previous_push
FROM contacts
