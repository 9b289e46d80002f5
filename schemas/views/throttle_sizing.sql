-- One row per cluster whose leaders have a throttle of replication: whether answers to followers
-- are small enough for it (KIP-73). One answer of every broker, brokers x response_max_bytes, must
-- pass at min(leader_rate x brokers, network_bytes_per_s) in less than the whole window, or rates
-- swing: what came in one second is waited for in the next ones. largest_response_max_bytes is the
-- most that replica.fetch.response.max.bytes may be, bounded_by the side that bounds it: quota or
-- network (replication.network_bytes_per_s of conf, in all; null where it is not told). brokers:
-- those that the last snapshot found or that replicated in the last ten minutes; all that ever did
-- where no snapshot told of brokers. leader_rate is the least that stands at a leader; what no
-- snapshot told is taken as Kafka ships it (is_assumed).
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
    INNER JOIN newest ON throttles.cluster_id = newest.cluster_id
    WHERE throttles.side = 'leader'
        AND throttles.rate_source IN ('dynamic_broker', 'dynamic_default')
        AND throttles.is_standing
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
there AS (
    SELECT cluster_id, broker_id + 0 AS broker_id FROM current_brokers
    UNION ALL
    SELECT moved.cluster_id, moved.broker_id
    FROM moved
    INNER JOIN newest ON moved.cluster_id = newest.cluster_id
    LEFT JOIN snapshots ON moved.cluster_id = snapshots.cluster_id
    WHERE
        snapshots.brokers IS NULL
        OR unix_micros(moved.event_time) > unix_micros(newest.event_time) - 600000000
),
counted AS (
    SELECT cluster_id, count(DISTINCT broker_id) AS brokers
    FROM there
    WHERE broker_id IS NOT NULL
    GROUP BY cluster_id
),
configured AS (
    SELECT
        cluster_id,
        max(
            CASE
                WHEN config_key = 'replica.fetch.response.max.bytes'
                    THEN CAST(config_value AS BIGINT)
            END
        ) AS response_max_bytes,
        min(
            CASE WHEN config_key = 'replication.quota.window.num' THEN CAST(config_value AS BIGINT) END
        ) AS windows,
        min(
            CASE
                WHEN config_key = 'replication.quota.window.size.seconds'
                    THEN CAST(config_value AS BIGINT)
            END
        ) AS window_s
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
        max(
            CASE
                WHEN setting = 'replication.network_bytes_per_s' AND setting_value <> 'None'
                    THEN CAST(setting_value AS DOUBLE)
            END
        ) AS network_bytes_per_s
    FROM current_settings
    WHERE setting = 'replication.network_bytes_per_s'
    GROUP BY cluster_id
),
sized AS (
    SELECT
        rated.cluster_id,
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
    FROM rated
    INNER JOIN counted ON rated.cluster_id = counted.cluster_id
    LEFT JOIN configured ON rated.cluster_id = configured.cluster_id
    LEFT JOIN conf ON rated.cluster_id = conf.cluster_id
)

SELECT
    cluster_id,
    event_time,
    brokers,
    response_max_bytes,
    is_assumed,
    leader_rate,
    network_bytes_per_s,
    brokers * response_max_bytes / nullif(bytes_per_s, 0e0) AS answers_s,
    total_window_s,
    coalesce(brokers * response_max_bytes / nullif(bytes_per_s, 0e0) < total_window_s, false)
        AS is_fitting,
    CAST(floor(bytes_per_s * total_window_s / brokers) AS BIGINT) AS largest_response_max_bytes,
    CASE WHEN is_network_less THEN 'network' ELSE 'quota' END AS bounded_by
FROM sized
