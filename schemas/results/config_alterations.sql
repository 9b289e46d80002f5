-- kind: result
-- grain: one row per dynamic config or client quota that a request was to alter, taken or refused;
--   requests that only validate are left out
-- area: configs
-- level: sampled_log
-- description: A DELETE without a config_key is of all configs the entity has; a row without an
--   entity_type is a request too large to be kept
-- key: cluster_id, source_topic, source_partition, source_offset, position
-- time: event_time
-- partitioning: event_date
-- facts: requests
-- relevant: api IN ('INCREMENTAL_ALTER_CONFIGS', 'ALTER_CONFIGS', 'CREATE_TOPICS', 'DELETE_TOPICS',
--   'ALTER_CLIENT_QUOTAS')
-- bucket: 1 min
-- split_by: cluster_id, source_topic, source_partition, source_offset
-- columns:
--   from requests: cluster_id
--   event_date DATE: UTC date of event_time
--   event_time TIMESTAMP: when the broker completed the request
--   broker_id INT: broker that took the request
--   api STRING: INCREMENTAL_ALTER_CONFIGS; ALTER_CONFIGS, which deletes what it does not name;
--     ALTER_CLIENT_QUOTAS; CREATE_TOPICS, with the configs it gives; DELETE_TOPICS
--   from requests: principal, client_id, client_software_name, client_address
--   entity_type STRING: topic, broker, broker-logger, client-metrics, group, user, client-id or ip
--   entity_name STRING: its name, a broker's node id, a user without User:; empty: the default of
--     all that have none of their own (KIP-226, KIP-546)
--   entity_client_id STRING: of a user's quota for one client id: that; empty: for client ids
--     without one of their own; null: the entity has no such part
--   config_key STRING: name of the config, or of the quota
--   operation STRING: SET, DELETE, APPEND or SUBTRACT
--   config_value STRING: operand of it, a quota without needless digits; null for DELETE, and for
--     configs not known to be harmless to show
--   error_code INT: error code of its answer, 0 done; null: the answer was lost
--   error_message STRING: message of its answer, at most 300 characters; null where it may show a
--     value that is not shown
--   position INT: place in the request: the later of two for one config wins
--   from requests: source_topic, source_partition, source_offset

