-- What the timed Bloom filter reads: a row per request that shows an id, in order of time.
SELECT cluster_id, broker_id, principal, epoch_millis(event_time) AS event_ms, producer_id
FROM requests
ORDER BY cluster_id, broker_id, principal, event_ms, producer_id
