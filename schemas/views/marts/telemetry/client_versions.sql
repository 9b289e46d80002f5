-- kind: mart
-- grain: one row per client software name and version
-- area: telemetry
-- level: whole_log
-- question: Client versions. Which client libraries are in use, and by whom?
-- description: Which client libraries send requests, and who uses them. Followers are left out, and so
--   are API_VERSIONS requests, which clients send before the broker knows their software.
--   api_versions has the client ids of each version.
-- history: telemetry_subscriptions
-- columns:
--   from requests: cluster_id
--   client_software_name: client library (KIP-511); unknown: the client does not name one
--   client_software_version: version of the client library; unknown: the client does not name one
--   version_number: the version as a number that compares: 1000000 * major + 1000 * minor + patch, so
--     3.10.1 is 3010001; null: client_software_version does not begin with a number
--   newer_version: newest version of this library that clients of the cluster use; null: it is this
--     one, or this one has no number
--   principals: principals that use it, sorted
--   client_ids: number of client ids
--   client_addresses: number of addresses
--   request_count: number of requests, by the weight of each line
--   first_seen: first request
--   last_seen: last request
--   telemetry_instances: client instances that requested a subscription (KIP-714); 0: the
--     library is too old, or telemetry is switched off
WITH instances AS (
    SELECT
        cluster_id,
        coalesce(client_software_name, 'unknown') AS client_software_name,
        coalesce(client_software_version, 'unknown') AS client_software_version,
        count(DISTINCT client_instance_id) AS telemetry_instances
    FROM telemetry_subscriptions
    GROUP BY 1, 2, 3
),
software AS (
    SELECT
        cluster_id,
        coalesce(client_software_name, 'unknown') AS client_software_name,
        coalesce(client_software_version, 'unknown') AS client_software_version,
        array_sort(array_agg(DISTINCT principal)) AS principals,
        count(DISTINCT client_id) AS client_ids,
        count(DISTINCT client_address) AS client_addresses,
        CAST(sum(coalesce(weight, 1)) AS BIGINT) AS request_count,
        min(event_time) AS first_seen,
        max(event_time) AS last_seen
    FROM requests
    WHERE replica_id IS NULL AND api <> 'API_VERSIONS'
    GROUP BY 1, 2, 3
),
numbered AS (
    SELECT *, version_number(software.client_software_version) AS version_number
    FROM software
),
compared AS (
    SELECT
        *,
        first_value(client_software_version) OVER newest_first AS newest_version,
        first_value(version_number) OVER newest_first AS newest_number
    FROM numbered
    WINDOW newest_first AS (
        PARTITION BY cluster_id, client_software_name
        ORDER BY version_number DESC NULLS LAST, client_software_version
    )
)

SELECT
    *,
    CASE WHEN version_number < newest_number THEN newest_version END AS newer_version,
    coalesce(telemetry_instances, 0) AS telemetry_instances
FROM compared
LEFT JOIN instances USING (cluster_id, client_software_name, client_software_version)
