-- Racks of brokers: a row is valid from `since` to the next row of the broker. `is_known`: the
-- broker is there, maybe without a rack; false from when a snapshot no longer finds it.
SELECT
    cluster_id, broker_id, since,
    max(rack) FILTER (NOT is_removed) AS rack,
    coalesce(bool_or(NOT is_removed), false) AS is_known
FROM with_since(brokers)
GROUP BY ALL
