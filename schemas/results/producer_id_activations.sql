-- kind: result
-- fills: producer_id_rates
-- facts: active_producers
-- scope: kind = 'activation'
-- bucket: 1 min
-- lookahead: 1 d
-- lookups:
--   active_producers: changes nothing
--   producer_id_uses: changes nothing

-- New producer ids per principal, leader and snapshot: ids that the leader has for the first time.
-- A snapshot gives no exact time, so ids are rated over the time since the snapshot before. In the
-- first snapshot of a cluster all ids are new, and have no rate.
WITH
-- A row per id and leader: the first snapshot in which the leader has the id.
activations AS (
    SELECT cluster_id, broker_id, producer_id, min(event_time) AS event_time
    FROM active_producers
    WHERE NOT is_removed
    GROUP BY ALL
),
-- A row per id: the principal that was given the id last; if none was, the one that used it last.
owners AS (
    SELECT cluster_id, producer_id, principal
    FROM producer_id_uses
    WHERE producer_id IS NOT NULL AND principal IS NOT NULL
    QUALIFY row_number() OVER (
        PARTITION BY cluster_id, producer_id
        ORDER BY coalesce(allocations, 0) > 0 DESC, last_seen DESC NULLS LAST, principal
    ) = 1
),
-- A row per snapshot that changed something: the seconds since the one before.
snapshots AS (
    SELECT
        cluster_id, event_time,
        (epoch_us(event_time) - lag(epoch_us(event_time)) OVER of_cluster) / 1e6 AS interval_s
    FROM (SELECT DISTINCT cluster_id, event_time FROM active_producers)
    WINDOW of_cluster AS (PARTITION BY cluster_id ORDER BY event_time)
),
-- A row per snapshot, leader and principal.
counted AS (
    SELECT
        activations.cluster_id, activations.event_time, broker_id, principal,
        count(*) AS new_ids
    FROM activations LEFT JOIN owners USING (cluster_id, producer_id)
    GROUP BY ALL
),
-- The same rows with their rate and quota.
rated AS (
    SELECT
        *,
        new_ids / interval_s AS rate_per_s,
        coalesce(quota_milli, $default_quota_milli::BIGINT) / 1e3 AS quota_per_s
    FROM counted
    JOIN snapshots USING (cluster_id, event_time)
    LEFT JOIN producer_id_quotas USING (principal)
)
SELECT
    cluster_id, CAST(event_time AS DATE) AS event_date, floored(event_time, 1) AS event_time,
    broker_id, principal, 'activation' AS kind,
    new_ids AS sightings, new_ids, new_ids AS new_ids_exact, rate_per_s,
    NULL AS tokens, quota_per_s, NULL AS throttle_time_ms, NULL AS throttle_time_avg_ms,
    coalesce(rate_per_s > quota_per_s, false) AS is_violating
FROM rated
