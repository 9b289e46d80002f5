-- kind: staging
-- grain: one row per client quota
-- area: cluster
-- level: admin_api
-- question: Client quotas. Which quotas are set, for whom?
-- description: The client quotas that the last snapshot found.
-- columns:
--   from client_quotas: cluster_id, user, is_default_user, client_id, is_default_client_id, ip,
--     is_default_ip, config_key
--   quota: limit that applies: bytes per second, percent of a thread, mutations or connections
--     per second, as config_key says
--   set_by: principal that set this value; null: the request log does not show it
--   valid_from: when the value was set by the request log, or else when the snapshot that saw it first
--     began
WITH of_entities AS (
    SELECT
        *,
        row_number() OVER newest_first AS age,
        lead(event_time) OVER newest_first AS prior_time,
        -- As config_alterations names it.
        CASE
            WHEN user IS NOT NULL OR is_default_user THEN 'user'
            WHEN client_id IS NOT NULL OR is_default_client_id THEN 'client-id'
            ELSE 'ip'
        END AS entity_type,
        CASE
            WHEN user IS NOT NULL OR is_default_user THEN coalesce(user, '')
            WHEN client_id IS NOT NULL OR is_default_client_id THEN coalesce(client_id, '')
            ELSE coalesce(ip, '')
        END AS entity_name,
        CASE
            WHEN
                (user IS NOT NULL OR is_default_user)
                AND (client_id IS NOT NULL OR is_default_client_id)
                THEN coalesce(client_id, '')
        END AS entity_client_id
    FROM client_quotas
    WINDOW newest_first AS (
        PARTITION BY
            cluster_id,
            user,
            is_default_user,
            client_id,
            is_default_client_id,
            ip,
            is_default_ip,
            config_key
        ORDER BY event_time DESC
    )
),
present AS (
    SELECT *
    FROM of_entities
    WHERE age = 1 AND NOT is_removed
),
-- A snapshot asks the log as it is then: lines can come later, and a value can be set after the
-- snapshot began, before it read the quotas. Nothing says when it ended.
altered AS (
    SELECT
        present.cluster_id,
        present.entity_type,
        present.entity_name,
        present.entity_client_id,
        present.config_key,
        present.event_time AS seen_at,
        alterations.event_time AS altered_at,
        alterations.principal,
        -- Without a value it removes the quota.
        coalesce(TRY_CAST(alterations.config_value AS DOUBLE) = present.quota, false) AS is_to_this
    FROM present
    INNER JOIN config_alterations AS alterations
        ON present.cluster_id = alterations.cluster_id
            AND present.entity_type = alterations.entity_type
            AND present.entity_name = alterations.entity_name
            AND (present.entity_client_id IS NOT DISTINCT FROM alterations.entity_client_id)
            AND present.config_key = alterations.config_key
    WHERE
        alterations.error_code = 0
        AND unix_micros(alterations.event_time) - unix_micros(present.event_time) < 60000000
        AND coalesce(alterations.event_time > present.prior_time, true)
),
logged AS (
    SELECT
        cluster_id,
        entity_type,
        entity_name,
        entity_client_id,
        config_key,
        max(CASE WHEN is_to_this THEN altered_at END) AS logged_at,
        max_by(principal, CASE WHEN is_to_this THEN altered_at END) AS logged_by,
        max(CASE WHEN NOT is_to_this AND altered_at <= seen_at THEN altered_at END) AS otherwise_at
    FROM altered
    GROUP BY 1, 2, 3, 4, 5
),
setters AS (
    SELECT *
    FROM logged
    WHERE coalesce(logged_at > otherwise_at, logged_at IS NOT NULL)
)

SELECT
    present.*,
    coalesce(present.set_by, setters.logged_by) AS set_by,
    coalesce(present.set_at, setters.logged_at, present.event_time) AS valid_from
FROM present
LEFT JOIN setters
    ON present.cluster_id = setters.cluster_id
        AND present.entity_type = setters.entity_type
        AND present.entity_name = setters.entity_name
        AND (present.entity_client_id IS NOT DISTINCT FROM setters.entity_client_id)
        AND present.config_key = setters.config_key
