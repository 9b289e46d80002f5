-- kind: mart
-- grain: one row per hour, item of cost, topic, principal and client
-- needs: admin_api
-- description: Each cost that a topic and its clients cause, at the prices of conf today (section
--   prices). It is for chargeback: the whole cost is the sum. Items are what clients produced and
--   consumed, the part of it that crossed racks, what they read from remote storage (KIP-405), and
--   what replicas keep on disks of brokers. Without a request log only the last item has rows.
-- columns:
--   from traffic_by_hour: cluster_id, hour, topic, unnamed_topic_id
--   principal: principal of the client; null: not known, or item is stored
--   client_id: client id of the client; null: not known, or item is stored
--   item: produced, consumed, cross_rack, remote_read or stored
--   amount: how much of it, in unit; null: not known
--   unit: GiB, or GiB-month for stored: a GiB on a disk for 730 hours
--   unknown_amount: of cross_rack, GiB for which one of the racks is not known: amount is a least value
--     where it is more than 0; null for other items
--   unknown_reason: why amount is null: see storage_by_hour
--   price: price of one unit in conf, in currency; null: conf has none for the item
--   cost: amount times price, in currency; null: one of them is null
--   from current_prices: currency
WITH items AS (
    SELECT
        cluster_id,
        hour,
        topic,
        unnamed_topic_id,
        principal,
        client_id,
        direction AS item,
        bytes / 1073741824e0 AS amount,
        'GiB' AS unit,
        CAST(NULL AS DOUBLE) AS unknown_amount,
        CAST(NULL AS STRING) AS unknown_reason,
        moved_cost AS cost
    FROM traffic_by_hour
    UNION ALL
    SELECT
        cluster_id,
        hour,
        topic,
        unnamed_topic_id,
        principal,
        client_id,
        'cross_rack' AS item,
        sum(cross_rack_bytes) / 1073741824e0,
        'GiB',
        sum(unknown_rack_bytes) / 1073741824e0,
        CAST(NULL AS STRING),
        sum(cross_rack_cost)
    FROM traffic_by_hour
    GROUP BY cluster_id, hour, topic, unnamed_topic_id, principal, client_id
    UNION ALL
    SELECT
        cluster_id,
        hour,
        topic,
        CAST(NULL AS STRING),
        principal,
        client_id,
        'remote_read',
        bytes / 1073741824e0,
        'GiB',
        CAST(NULL AS DOUBLE),
        CAST(NULL AS STRING),
        remote_read_cost
    FROM remote_reads_by_hour
    UNION ALL
    SELECT
        cluster_id,
        hour,
        topic,
        CAST(NULL AS STRING),
        CAST(NULL AS STRING),
        CAST(NULL AS STRING),
        'stored',
        byte_hours / 1073741824e0 / 730e0,
        'GiB-month',
        CAST(NULL AS DOUBLE),
        unknown_reason,
        storage_cost
    FROM storage_by_hour
)

SELECT
    items.cluster_id,
    items.hour,
    items.topic,
    items.unnamed_topic_id,
    items.principal,
    items.client_id,
    items.item,
    items.amount,
    items.unit,
    items.unknown_amount,
    items.unknown_reason,
    CASE items.item
        WHEN 'produced' THEN prices.produced_per_gib
        WHEN 'consumed' THEN prices.consumed_per_gib
        WHEN 'cross_rack' THEN prices.cross_rack_per_gib
        WHEN 'remote_read' THEN prices.remote_read_per_gib
        WHEN 'stored' THEN prices.stored_per_gib_month
    END AS price,
    items.cost,
    prices.currency
FROM items
LEFT JOIN current_prices AS prices ON items.cluster_id = prices.cluster_id
