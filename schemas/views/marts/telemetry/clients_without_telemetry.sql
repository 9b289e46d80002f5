-- kind: mart
-- grain: one row per principal, program and software of clients that produced or fetched and never
--   requested a telemetry subscription
-- area: telemetry
-- level: whole_log
-- question: Clients without telemetry. Which clients push no metrics, and why?
-- description: Which clients push no metrics (KIP-714), and why, by the software of the last hour of each
--   client. Programs of brokers and of this pipeline
--   are left out (protected_principals.is_internal).
-- history: telemetry_subscriptions
-- columns:
--   from request_times: cluster_id, principal
--   client_id: client.id, as the client gave it; of several ids of one program what they share, with *
--     for what varies: producer-*
--   client_ids: client ids of the program that never requested one
--   from telemetry_subscriptions: client_software_name, client_software_version
--   reason: too_old (Java client before 3.7 or Confluent's 7.7, librdkafka before 2.5), switched_off
--     (the library can: enable.metrics.push is false), or other_software (a library whose versions are
--     not known here)
--   requests: PRODUCE, FETCH and SHARE_FETCH requests
--   first_seen: first of those requests
--   last_seen: last of those requests
WITH used AS (
    SELECT cluster_id, principal, client_id, explode(software) AS library
    FROM request_times
    WHERE api IN ('PRODUCE', 'FETCH', 'SHARE_FETCH')
),
clients AS (
    SELECT
        cluster_id,
        principal,
        client_id,
        library.name AS client_software_name,
        library.version AS client_software_version,
        sum(library.requests) AS requests,
        min(library.first_seen) AS first_seen,
        max(library.last_seen) AS last_seen
    FROM used
    GROUP BY cluster_id, principal, client_id, library.name, library.version
),
dated AS (
    SELECT
        *,
        max(last_seen) OVER (PARTITION BY cluster_id, principal, client_id) AS last_request
    FROM clients
),
of_libraries AS (
    SELECT
        *,
        CASE
            WHEN client_software_name = 'apache-kafka-java' THEN client_software_version
            WHEN client_software_name = 'librdkafka' THEN client_software_version
            ELSE split_part(client_software_version, 'rdkafka-', 2)
        END AS library_version,
        CASE
            WHEN client_software_name <> 'apache-kafka-java' OR client_software_name IS NULL
                THEN 2005
            -- Confluent counts its own way: 7.7.0-ccs, or -ce with its server, is Kafka 3.7.0.
            WHEN client_software_version LIKE '%-ccs' OR client_software_version LIKE '%-ce'
                THEN 7007
            ELSE 3007
        END AS first_able
    FROM dated
    -- A client that was updated since has the software of its last hour.
    WHERE coalesce(last_seen > last_request - INTERVAL '1' HOUR, TRUE)
),
able AS (
    SELECT
        *,
        TRY_CAST(split_part(library_version, '.', 1) AS INT) * 1000
        + TRY_CAST(split_part(library_version, '.', 2) AS INT) AS version
    FROM of_libraries
),
subscribed AS (
    SELECT cluster_id, principal, client_id, client_software_name, client_software_version
    FROM telemetry_pushes
    WHERE client_instance_id IS NOT NULL
    UNION
    SELECT cluster_id, principal, client_id, client_software_name, client_software_version
    FROM telemetry_subscriptions
    WHERE client_instance_id IS NOT NULL
),
silent AS (
    SELECT
        able.*,
        CASE
            WHEN version IS NULL THEN 'other_software'
            WHEN version < first_able THEN 'too_old'
            ELSE 'switched_off'
        END AS reason,
        program_of(able.client_id) AS client_pattern
    FROM able
    LEFT JOIN subscribed
        ON able.cluster_id = subscribed.cluster_id
        AND coalesce(able.principal, '') = coalesce(subscribed.principal, '')
        AND coalesce(able.client_id, '') = coalesce(subscribed.client_id, '')
        AND coalesce(able.client_software_name, '') = coalesce(subscribed.client_software_name, '')
        AND coalesce(able.client_software_version, '') = coalesce(subscribed.client_software_version, '')
    LEFT JOIN protected_principals AS internal
        ON able.cluster_id = internal.cluster_id
        AND able.principal = internal.principal
        AND internal.is_internal
    WHERE subscribed.cluster_id IS NULL AND internal.principal IS NULL
)

SELECT
    *,
    CASE WHEN count(DISTINCT client_id) > 1 THEN client_pattern ELSE max(client_id) END AS client_id,
    count(DISTINCT client_id) AS client_ids,
    sum(requests) AS requests,
    min(first_seen) AS first_seen,
    max(last_seen) AS last_seen
FROM silent
GROUP BY
    cluster_id,
    principal,
    client_pattern,
    client_software_name,
    client_software_version,
    reason
