-- kind: mart
-- grain: one row per hour, client and topic of which it read records in remote storage
-- area: racks
-- level: sampled_log
-- question: Remote reads. Who reads old records from remote storage?
-- description: What clients read from remote storage, what it costs at the prices of conf today, and
--   what made them wait for it (KIP-405, KIP-956). Least values: see remote_reads.
-- empty: while no topic has remote storage (KIP-405), or nobody reads what is only there
-- columns:
--   from remote_reads: cluster_id
--   hour: start of the hour
--   from remote_reads: principal, client_id, topic
--   group_id: group that the client was a member of in the hour, for this topic where requests name
--     topics; null: none, or several
--   groups: how many groups fit
--   fetches: answers with remote records, one of several partitions for each
--   bytes: record bytes in them
--   fetch_time_ms: time that brokers took for them, in ms
--   empty_fetches: empty answers before them though the records were there
--   over_quota_fetches: those of them that began while the broker was over its remote fetch quota
--   empty_time_ms: time that the client waited for empty answers, in ms
--   limiter: remote_fetch_quota (half or more of the empty answers began while the broker was over
--     remote.log.manager.fetch.max.bytes.per.second), remote_storage (less than half did: the storage
--     was slow, or failed, or reads that are not in the log used the quota); null: nothing was empty
--   remote_read_cost: cost of bytes, in currency; null: conf has no prices.remote_read_per_gib
--   from current_prices: currency
WITH hours AS (
    SELECT
        cluster_id,
        date_trunc('HOUR', event_time) AS hour,
        principal,
        client_id,
        topic,
        sum(fetches) AS fetches,
        sum(bytes) AS bytes,
        sum(fetch_time_ms) AS fetch_time_ms,
        sum(empty_fetches) AS empty_fetches,
        sum(over_quota_fetches) AS over_quota_fetches,
        sum(empty_time_ms) AS empty_time_ms
    FROM remote_reads
    GROUP BY cluster_id, date_trunc('HOUR', event_time), principal, client_id, topic
),
memberships AS (
    SELECT
        hours.cluster_id,
        hours.hour,
        hours.principal,
        hours.client_id,
        hours.topic,
        members.group_id,
        max(CASE WHEN array_contains(members.subscribed_topics, hours.topic) THEN 1 ELSE 0 END) AS has_topic,
        count(members.subscribed_topics) AS named
    FROM hours
    INNER JOIN group_members AS members
        ON hours.cluster_id = members.cluster_id
            AND hours.principal = members.principal
            AND hours.client_id = members.client_id
            AND hours.hour = date_trunc('HOUR', members.event_time)
    GROUP BY ALL
),
fitting AS (
    SELECT
        cluster_id,
        hour,
        principal,
        client_id,
        topic,
        count(*) AS groups,
        max(group_id) AS last_group_id
    FROM memberships
    WHERE has_topic = 1 OR named = 0
    GROUP BY cluster_id, hour, principal, client_id, topic
)

SELECT
    *,
    hours.cluster_id,
    hours.hour,
    hours.principal,
    hours.client_id,
    hours.topic,
    CASE WHEN fitting.groups = 1 THEN fitting.last_group_id END AS group_id,
    coalesce(fitting.groups, 0) AS groups,
    CASE
        WHEN hours.empty_fetches = 0 THEN NULL
        WHEN hours.over_quota_fetches * 2 >= hours.empty_fetches THEN 'remote_fetch_quota'
        ELSE 'remote_storage'
    END AS limiter,
    hours.bytes * prices.remote_read_per_gib / 1073741824.0 AS remote_read_cost
FROM hours
LEFT JOIN fitting
    ON hours.cluster_id = fitting.cluster_id
        AND hours.hour = fitting.hour
        AND (hours.principal IS NOT DISTINCT FROM fitting.principal)
        AND (hours.client_id IS NOT DISTINCT FROM fitting.client_id)
        AND hours.topic = fitting.topic
LEFT JOIN current_prices AS prices ON hours.cluster_id = prices.cluster_id
