-- kind: staging
-- grain: one row per broker with a cordoned log dir
-- area: cluster
-- level: admin_api
-- description: Brokers whose log dirs take no new replica, all or some of them (KIP-1066, Kafka 4.3), by
--   the configs of the last snapshot. Advice about where to place a replica leaves out brokers without
--   any other log dir.
-- empty: while no broker has cordoned.log.dirs (KIP-1066)
-- columns:
--   from configs: cluster_id
--   broker_id: the broker
--   log_dirs: its log dirs; null: no snapshot has them
--   cordoned_log_dirs: those of them that are cordoned
--   takes_replicas: some log dir is not cordoned, as far as snapshots show
WITH newest AS (
    SELECT
        *,
        row_number() OVER (
            PARTITION BY cluster_id, entity_name, config_key ORDER BY event_time DESC
        ) AS age
    FROM configs
    WHERE entity_type = 'broker' AND config_key IN ('cordoned.log.dirs', 'log.dirs', 'log.dir')
),
dirs AS (
    SELECT DISTINCT cluster_id, entity_name, config_key, regexp_replace(trim(log_dir), '/+$', '') AS log_dir
    FROM (
        SELECT cluster_id, entity_name, config_key, explode(split(config_value, ',')) AS log_dir
        FROM newest
        WHERE age = 1 AND NOT is_removed AND config_value IS NOT NULL
    ) AS parts
    WHERE trim(log_dir) <> ''
),
own AS (
    -- log.dir counts only without log.dirs.
    SELECT dirs.cluster_id, dirs.entity_name, dirs.log_dir
    FROM dirs
    LEFT JOIN (
        SELECT DISTINCT cluster_id, entity_name FROM dirs WHERE config_key = 'log.dirs'
    ) AS several USING (cluster_id, entity_name)
    WHERE
        dirs.config_key = 'log.dirs'
        OR (dirs.config_key = 'log.dir' AND several.entity_name IS NULL)
),
counted AS (
    SELECT cluster_id, entity_name, count(*) AS log_dirs
    FROM own
    GROUP BY cluster_id, entity_name
),
cordoned AS (
    SELECT
        cordons.cluster_id,
        cordons.entity_name,
        max(CASE WHEN cordons.log_dir = '*' THEN 1 ELSE 0 END) AS all_of_them,
        count(own.log_dir) AS of_own
    FROM (SELECT * FROM dirs WHERE config_key = 'cordoned.log.dirs') AS cordons
    LEFT JOIN own USING (cluster_id, entity_name, log_dir)
    GROUP BY cordons.cluster_id, cordons.entity_name
)

SELECT
    *,
    TRY_CAST(cordoned.entity_name AS INT) AS broker_id,
    CASE WHEN cordoned.all_of_them = 1 THEN counted.log_dirs ELSE cordoned.of_own END
        AS cordoned_log_dirs,
    NOT (cordoned.all_of_them = 1 OR coalesce(cordoned.of_own >= counted.log_dirs, false))
        AS takes_replicas
FROM cordoned
LEFT JOIN counted USING (cluster_id, entity_name)
