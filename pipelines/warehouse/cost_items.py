"""SQL of what clients and topics cost: each item of cost of each hour, at the prices of conf.

A view may read only views of tables, so reports and the dashboard share this text.
"""

ITEMS = {
    "produced": "produced",
    "consumed": "consumed",
    "cross_rack": "between racks",
    "remote_read": "read from remote storage",
    "stored": "kept on disks",
}
"""The items, in words."""

COST_ITEMS = """
    SELECT
        clients.cluster_id,
        hour,
        topic,
        principal,
        client_id,
        direction AS item,
        bytes / 1073741824e0 AS amount,
        'GiB' AS unit,
        CAST(NULL AS DOUBLE) AS unknown_amount,
        CAST(NULL AS DOUBLE) AS known_s,
        bytes / 1073741824e0
            * CASE direction WHEN 'produced' THEN produced_per_gib ELSE consumed_per_gib END
            AS cost,
        currency
    FROM traffic_of_clients AS clients
    LEFT JOIN current_prices AS prices ON clients.cluster_id = prices.cluster_id
    UNION ALL
    SELECT
        clients.cluster_id, hour, topic, principal, client_id, 'cross_rack',
        cross_rack_bytes / 1073741824e0, 'GiB', unknown_rack_bytes / 1073741824e0,
        CAST(NULL AS DOUBLE), cross_rack_bytes / 1073741824e0 * cross_rack_per_gib, currency
    FROM traffic_of_clients AS clients
    LEFT JOIN current_prices AS prices ON clients.cluster_id = prices.cluster_id
    UNION ALL
    SELECT
        cluster_id, hour, topic, principal, client_id, 'remote_read', bytes / 1073741824e0, 'GiB',
        CAST(NULL AS DOUBLE), CAST(NULL AS DOUBLE), remote_read_cost, currency
    FROM remote_reads_by_hour
    UNION ALL
    SELECT
        cluster_id, hour, topic, CAST(NULL AS STRING), CAST(NULL AS STRING), 'stored',
        byte_hours / 1073741824e0 / 730e0, 'GiB-month', CAST(NULL AS DOUBLE), known_s,
        storage_cost, currency
    FROM storage_by_hour
"""
"""Rows of SQL of both engines, whose costs add up. `stored` has no client, and a GiB-month is a GiB
on one disk for 730 hours. A null amount is not known. Of `cross_rack`, `unknown_amount` are GiB for
which one of the racks is not known: above 0, the amount is a least value. Of `stored`, `known_s`
are the seconds of the hour that snapshots know."""

VIEWS = ("traffic_of_clients", "current_prices", "remote_reads_by_hour", "storage_by_hour")
"""The views that it reads."""
