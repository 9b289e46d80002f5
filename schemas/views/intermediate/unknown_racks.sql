-- kind: intermediate
-- grain: one row per rack that clients of the last day name and no broker of the cluster has
-- area: racks
-- level: sampled_log
-- description: Racks of clients that are no rack of the cluster, and which rack may be meant. Clusters
--   without racks, and those of which a broker has none, are left out. No text shows which zone of a
--   cloud has a zone id (use1-az1).
-- empty: while clients name racks that brokers have
-- columns:
--   from traffic: cluster_id, client_rack
--   nearest_racks: rack that is meant, by its text but for capitals, separators, a prefix or two letters;
--     else all racks that may be, with commas
WITH racks AS (
    -- As current_brokers, which may not be read here: views are two deep at most.
    SELECT cluster_id, rack
    FROM (
        SELECT
            *,
            row_number() OVER (
                PARTITION BY cluster_id, broker_id ORDER BY event_time DESC
            ) AS age
        FROM brokers
    ) AS aged
    WHERE age = 1 AND NOT is_removed
),
complete AS (
    SELECT cluster_id FROM racks GROUP BY cluster_id HAVING count(rack) = count(*)
),
newest AS (
    SELECT cluster_id, max(event_time) AS event_time FROM traffic GROUP BY cluster_id
),
named AS (
    SELECT traffic.cluster_id, traffic.client_rack
    FROM traffic
    INNER JOIN newest USING (cluster_id)
    WHERE
        traffic.client_rack IS NOT NULL
        AND unix_millis(traffic.event_time) > unix_millis(newest.event_time) - 86400000
    UNION
    SELECT metrics.cluster_id, metrics.client_rack
    FROM client_metrics AS metrics
    INNER JOIN newest USING (cluster_id)
    WHERE
        metrics.client_rack <> ''
        AND unix_millis(metrics.event_time) > unix_millis(newest.event_time) - 86400000
),
spelled AS (
    SELECT
        named.cluster_id,
        named.client_rack,
        racks.rack,
        max(CASE WHEN named.client_rack = racks.rack THEN 1 ELSE 0 END) OVER (
            PARTITION BY named.cluster_id, named.client_rack
        ) AS is_one,
        regexp_replace(lower(named.client_rack), '[^a-z0-9]', '') AS written,
        regexp_replace(lower(racks.rack), '[^a-z0-9]', '') AS right_one
    FROM named
    INNER JOIN complete USING (cluster_id)
    INNER JOIN racks USING (cluster_id)
),
compared AS (
    SELECT
        *,
        CASE
            WHEN written = '' OR right_one = '' THEN 9
            WHEN written = right_one THEN 0
            WHEN position(right_one IN written) > 0 OR position(written IN right_one) > 0 THEN 1
            WHEN levenshtein(written, right_one) <= 2 THEN 1 + levenshtein(written, right_one)
            ELSE 9
        END AS distance
    FROM spelled
    WHERE is_one = 0
),
ranked AS (
    SELECT
        *,
        min(distance) OVER (PARTITION BY cluster_id, client_rack) AS least
    FROM compared
)

SELECT
    *,
    array_join(array_sort(array_agg(DISTINCT rack)), ', ') AS nearest_racks
FROM ranked
WHERE distance = least
GROUP BY cluster_id, client_rack
