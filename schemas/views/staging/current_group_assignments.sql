-- kind: staging
-- grain: one row per member of a group
-- area: groups
-- level: admin_api
-- description: The members of each group in the last snapshot, and their partitions.
-- columns:
--   from group_assignments: cluster_id, group_id, member_id, group_instance_id, client_id,
--     client_address, rack_id, member_epoch, assigned_partitions
--   valid_from: time of the snapshot that saw this state first
SELECT
    *,
    event_time AS valid_from
FROM (
    SELECT
        *,
        row_number() OVER (
            PARTITION BY cluster_id, group_id, member_id ORDER BY event_time DESC
        ) AS age
    FROM group_assignments
) AS aged
WHERE age = 1 AND NOT is_removed