-- Alterations of dynamic configs and client quotas, from the bodies of requests.
-- A request that a broker forwards to the controller is in the log twice, and in `requests` once.
WITH bodies AS (
    -- A row is a request that does more than validate, with its parsed body. Resources and topics
    -- have the same shape here, so that one step reads both.
    SELECT * EXCLUDE (parsed), parsed.request AS request, parsed.response AS response
    FROM (
        SELECT
            cluster_id, event_time, broker_id, api, principal, client_id, client_software_name,
            client_address, source_topic, source_partition, source_offset, source_line,
            from_json(json_or_null(body), '{
                "request": {
                    "validateOnly": "BOOLEAN",
                    "resources": [{
                        "resourceType": "JSON", "resourceName": "VARCHAR", "name": "VARCHAR",
                        "configs": [
                            {"name": "VARCHAR", "configOperation": "JSON", "value": "VARCHAR"}]}],
                    "topics": [{
                        "resourceType": "JSON", "resourceName": "VARCHAR", "name": "VARCHAR",
                        "configs": [
                            {"name": "VARCHAR", "configOperation": "JSON", "value": "VARCHAR"}]}],
                    "entries": [{
                        "entity": [{"entityType": "VARCHAR", "entityName": "VARCHAR"}],
                        "ops": [{"key": "VARCHAR", "value": "DOUBLE", "remove": "BOOLEAN"}]}]
                },
                "response": {
                    "responses": [{
                        "resourceType": "JSON", "resourceName": "VARCHAR", "name": "VARCHAR",
                        "errorCode": "JSON", "errorMessage": "VARCHAR"}],
                    "topics": [{
                        "resourceType": "JSON", "resourceName": "VARCHAR", "name": "VARCHAR",
                        "errorCode": "JSON", "errorMessage": "VARCHAR"}],
                    "entries": [{
                        "entity": [{"entityType": "VARCHAR", "entityName": "VARCHAR"}],
                        "errorCode": "JSON", "errorMessage": "VARCHAR"}]
                }
            }') AS parsed
        FROM requests
    )
    WHERE NOT coalesce(parsed.request."validateOnly", false)
),
resources AS (
    -- A row is a resource that a request alters, or a topic that it creates, with its answer.
    SELECT
        * EXCLUDE (answers), list_filter(answers, lambda a:
            json_int(a."resourceType") = json_int(resource."resourceType")
                AND a."resourceName" = resource."resourceName"
            OR a.name = resource.name
        )[1] AS answer
    FROM (
        SELECT
            * EXCLUDE (request, response), unnest(altered) AS resource,
            generate_subscripts(altered, 1) AS place
        FROM (
            SELECT
                *,
                if(api = 'CREATE_TOPICS', request.topics, request.resources) AS altered,
                if(api = 'CREATE_TOPICS', response.topics, response.responses) AS answers
            FROM bodies
            WHERE api IN ('INCREMENTAL_ALTER_CONFIGS', 'ALTER_CONFIGS', 'CREATE_TOPICS')
        )
    )
    WHERE resource IS NOT NULL
),
described_resources AS (
    -- A row is the same, with its name. An answer is for all configs of a resource, and its message
    -- may show the value of any.
    SELECT
        * EXCLUDE (altered, resource, answer), resource.configs AS configs,
        CASE
            WHEN api = 'CREATE_TOPICS' THEN 'topic'
            ELSE CASE json_int(resource."resourceType")
                WHEN 2 THEN 'topic'
                WHEN 4 THEN 'broker'
                WHEN 8 THEN 'broker-logger'
                WHEN 16 THEN 'client-metrics'
                WHEN 32 THEN 'group'
                ELSE CAST(json_int(resource."resourceType") AS VARCHAR)
            END
        END AS entity_type,
        if(api = 'CREATE_TOPICS', resource.name, resource."resourceName") AS entity_name,
        json_int(answer."errorCode") AS error_code,
        CASE
            WHEN list_bool_and([
                coalesce(list_contains($harmless, c.name), false) FOR c IN resource.configs
            ]) IS DISTINCT FROM false THEN answer."errorMessage"
        END AS error_message
    FROM resources
),
config_operations AS (
    -- A row is a config, and what a request does to it. Only INCREMENTAL_ALTER_CONFIGS names that.
    SELECT
        * EXCLUDE (configs, config), config.name AS config_key, config.value AS operand,
        CASE
            WHEN api <> 'INCREMENTAL_ALTER_CONFIGS' THEN if(config.value IS NULL, 'DELETE', 'SET')
            ELSE CASE json_int(config."configOperation")
                WHEN 0 THEN 'SET' WHEN 1 THEN 'DELETE' WHEN 2 THEN 'APPEND' WHEN 3 THEN 'SUBTRACT'
            END
        END AS operation
    FROM (
        SELECT *, unnest(configs) AS config, generate_subscripts(configs, 1) AS nth
        FROM described_resources
    )
),
deleted_topics AS (
    -- A row is a topic that a request deletes. If it does so by id, only the answer has the name.
    SELECT
        * EXCLUDE (request, response, answer), 'topic' AS entity_type, answer.name AS entity_name,
        json_int(answer."errorCode") AS error_code, answer."errorMessage" AS error_message
    FROM (
        SELECT
            *, unnest(response.responses) AS answer,
            generate_subscripts(response.responses, 1) AS place
        FROM bodies
        WHERE api = 'DELETE_TOPICS'
    )
    WHERE answer.name IS NOT NULL
),
quota_entities AS (
    -- A row is an entity whose quotas a request alters, with its answer, which may have the parts
    -- in another order. A part without a name is the default, a part that is not there null.
    SELECT
        * EXCLUDE (request, response, entry), entry.ops AS ops, entry.entity[1] AS first_part,
        [coalesce(p."entityName", '') FOR p IN entry.entity IF p."entityType" = 'user'][1]
            AS user_name,
        [coalesce(p."entityName", '') FOR p IN entry.entity IF p."entityType" = 'client-id'][1]
            AS client_name,
        [coalesce(p."entityName", '') FOR p IN entry.entity IF p."entityType" = 'ip'][1] AS ip,
        list_filter(response.entries, lambda a:
            list_sort(a.entity) IS NOT DISTINCT FROM list_sort(entry.entity)
        )[1] AS answer
    FROM (
        SELECT
            *, unnest(request.entries) AS entry, generate_subscripts(request.entries, 1) AS place
        FROM bodies
        WHERE api = 'ALTER_CLIENT_QUOTAS'
    )
),
quota_operations AS (
    -- A row is a quota, and what a request does to it. Quotas are numbers, so none is a secret.
    SELECT
        * EXCLUDE (ops, op, first_part, user_name, client_name, ip, answer),
        CASE
            WHEN user_name IS NOT NULL THEN 'user'
            WHEN client_name IS NOT NULL THEN 'client-id'
            ELSE coalesce(first_part."entityType", '')
        END AS entity_type,
        coalesce(user_name, client_name, ip, '') AS entity_name,
        CASE WHEN user_name IS NOT NULL THEN client_name END AS entity_client_id,
        op.key AS config_key, if(coalesce(op.remove, false), 'DELETE', 'SET') AS operation,
        CASE WHEN NOT coalesce(op.remove, false) THEN number_text(op.value) END AS config_value,
        json_int(answer."errorCode") AS error_code, answer."errorMessage" AS error_message
    FROM (SELECT *, unnest(ops) AS op, generate_subscripts(ops, 1) AS nth FROM quota_entities)
),
alterations AS (
    -- A row is an alteration. `place` and `nth` are its order in the request.
    SELECT
        * EXCLUDE (operand),
        CASE
            WHEN list_contains($harmless, config_key) AND operand <> '[hidden]'
                AND operation <> 'DELETE' THEN operand
        END AS config_value
    FROM config_operations
    UNION ALL BY NAME
    -- ALTER_CONFIGS deletes every config that it does not name.
    SELECT * EXCLUDE (configs), 'DELETE' AS operation, 0 AS nth
    FROM described_resources
    WHERE api = 'ALTER_CONFIGS'
    UNION ALL BY NAME
    SELECT *, 'DELETE' AS operation, 0 AS nth FROM deleted_topics
    UNION ALL BY NAME
    SELECT * FROM quota_operations
),
alterations_and_losses AS (
    SELECT * EXCLUDE (place, nth), row_number() OVER (
        PARTITION BY cluster_id, source_topic, source_partition, source_offset
        ORDER BY source_line NULLS FIRST, place, nth
    ) - 1 AS position
    FROM alterations
    UNION ALL BY NAME
    -- A request whose body was too large to be kept, or is broken.
    SELECT * EXCLUDE (request, response)
    FROM bodies
    WHERE request IS NULL AND response IS NULL
)
-- The protocol has no string longer than 32,767, but a line can have one.
SELECT
    cluster_id, CAST(event_time AS DATE) AS event_date, event_time, broker_id, api, principal,
    client_id, client_software_name, client_address, left(entity_type, 32_767) AS entity_type,
    left(entity_name, 32_767) AS entity_name, left(entity_client_id, 32_767) AS entity_client_id,
    left(config_key, 32_767) AS config_key, operation, left(config_value, 32_767) AS config_value,
    error_code, left(error_message, 300) AS error_message, position, source_topic,
    source_partition, source_offset
FROM alterations_and_losses
