-- kind: mart
-- grain: one row per rejected push of a client instance
-- area: telemetry
-- level: telemetry
-- question: Each rejected push. When did brokers reject a push, and with which error?
-- description: Telemetry pushes that brokers rejected. telemetry_rejections sums them up, and has what
--   became of their points, for which it reads all metrics.
-- columns:
--   from unique_pushes: cluster_id, event_time, broker_id, client_instance_id, principal, client_id
--   client_pattern: what client ids of its program share, with * for what varies: producer-*
--   error_code: error that the broker answered; null: not known
--   from error_names: error_name
SELECT
    *,
    program_of(client_id) AS client_pattern
FROM unique_pushes
LEFT JOIN error_names USING (error_code)
WHERE NOT accepted
