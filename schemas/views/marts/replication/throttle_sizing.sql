-- kind: mart
-- grain: one row per cluster
-- area: replication
-- level: admin_api
-- description: Whether answers to followers are small enough for the replication throttle (KIP-73), and
--   which throttle they would be small enough for. One answer of every broker, brokers x
--   response_max_bytes, must pass at min(leader_rate x brokers, network_bytes_per_s) in less than the
--   whole quota window. Otherwise rates swing: followers wait in the next seconds for what came in one.
-- history: replication_throttles
-- columns:
--   from replication_throttles: cluster_id
--   event_time: last minute of the throttle; null: leaders have none now
--   brokers: brokers of the last snapshot or with replication in the last ten minutes; all that ever
--     replicated if there is no snapshot
--   response_max_bytes: replica.fetch.response.max.bytes of the brokers, in bytes; Kafka's default if
--     no snapshot has it
--   is_assumed: response_max_bytes is Kafka's default, because no snapshot has it
--   leader_rate: least rate set for a leader, in bytes per second; null: leaders have none now
--   least_leader_rate: answers are small enough for a rate above this one, in bytes per second; null:
--     for no rate, because of network_bytes_per_s
--   network_bytes_per_s: conf's replication.network_bytes_per_s, of all brokers, in bytes per second;
--     null: not set
--   answers_s: time that one answer of every broker takes, in seconds; null: leaders have no rate
--   total_window_s: length of the whole quota window, in seconds: replication.quota.window.num x
--     window.size.seconds
--   fits: answers_s is less than total_window_s; null: leaders have no rate
--   largest_response_max_bytes: largest value of replica.fetch.response.max.bytes that fits, in bytes;
--     null: leaders have no rate
--   bounded_by: what limits that value: quota or network; null: leaders have no rate
WITH newest AS (
    SELECT cluster_id, max(event_time) AS event_time
    FROM replication_traffic
    GROUP BY cluster_id
),
rated AS (
    SELECT
        throttles.cluster_id,
        max(throttles.event_time) AS event_time,
        min(throttles.rate) AS leader_rate
    FROM replication_throttles AS throttles
    INNER JOIN newest USING (cluster_id)
    WHERE throttles.side = 'leader'
        AND throttles.rate_source IN ('dynamic_broker', 'dynamic_default')
        AND throttles.is_configured
        AND throttles.event_time >= newest.event_time
    GROUP BY throttles.cluster_id
),
moved AS (
    SELECT cluster_id, event_time, leader_id + 0 AS broker_id FROM replication_traffic
    UNION ALL
    SELECT cluster_id, event_time, follower_id + 0 AS broker_id FROM replication_traffic
),
snapshots AS (
    SELECT cluster_id, count(*) AS brokers FROM current_brokers GROUP BY cluster_id
),
existing AS (
    SELECT cluster_id, broker_id + 0 AS broker_id FROM current_brokers
    UNION ALL
    SELECT moved.cluster_id, moved.broker_id
    FROM moved
    INNER JOIN newest USING (cluster_id)
    LEFT JOIN snapshots USING (cluster_id)
    WHERE
        snapshots.brokers IS NULL
        OR unix_micros(moved.event_time) > unix_micros(newest.event_time) - 600000000
),
counted AS (
    SELECT cluster_id, count(DISTINCT broker_id) AS brokers
    FROM existing
    WHERE broker_id IS NOT NULL
    GROUP BY cluster_id
),
configured AS (
    SELECT
        cluster_id,
        max(CAST(config_value AS BIGINT))
            FILTER (WHERE config_key = 'replica.fetch.response.max.bytes') AS response_max_bytes,
        min(CAST(config_value AS BIGINT))
            FILTER (WHERE config_key = 'replication.quota.window.num') AS windows,
        min(CAST(config_value AS BIGINT))
            FILTER (WHERE config_key = 'replication.quota.window.size.seconds') AS window_s
    FROM current_configs
    WHERE entity_type = 'broker' AND config_key IN (
        'replica.fetch.response.max.bytes',
        'replication.quota.window.num',
        'replication.quota.window.size.seconds'
    )
    GROUP BY cluster_id
),
conf AS (
    SELECT
        cluster_id,
        max(TRY_CAST(setting_value AS DOUBLE))
            FILTER (WHERE setting = 'replication.network_bytes_per_s') AS network_bytes_per_s
    FROM current_settings
    WHERE setting = 'replication.network_bytes_per_s'
    GROUP BY cluster_id
),
sized AS (
    SELECT
        counted.cluster_id,
        rated.event_time,
        counted.brokers,
        coalesce(configured.response_max_bytes, 10485760) AS response_max_bytes,
        coalesce(configured.windows, 11) * coalesce(configured.window_s, 1) AS total_window_s,
        rated.leader_rate,
        conf.network_bytes_per_s,
        CASE
            WHEN conf.network_bytes_per_s < rated.leader_rate * counted.brokers
                THEN conf.network_bytes_per_s
            ELSE rated.leader_rate * counted.brokers
        END AS bytes_per_s,
        conf.network_bytes_per_s < rated.leader_rate * counted.brokers AS is_network_less,
        configured.response_max_bytes IS NULL AS is_assumed
    FROM counted
    LEFT JOIN rated USING (cluster_id)
    LEFT JOIN configured USING (cluster_id)
    LEFT JOIN conf USING (cluster_id)
)

SELECT
    *,
    CASE
        WHEN network_bytes_per_s IS NULL
            OR network_bytes_per_s * total_window_s > brokers * response_max_bytes
            THEN response_max_bytes * 1e0 / total_window_s
    END AS least_leader_rate,
    brokers * response_max_bytes / nullif(bytes_per_s, 0e0) AS answers_s,
    CASE
        WHEN leader_rate IS NOT NULL
            THEN coalesce(brokers * response_max_bytes / nullif(bytes_per_s, 0e0) < total_window_s, false)
    END AS fits,
    CAST(floor(bytes_per_s * total_window_s / brokers) AS BIGINT) AS largest_response_max_bytes,
    CASE
        WHEN is_network_less THEN 'network'
        WHEN leader_rate IS NOT NULL THEN 'quota'
    END AS bounded_by
FROM sized
