-- kind: mart
-- grain: one row per hour, group and type of group
-- area: groups
-- level: sampled_log
-- description: How often groups rebalance, how long their members cannot read (stop the world), and
--   why, over the last two days. See rebalances for each one, with its client.
-- columns:
--   from rebalances: cluster_id
--   hour: start of the hour
--   from rebalances: group_id, group_type
--   rebalances: rebalances that started in the hour
--   duration_ms: sum of their durations, in ms
--   max_duration_ms: longest of them, in ms
--   stopped_ms: sum of the times in which members could not read, in ms; null: not known of any
--   incomplete: rebalances whose members did not all come
--   member_joined: rebalances because a member joined
--   member_left: because one left
--   missed_heartbeats: because one did not come back
--   subscription_changed: because one subscribed to other topics
--   partitions_changed: because partitions of a topic changed
--   unknown: for a reason that is not known
--   trigger_clients: client ids and principals that caused some
SELECT
    cluster_id, date_trunc('hour', started_at) AS hour, group_id, group_type,
    count(*) AS rebalances,
    sum(duration_ms) AS duration_ms,
    max(duration_ms) AS max_duration_ms,
    sum(stopped_ms) AS stopped_ms,
    sum(CASE WHEN is_complete THEN 0 ELSE 1 END) AS incomplete,
    sum(CASE WHEN trigger = 'member_joined' THEN 1 ELSE 0 END) AS member_joined,
    sum(CASE WHEN trigger = 'member_left' THEN 1 ELSE 0 END) AS member_left,
    sum(CASE WHEN trigger = 'missed_heartbeats' THEN 1 ELSE 0 END) AS missed_heartbeats,
    sum(CASE WHEN trigger = 'subscription_changed' THEN 1 ELSE 0 END) AS subscription_changed,
    sum(CASE WHEN trigger = 'partitions_changed' THEN 1 ELSE 0 END) AS partitions_changed,
    sum(CASE WHEN trigger = 'unknown' THEN 1 ELSE 0 END) AS unknown,
    count(DISTINCT concat_ws('|', trigger_principal, trigger_client_id)) AS trigger_clients
FROM rebalances
GROUP BY cluster_id, date_trunc('hour', started_at), group_id, group_type
