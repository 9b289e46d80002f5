-- kind: mart
-- grain: one row per dynamic config that the results propose to change or to keep
-- area: configs
-- level: admin_api
-- question: Proposals. Which configs should change, why, and what forbids it?
-- description: What a plan can set: the value, the reason, and the numbers that show it. The newest
--   rows can still change, so plan waits until they settle. Who takes producer ids too fast is limited
--   only for an accused cause, over a span of time, and where the ids do harm. A plan also blocks what
--   conf, the age of the tables, other writers or its own earlier writes forbid: quotaflow plan has that.
-- columns:
--   from quota_proposals: cluster_id, entity_type, entity_name, entity_client_id, config_key,
--     config_value, prior_value, reason_code
--   evidence: the numbers that the reason rests on, each a signal with its value (null: not known) and
--     its unit. The answer that proposes the row describes its signals
--   from quota_proposals: reason_detail, subject, evidence_table, evidence_key, since, priority,
--     blocked_reason, lease_s, renew_only, usage_p99, history_s, quota_in_force, offence, least_value,
--     direction

SELECT * FROM default_quota_proposals
UNION ALL
SELECT * FROM offender_proposals
UNION ALL
SELECT * FROM expiration_proposals
UNION ALL
SELECT * FROM leftover_proposals
UNION ALL
SELECT * FROM subscription_proposals
UNION ALL
SELECT * FROM quota_proposals
UNION ALL
SELECT * FROM replication_proposals
