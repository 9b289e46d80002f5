-- kind: mart
-- grain: one row per dynamic config or client quota that a request altered
-- area: configs
-- level: sampled_log
-- question: Writers of configs. Who set each config last?
-- description: Who altered each config last, by the request log: the last alteration that a broker
--   accepted. Entities have the names of config_alterations. The log does not show what was set before
--   it started, through a broker that ships no log, by a request whose answer was lost, or in a file.
-- columns:
--   from accepted_alterations: cluster_id, entity_type, entity_name, entity_client_id
--   config_key: name of the config or quota
--   altered_at: when the broker completed the request
--   from accepted_alterations: principal, client_id, client_software_name, client_address, api
--   operation: SET, DELETE, APPEND or SUBTRACT; DELETE also if the request deleted all configs of the
--     entity, or the topic
--   from accepted_alterations: config_value
--   is_own: the principal is the login of the conf that took the last snapshot; null: the properties of
--     that login do not show which principal brokers see (mTLS)
--   is_order_known: false: the alteration before this one went through another broker less than 5 s
--     earlier, so by their clocks either can be the last
WITH altered AS (
    SELECT
        *,
        row_number() OVER newest_first AS nth_last,
        lead(broker_id) OVER newest_first AS prior_broker_id,
        lead(event_time) OVER newest_first AS prior_time
    FROM accepted_alterations
    WINDOW newest_first AS (
        PARTITION BY cluster_id, entity_type, entity_name, entity_client_id, config_key
        ORDER BY event_time DESC, source_partition DESC, source_offset DESC, position DESC
    )
),
own AS (
    SELECT cluster_id, setting_value AS principal
    FROM current_settings
    WHERE setting = 'own_principal'
)

SELECT
    *,
    altered.event_time AS altered_at,
    altered.principal,
    altered.principal = own.principal AS is_own,
    NOT coalesce(
        altered.prior_broker_id <> altered.broker_id
        AND unix_millis(altered.event_time) - unix_millis(altered.prior_time) < 5000,
        false
    ) AS is_order_known
FROM altered
LEFT JOIN own USING (cluster_id)
WHERE altered.nth_last = 1
