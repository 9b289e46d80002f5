-- kind: staging
-- grain: one row per principal that no quota may slow down
-- area: configs
-- level: admin_api
-- question: Protected logins. Which principals must no quota slow down?
-- description: Principals that no advice, proposal or plan concerns, and how each is known: by conf, or by
--   what it does in the cluster. Kafka hides the value of super.users (KafkaConfig.maybeSensitive), so
--   administrators are known by what they altered. A fetch as a follower counts only if it brought bytes,
--   because a broker with an authorizer refuses it to a client.
-- history: config_alterations
-- columns:
--   from settings: cluster_id
--   principal: authenticated principal as Kafka prints it
--   why_code: own (this pipeline's login), excluded (plan.excluded_principals), shipper
--     (ingest.shipper_principals), super_user (the brokers' super.users, where they show it), broker (it
--     fetches as a follower), administrator (it altered quotas or configs that need rights on the cluster);
--     the first that is true
--   is_internal: a login of brokers or of this pipeline (own, shipper or broker), so that its clients are
--     programs of the cluster and not of its users. Not User:ANONYMOUS, which all clients share where
--     nobody logs in
WITH newest_settings AS (
    SELECT
        *,
        row_number() OVER (PARTITION BY cluster_id, setting ORDER BY event_time DESC) AS age
    FROM settings
    WHERE setting LIKE 'excluded.%'
),
newest_configs AS (
    SELECT
        *,
        row_number() OVER (PARTITION BY cluster_id, entity_name ORDER BY event_time DESC) AS age
    FROM configs
    WHERE entity_type = 'broker' AND config_key = 'super.users'
),
reasons AS (
    SELECT
        cluster_id,
        substr(setting, 10) AS principal,
        CASE setting_value
            WHEN 'own' THEN 1
            WHEN 'plan.excluded_principals' THEN 2
            ELSE 3
        END AS place
    FROM newest_settings
    WHERE age = 1 AND NOT is_removed
    UNION ALL
    SELECT cluster_id, trim(principal) AS principal, 4 AS place
    FROM (
        SELECT cluster_id, explode(split(config_value, ';')) AS principal
        FROM newest_configs
        WHERE age = 1 AND NOT is_removed AND config_value IS NOT NULL
    ) AS super_users
    WHERE trim(principal) <> ''
    UNION ALL
    SELECT cluster_id, principal, 5 AS place
    FROM fetch_sizes
    WHERE replica_id IS NOT NULL AND principal IS NOT NULL AND bytes > 0
    UNION ALL
    SELECT cluster_id, principal, 6 AS place
    FROM config_alterations
    WHERE
        error_code = 0
        AND principal IS NOT NULL
        AND entity_type IN ('user', 'client-id', 'ip', 'broker', 'broker-logger', 'client-metrics')
)

SELECT
    cluster_id,
    principal,
    CASE min(place)
        WHEN 1 THEN 'own'
        WHEN 2 THEN 'excluded'
        WHEN 3 THEN 'shipper'
        WHEN 4 THEN 'super_user'
        WHEN 5 THEN 'broker'
        ELSE 'administrator'
    END AS why_code,
    max(CASE WHEN place IN (1, 3, 5) AND principal <> 'User:ANONYMOUS' THEN 1 ELSE 0 END) = 1
        AS is_internal
FROM reasons
GROUP BY cluster_id, principal
