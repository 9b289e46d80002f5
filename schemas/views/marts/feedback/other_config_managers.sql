-- kind: mart
-- grain: one row per other program that manages the cluster: per principal and client id in the request
--   log, and per trace of one in a snapshot
-- area: configs
-- level: admin_api
-- question: Other programs. Which other programs manage configs of the cluster?
-- description: Programs other than this pipeline that alter dynamic configs or client quotas or move
--   replicas. Refused alterations are left out. The kind relies on names that a program can choose
--   freely: Cruise Control, Jikkou and JulieOps are admin_client unless their client id or principal
--   names them, and autothrottle is other. The view does not show programs that use this pipeline's own
--   login, programs that were idle since the log started, or configs that applications set when they
--   create topics. A request that was too large to store counts as one alteration.
-- history: config_alterations, reassignment_changes
-- columns:
--   from config_alterations: cluster_id
--   kind: kafka-reassign-partitions, cruise_control, strimzi, terraform, jikkou, julie, topicctl,
--     autothrottle, quota_callback (a broker has a client.quota.callback.class), quotaflow (apply with
--     a login of its own, or another deployment), admin_client (a Java Admin without a client.id of its
--     own: a person with kafka-configs, or any program) or other
--   principal: authenticated principal as Kafka prints it; null for a trace
--   client_id: client.id as the client gave it, untrusted text; null for a trace
--   client_software_name: client library (KIP-511); null: not known
--   entity_types: types of the entities that it altered, comma-separated; replicas: it moved some;
--     null: not known
--   alterations: configs, quotas and replicas that it altered; null for a trace
--   recent_entities: different entities that it altered in the day before last_seen: few where a person
--     works by hand; null for a trace
--   evidence_code: what evidence has: requests (APIs that it used, comma-separated), topic (a topic
--     that it made) or quota_callback (the class that brokers call)
--   evidence: APIs, name of the topic, or name of the class, at most 200 characters
--   first_seen: first alteration, or first snapshot with the trace
--   last_seen: last alteration, or when the trace was removed; null: the last snapshot still has the
--     trace
WITH own AS (
    SELECT cluster_id, setting_value AS principal
    FROM current_settings
    WHERE setting = 'own_principal'
),
acts AS (
    SELECT
        cluster_id,
        principal,
        client_id,
        client_software_name,
        entity_type,
        entity_name,
        entity_client_id,
        api,
        event_time
    FROM config_alterations
    WHERE api NOT IN ('CREATE_TOPICS', 'DELETE_TOPICS') AND coalesce(error_code, 0) = 0
    UNION ALL
    SELECT
        cluster_id,
        principal,
        client_id,
        CAST(NULL AS STRING) AS client_software_name,
        'replicas' AS entity_type,
        topic AS entity_name,
        CAST(NULL AS STRING) AS entity_client_id,
        'ALTER_PARTITION_REASSIGNMENTS' AS api,
        event_time
    FROM reassignment_changes
    WHERE change IN ('requested', 'cancelled') AND coalesce(error_code, 0) = 0
),
others AS (
    SELECT
        acts.*,
        -- With and without hyphens or underscores.
        regexp_replace(
            lower(concat(coalesce(acts.principal, ''), ' ', coalesce(acts.client_id, ''))),
            '[-_]', ''
        ) AS names
    FROM acts
    LEFT JOIN own USING (cluster_id)
    WHERE own.principal IS NULL OR acts.principal IS DISTINCT FROM own.principal
),
kinds AS (
    SELECT
        others.*,
        CASE
            WHEN client_id = 'reassign-partitions-tool' THEN 'kafka-reassign-partitions'
            WHEN client_id = 'quotaflow-admin' THEN 'quotaflow'
            WHEN position('cruisecontrol' IN names) > 0 THEN 'cruise_control'
            WHEN position('strimzi' IN names) > 0 THEN 'strimzi'
            WHEN position('terraform' IN names) > 0 THEN 'terraform'
            WHEN position('jikkou' IN names) > 0 THEN 'jikkou'
            WHEN position('julieops' IN names) > 0 THEN 'julie'
            WHEN position('topicctl' IN names) > 0 THEN 'topicctl'
            WHEN position('autothrottle' IN names) > 0 THEN 'autothrottle'
            WHEN substr(client_id, 1, 12) = 'adminclient-' THEN 'admin_client'
            ELSE 'other'
        END AS kind
    FROM others
),
by_entity AS (
    SELECT
        cluster_id,
        kind,
        principal,
        client_id,
        entity_type,
        concat(
            coalesce(entity_type, ''), ' ',
            coalesce(entity_name, ''), ' ',
            coalesce(entity_client_id, '')
        ) AS entity,
        api,
        max(client_software_name) AS client_software_name,
        count(*) AS alterations,
        min(event_time) AS first_seen,
        max(event_time) AS last_seen
    FROM kinds
    GROUP BY cluster_id, kind, principal, client_id, entity_type, entity_name, entity_client_id, api
),
dated AS (
    SELECT
        *,
        max(last_seen) OVER (PARTITION BY cluster_id, kind, principal, client_id) AS newest
    FROM by_entity
),
traces AS (
    SELECT
        cluster_id,
        CASE
            WHEN topic = '__CruiseControlMetrics' OR substr(topic, 1, 20) = '__KafkaCruiseControl'
                OR substr(topic, 1, 22) = 'strimzi.cruisecontrol.' THEN 'cruise_control'
            WHEN substr(topic, 1, 9) = '__strimzi' THEN 'strimzi'
        END AS kind,
        'topic' AS evidence_code,
        topic AS evidence,
        CAST(NULL AS STRING) AS entity_types,
        valid_from,
        valid_to
    FROM topic_history
    UNION ALL
    SELECT
        cluster_id,
        'quota_callback' AS kind,
        'quota_callback' AS evidence_code,
        substr(config_value, 1, 200) AS evidence,
        'user' AS entity_types,
        valid_from,
        valid_to
    FROM config_history
    WHERE
        entity_type = 'broker'
        AND config_key = 'client.quota.callback.class'
        AND config_value <> ''
)

SELECT
    cluster_id,
    kind,
    principal,
    client_id,
    max(client_software_name) AS client_software_name,
    -- Of no entries, Spark joins an empty text.
    nullif(array_join(array_sort(array_agg(DISTINCT entity_type)), ','), '') AS entity_types,
    sum(alterations) AS alterations,
    count(DISTINCT CASE WHEN last_seen > newest - INTERVAL '1 days' THEN entity END) AS recent_entities,
    'requests' AS evidence_code,
    array_join(array_sort(array_agg(DISTINCT api)), ',') AS evidence,
    min(first_seen) AS first_seen,
    max(last_seen) AS last_seen
FROM dated
GROUP BY cluster_id, kind, principal, client_id
UNION ALL
SELECT
    *,
    CAST(NULL AS STRING) AS principal,
    CAST(NULL AS STRING) AS client_id,
    CAST(NULL AS STRING) AS client_software_name,
    CAST(NULL AS BIGINT) AS alterations,
    CAST(NULL AS BIGINT) AS recent_entities,
    min(valid_from) AS first_seen,
    CASE WHEN count(valid_to) = count(*) THEN max(valid_to) END AS last_seen
FROM traces
WHERE kind IS NOT NULL
GROUP BY cluster_id, kind, evidence_code, evidence, entity_types
