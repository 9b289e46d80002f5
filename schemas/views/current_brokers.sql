-- One row per broker as the last snapshot found it.
SELECT
    cluster_id,
    broker_id,
    host,
    port,
    rack,
    is_controller,
    is_fenced,
    valid_from
FROM broker_history
WHERE valid_to IS NULL
