-- kind: mart
-- grain: one row per dynamic config or client quota that a request altered
-- description: Who altered each config last, by the request log: the last alteration that a broker
--   accepted. Entities have the names of config_alterations. The log does not show what was set before
--   it started, through a broker that ships no log, by a request whose answer was lost, or in a file.
-- columns:
--   from config_alterations: cluster_id, entity_type, entity_name, entity_client_id
--   config_key: name of the config or quota
--   altered_at: when the broker completed the request
--   from config_alterations: principal, client_id, client_software_name, client_address, api
--   operation: SET, DELETE, APPEND or SUBTRACT; DELETE also if the request deleted all configs of the
--     entity, or the topic
--   from config_alterations: config_value
--   is_own: the principal is the login of the conf that took the last snapshot; null: the properties of
--     that login do not show which principal brokers see (mTLS)
--   is_order_known: false: the alteration before this one went through another broker less than 5 s
--     earlier, so by their clocks either can be the last
WITH taken AS (
    SELECT *
    FROM config_alterations
    WHERE error_code = 0 AND entity_type IS NOT NULL
),
named_keys AS (
    SELECT DISTINCT
        cluster_id,
        entity_type,
        entity_name,
        entity_client_id,
        config_key
    FROM taken
    WHERE config_key IS NOT NULL
),
altered AS (
    SELECT
        named_keys.config_key AS altered_key,
        taken.*,
        row_number() OVER (
            PARTITION BY named_keys.cluster_id, named_keys.entity_type, named_keys.entity_name,
                named_keys.entity_client_id, named_keys.config_key
            ORDER BY taken.event_time DESC, taken.source_partition DESC, taken.source_offset DESC,
                taken.position DESC
        ) AS nth_last,
        lead(taken.broker_id) OVER (
            PARTITION BY named_keys.cluster_id, named_keys.entity_type, named_keys.entity_name,
                named_keys.entity_client_id, named_keys.config_key
            ORDER BY taken.event_time DESC, taken.source_partition DESC, taken.source_offset DESC,
                taken.position DESC
        ) AS prior_broker_id,
        lead(taken.event_time) OVER (
            PARTITION BY named_keys.cluster_id, named_keys.entity_type, named_keys.entity_name,
                named_keys.entity_client_id, named_keys.config_key
            ORDER BY taken.event_time DESC, taken.source_partition DESC, taken.source_offset DESC,
                taken.position DESC
        ) AS prior_time
    FROM named_keys
    INNER JOIN taken
        ON named_keys.cluster_id = taken.cluster_id
            AND named_keys.entity_type = taken.entity_type
            AND named_keys.entity_name = taken.entity_name
            AND (named_keys.entity_client_id IS NOT DISTINCT FROM taken.entity_client_id)
            AND coalesce(taken.config_key, named_keys.config_key) = named_keys.config_key
),
own AS (
    SELECT cluster_id, setting_value AS principal
    FROM current_settings
    WHERE setting = 'own_principal'
)

SELECT
    altered.cluster_id,
    altered.entity_type,
    altered.entity_name,
    altered.entity_client_id,
    altered.altered_key AS config_key,
    altered.event_time AS altered_at,
    altered.principal,
    altered.client_id,
    altered.client_software_name,
    altered.client_address,
    altered.api,
    altered.operation,
    altered.config_value,
    altered.principal = own.principal AS is_own,
    NOT coalesce(
        altered.prior_broker_id <> altered.broker_id
        AND unix_millis(altered.event_time) - unix_millis(altered.prior_time) < 5000,
        false
    ) AS is_order_known
FROM altered
LEFT JOIN own ON altered.cluster_id = own.cluster_id
WHERE altered.nth_last = 1
