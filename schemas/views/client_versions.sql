-- One row per client software name and version that sent requests: whose they are (principals and
-- their number, client ids, addresses), client instances that asked for telemetry subscriptions
-- (0: too old, or switched off), first and last seen. Replica fetchers are left out, and
-- API_VERSIONS, which clients send before the broker knows their software; unknown is a client
-- that never says.
WITH instances AS (
    SELECT
        cluster_id,
        coalesce(client_software_name, 'unknown') AS client_software_name,
        coalesce(client_software_version, 'unknown') AS client_software_version,
        count(DISTINCT client_instance_id) AS telemetry_instances
    FROM telemetry_subscriptions
    GROUP BY 1, 2, 3
),
seen AS (
    SELECT
        cluster_id,
        coalesce(client_software_name, 'unknown') AS client_software_name,
        coalesce(client_software_version, 'unknown') AS client_software_version,
        array_sort(array_agg(DISTINCT principal)) AS principals,
        count(DISTINCT principal) AS principal_count,
        count(DISTINCT client_id) AS client_ids,
        count(DISTINCT client_address) AS client_addresses,
        count(*) AS request_count,
        min(event_time) AS first_seen,
        max(event_time) AS last_seen
    FROM requests
    WHERE replica_id IS NULL AND api <> 'API_VERSIONS'
    GROUP BY 1, 2, 3
)
SELECT
    seen.*,
    coalesce(telemetry_instances, 0) AS telemetry_instances
FROM seen
LEFT JOIN instances
    ON seen.cluster_id = instances.cluster_id
    AND seen.client_software_name = instances.client_software_name
    AND seen.client_software_version = instances.client_software_version
