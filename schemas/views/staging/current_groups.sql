-- kind: staging
-- grain: one row per group
-- area: groups
-- level: admin_api
-- question: Groups. Which groups are there, and which have no members?
-- description: The state of each group in the last snapshot.
-- columns:
--   from groups: cluster_id, group_id, group_type, protocol_type, state, coordinator_id, assignor,
--     group_epoch, members
--   valid_from: time of the snapshot that saw this state first
SELECT
    *,
    event_time AS valid_from
FROM (
    SELECT
        *,
        row_number() OVER (PARTITION BY cluster_id, group_id ORDER BY event_time DESC) AS age
    FROM groups
) AS aged
WHERE age = 1 AND NOT is_removed
