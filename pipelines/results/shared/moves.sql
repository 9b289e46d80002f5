-- Reassignments of partitions (KIP-455): one row per move, from `since`, the request, to `until`
-- (null: not known). A move ends when all its targets are in sync, when it is cancelled, or when
-- another takes its place. The controller ends it without a request if all targets are in sync
-- already, and some controllers' logs are not shipped. So snapshots may show the end too.
WITH requests_done AS (
    SELECT
        cluster_id, topic, "partition", event_time AS since, broker_id, change,
        coalesce(list_sort(list(DISTINCT replica_id) FILTER (replica_id IS NOT NULL)), [])
            AS target_replicas
    FROM reassignment_changes
    WHERE change IN ('requested', 'cancelled') AND error_code = 0
    GROUP BY ALL
),
-- One row per move, with the time of the next request and the targets of the one before.
requested AS (
    SELECT *,
        row_number() OVER (ORDER BY cluster_id, topic, "partition", since, broker_id, change) AS id,
        lead(since) OVER in_order AS next_request,
        lag(target_replicas) OVER in_order AS targets_before
    FROM requests_done
    WINDOW in_order AS (
        PARTITION BY cluster_id, topic, "partition" ORDER BY since, broker_id, change
    )
    QUALIFY change = 'requested'
),
-- When the log shows all targets in sync.
logged_ends AS (
    SELECT r.id, min(p.since) AS logged_end
    FROM requested r
    JOIN topics_by_id USING (cluster_id, topic)
    JOIN isr_periods p USING (cluster_id, topic_id, "partition")
    WHERE p.since > r.since AND list_has_all(p.isr, r.target_replicas)
    GROUP BY ALL
),
targets AS (SELECT *, unnest(target_replicas) AS target FROM requested),
-- When snapshots show one target in sync. What they show before the request is valid still, unless
-- the move before this one may have removed that replica.
target_ends AS (
    SELECT t.id, target, min(greatest(p.since, t.since)) AS end_
    FROM targets t
    JOIN replica_periods p ON p.cluster_id = t.cluster_id AND p.topic = t.topic
        AND p.partition = t.partition AND p.broker_id = t.target
    WHERE is_in_sync AND (p.since >= t.since
        OR (coalesce(p.until > t.since, true)
            AND coalesce(list_contains(targets_before, target), true)))
    GROUP BY ALL
),
-- When snapshots show all targets in sync.
snapshot_ends AS (
    SELECT id, max(end_) AS snapshot_end
    FROM requested JOIN target_ends USING (id)
    GROUP BY id, target_replicas
    HAVING count(*) = len(target_replicas)
)
SELECT
    cluster_id, topic, "partition", target_replicas, since,
    least(next_request, logged_end, snapshot_end) AS until
FROM requested
LEFT JOIN logged_ends USING (id)
LEFT JOIN snapshot_ends USING (id)
