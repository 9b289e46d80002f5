-- kind: staging
-- grain: one row per principal that produced, consumed or has rows in quota_usage
-- area: quotas
-- level: sampled_log
-- description: The name by which quotas know each principal. Quotas and the tables of users have a name
--   without a type, as kafka-configs --entity-type users takes it; facts and results have a principal
--   with its type. Join user_name with user of client_quotas, current_client_quotas, quota_advice and
--   quota_baselines, and with quota_bucket_user of quota_usage.
-- columns:
--   from traffic: cluster_id, principal
--   user_name: what follows the type of the principal: dave of User:dave
WITH principals AS (
    SELECT cluster_id, principal FROM traffic
    UNION
    SELECT cluster_id, principal FROM quota_usage
)

SELECT
    *,
    substring(principal, instr(principal, ':') + 1) AS user_name
FROM principals
WHERE principal IS NOT NULL
