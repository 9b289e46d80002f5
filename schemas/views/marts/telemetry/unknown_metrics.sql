-- kind: mart
-- grain: one row per client software and name that should not be there
-- area: telemetry
-- level: telemetry
-- description: Metric names under org.apache.kafka that the catalogue does not have (metrics of
--   applications can have such names), and attributes that look like the identity of a host, which
--   clients must not send (KIP-714).
-- columns:
--   from client_metrics: cluster_id, client_software_name, client_software_version
--   kind: name: a metric name; attribute: an attribute or resource key
--   name: metric name as sent, or key in lower case with . and - as _
--   points: data points with it
--   first_seen: first of those points
--   last_seen: last of those points
WITH host_keys AS (
    SELECT host_key
    FROM (
        VALUES
        ('host'), ('hostname'), ('host_name'), ('host_id'), ('host_ip'), ('host_mac'),
        ('host_address'), ('net_host_name'), ('net_host_ip'), ('net_sock_host_addr'),
        ('ip'), ('ip_addr'), ('ip_address'), ('ipaddress'), ('addr'), ('address'),
        ('local_address'), ('source_address'), ('client_address'), ('client_host'), ('client_ip'),
        ('server_address'), ('server_name'), ('mac'), ('mac_address'), ('fqdn'), ('dns_name'),
        ('domain_name'), ('machine'), ('machine_id'), ('machine_name'), ('computer_name'),
        ('node'), ('node_ip'), ('node_name'), ('nodename'), ('k8s_node_name'), ('k8s_node_uid'),
        ('pod'), ('pod_ip'), ('pod_name'), ('pod_uid'), ('podname'), ('kubernetes_pod_name'),
        ('k8s_pod_hostname'), ('k8s_pod_ip'), ('k8s_pod_name'), ('k8s_pod_uid'),
        ('container'), ('container_id'), ('container_name')
    ) AS listed (host_key)
),
sent AS (
    SELECT
        cluster_id,
        client_software_name,
        client_software_version,
        CASE WHEN metric LIKE 'org.apache.kafka.%' AND NOT in_catalogue THEN metric END AS metric,
        array_join(map_keys(attributes), ',') AS attribute_keys,
        array_join(map_keys(resource), ',') AS resource_keys,
        count(*) AS points,
        min(event_time) AS first_seen,
        max(event_time) AS last_seen
    FROM client_metrics
    GROUP BY 1, 2, 3, 4, 5, 6
),
keyed AS (
    SELECT
        *,
        concat(',', concat_ws(',', attribute_keys, resource_keys), ',') AS sent_keys
    FROM sent
),
unknown_names AS (
    SELECT
        cluster_id,
        client_software_name,
        client_software_version,
        'name' AS kind,
        metric AS name,
        points,
        first_seen,
        last_seen
    FROM sent
    WHERE metric IS NOT NULL
    UNION ALL
    SELECT
        cluster_id,
        client_software_name,
        client_software_version,
        'attribute' AS kind,
        host_key AS name,
        points,
        first_seen,
        last_seen
    FROM keyed
    INNER JOIN host_keys
        ON instr(replace(replace(lower(sent_keys), '.', '_'), '-', '_'), concat(',', host_key, ',')) > 0
)
SELECT
    *,
    sum(points) AS points,
    min(first_seen) AS first_seen,
    max(last_seen) AS last_seen
FROM unknown_names
GROUP BY ALL
