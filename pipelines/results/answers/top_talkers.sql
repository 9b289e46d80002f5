WITH newest AS (
    SELECT cluster_id, max(hour) AS newest_hour
    FROM traffic_by_hour
    GROUP BY cluster_id
),
days AS (
    SELECT
        moved.cluster_id,
        date_trunc('DAY', hour) AS day,
        principal,
        client_id,
        sum(CASE WHEN direction = 'produced' THEN bytes ELSE 0 END) AS produced_bytes,
        sum(CASE WHEN direction = 'consumed' THEN bytes ELSE 0 END) AS consumed_bytes,
        sum(bytes) AS bytes,
        sum(cross_rack_bytes) AS cross_rack_bytes,
        sum(unknown_rack_bytes) AS unknown_rack_bytes,
        count(DISTINCT topic) AS topics,
        sum(cost) AS cost,
        max(currency) AS currency
    FROM traffic_by_hour AS moved
    INNER JOIN newest ON moved.cluster_id = newest.cluster_id
    -- Seven whole days and the newest one.
    WHERE unix_millis(hour) >= unix_millis(date_trunc('DAY', newest_hour)) - 604800000
    GROUP BY moved.cluster_id, date_trunc('DAY', hour), principal, client_id
)

SELECT
    days.cluster_id,
    day,
    rank() OVER (PARTITION BY days.cluster_id, day ORDER BY bytes DESC) AS talker_rank,
    days.principal,
    client_id,
    coalesce(protected.is_internal, false) AS is_internal,
    produced_bytes,
    consumed_bytes,
    CAST(bytes AS DOUBLE) / sum(bytes) OVER (PARTITION BY days.cluster_id, day) AS share,
    cross_rack_bytes,
    unknown_rack_bytes,
    CAST(cross_rack_bytes AS DOUBLE) / nullif(bytes - unknown_rack_bytes, 0) AS cross_rack_share,
    topics,
    cost,
    currency
FROM days
LEFT JOIN protected_principals AS protected
    ON days.cluster_id = protected.cluster_id AND days.principal = protected.principal
