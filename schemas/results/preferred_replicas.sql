-- kind: result
-- grain: one row per minute, consumer, partition and broker
-- area: racks
-- level: sampled_log
-- description: Which broker each consumer read a partition from, which one the leader should name,
--   and which one is nearest (KIP-392), one row {per}; of answers with records or with a preferred
--   replica. Leaders, in-sync replicas, racks and configs are those of the last snapshot by then,
--   of the first one for what was before it
-- key: cluster_id, event_time, principal, client_id, client_rack, is_rack_inferred, topic_id,
--   topic, partition, broker_id
-- time: event_time
-- partitioning: event_date
-- facts: fetches
-- bucket: 1 min
-- lookups:
--   topic_names: changes nothing
--   replicas: from event_time, reaches back
--   brokers: from event_time, reaches back
--   topics: from event_time, reaches back
--   configs: from event_time, reaches back
-- unnamed:
--   preferred_replicas
-- columns:
--   from fetches: cluster_id
--   from topic_names: event_date, event_time
--   from fetches: principal, client_id
--   client_rack STRING: client.rack, or the rack that conf gives its address or id
--   is_rack_inferred BOOLEAN: client_rack is that of conf: the consumer sends none
--   rack_source STRING: how client_rack is known: request (client.rack of a FETCH), address (conf's
--     racks) or client_id (claimed by the client id, by conf's rack_patterns); null: it is not
--     known, or the row is older
--   topic_id STRING: id of the topic; null: requests have its name, and nothing has its id
--   topic STRING: name of the topic; null: no request, answer or snapshot has a name of topic_id
--     yet
--   from replicas: partition
--   broker_id INT: broker that answered
--   broker_rack STRING: broker.rack of it
--   api_version INT: least version of the FETCHes; below 11 they have no rack
--   fetches BIGINT: answers with records
--   bytes BIGINT: record bytes in them, as compressed by the producer
--   redirects BIGINT: answers that name a preferred replica, and have no records
--   preferred_read_replica INT: the last one that answers name
--   leader_id INT: broker that leads the partition
--   leader_rack STRING: broker.rack of the leader
--   expected_replica INT: broker the leader should send the consumer to by its
--     replica.selector.class and the client.rack sent, the leader itself included; null: not known,
--     see eligibility
--   expected_reason STRING: why: no_selector, selector_unknown (a custom class), no_client_rack,
--     leader_in_rack, follower_in_rack, no_replica_in_rack or not_eligible_in_rack (those there are
--     out of sync or offline); null: not known
--   recommended_replica INT: broker to read from if the selector were Kafka's
--     RackAwareReplicaSelector and the consumer sent client_rack
--   recommended_reason STRING: why, in the words of expected_reason
--   eligible_replicas ARRAY<INT>: followers in client_rack that are in sync and online, of which
--     Kafka names the one with the most records; null unless recommended_reason is follower_in_rack
--   cross_rack_bytes BIGINT: bytes, where client_rack and broker_rack differ; null: one of them is
--     not known
--   avoidable_bytes BIGINT: those of them that recommended_replica would have kept in the rack;
--     null: not known
--   hw_lag BIGINT: highest high watermark in the leader's answers of the minute, less the highest
--     that this broker sent this consumer; null: it is the leader, or the leader sent none
--   eligibility STRING: known; offsets_unknown: several replicas of the rack are in sync, and which
--     of them has most is in no log; or what no snapshot has by then: replicas_unknown,
--     leader_unknown, selector_unseen, racks_unknown
--   is_before_snapshot BOOLEAN: the minute was before the first snapshot; null: replicas_unknown

-- Which replica consumers read from, and which one is nearest, minute by minute (KIP-392).
-- `racks` and `rack_patterns` are conf's. Clients that send no rack get theirs from them.
-- Followers' fetches count for one thing: the high watermarks that the leader reports to them.
WITH answered AS (
    SELECT
        cluster_id, broker_id, event_time AS answered_at, partitions, weight_of(weight) AS weight,
        replica_id IS NULL AS is_consumer,
        if(is_consumer, principal, NULL) AS principal,
        if(is_consumer, client_id, NULL) AS client_id,
        if(is_consumer, api_version, NULL) AS api_version,
        if(is_consumer, rack_id, NULL) AS declared_rack,
        if(is_consumer, client_address, NULL) AS client_address
    FROM fetches
),
-- A row: a partition of an answer.
each AS (
    SELECT
        a.* EXCLUDE (partitions, client_address),
        floored(answered_at, 60) AS event_time,
        coalesce(declared_rack, r.rack) AS client_rack,
        if(declared_rack IS NULL, r.source, 'request') AS rack_source,
        unnest(partitions) AS part
    FROM answered a
    LEFT JOIN inferred_racks(fetches, racks, rack_patterns) r
        ON r.client_address IS NOT DISTINCT FROM a.client_address
        AND r.client_id IS NOT DISTINCT FROM a.client_id
),
-- A row: what a client got of a partition from a broker in a minute, by the answers' topic names.
summed AS (
    SELECT
        cluster_id, event_time, event_time + INTERVAL 1 MINUTE AS minute_end,
        part.topic AS topic, part.topic_id AS topic_id, part."partition" AS "partition",
        broker_id, is_consumer, principal, client_id, declared_rack, client_rack,
        max(rack_source) AS rack_source,
        min(api_version) AS api_version,
        coalesce(sum(weight) FILTER (part.bytes > 0), 0) AS answers_with_records,
        coalesce(sum(part.bytes * weight), 0) AS bytes,
        coalesce(sum(weight) FILTER (part.preferred_read_replica >= 0), 0) AS redirects,
        max({answered_at: answered_at, broker_id: part.preferred_read_replica})
            FILTER (part.preferred_read_replica >= 0) AS last_redirect,
        max(part.high_watermark) AS high_watermark
    FROM each
    WHERE coalesce(part.error_code, 0) = 0
    GROUP BY ALL
),
-- The same, with both the name and the id of each topic: few rows are left to look up.
by_topic AS (
    SELECT
        cluster_id, event_time, minute_end, topic, topic_id, "partition",
        broker_id, is_consumer, principal, client_id, declared_rack, client_rack,
        max(rack_source) AS rack_source,
        min(api_version) AS api_version,
        sum(answers_with_records) AS answers_with_records,
        sum(bytes) AS bytes,
        sum(redirects) AS redirects,
        max(last_redirect).broker_id AS preferred_read_replica,
        max(high_watermark) AS high_watermark
    FROM with_topics(summed, topics, topics_by_id)
    GROUP BY ALL
),
-- A row: the highest high watermark that a broker reports of a partition in a minute.
high_watermarks AS (
    SELECT
        cluster_id, event_time, topic, topic_id, "partition", broker_id,
        max(high_watermark) AS high_watermark
    FROM by_topic
    GROUP BY ALL
),
readers AS (
    FROM by_topic WHERE is_consumer AND (answers_with_records > 0 OR redirects > 0)
),
-- A row: a partition at the end of a minute, with the replicas that snapshots have of it.
assignments AS (
    SELECT
        r.cluster_id, r.topic_id, r."partition", r.minute_end, r.leader_id,
        list({
            broker_id: r.broker_id, rack: b.rack, is_rack_known: coalesce(b.is_known, false),
            is_leader: is_leader, is_in_sync: is_in_sync, is_offline: is_offline,
            snapshot_time: snapshot_time}
            ORDER BY assigned_since, r.broker_id) AS assigned
    FROM replicas_at(readers, replicas) r
    ASOF LEFT JOIN broker_racks b
        ON b.cluster_id = r.cluster_id AND b.broker_id = r.broker_id AND r.minute_end > b.since
    GROUP BY ALL
),
broker_configs AS (
    SELECT *, int_or_null(entity_name) AS broker_id
    FROM with_since(configs)
    WHERE entity_type = 'broker'
),
-- From when snapshots have configs of a broker.
configs_since AS (
    SELECT cluster_id, broker_id, min(since) AS since FROM broker_configs GROUP BY ALL
),
selectors AS (
    SELECT cluster_id, broker_id, since, max(config_value) FILTER (NOT is_removed) AS selector
    FROM broker_configs
    WHERE config_key = 'replica.selector.class'
    GROUP BY ALL
),
-- A row: a reader, with all that its choice depends on.
read AS (
    SELECT
        r.*, a.assigned, a.leader_id, s.selector, b.rack AS broker_rack,
        list_filter(a.assigned, lambda replica: replica.broker_id = a.leader_id)[1] AS leader,
        coalesce(c.since < r.minute_end, false) AS is_selector_known,
        TRY(w.high_watermark - r.high_watermark) AS behind_leader
    FROM readers r
    LEFT JOIN assignments a
        ON a.cluster_id = r.cluster_id AND a.topic_id = r.topic_id
        AND a."partition" = r."partition" AND a.minute_end = r.minute_end
    LEFT JOIN configs_since c ON c.cluster_id = r.cluster_id AND c.broker_id = a.leader_id
    LEFT JOIN high_watermarks w
        ON w.cluster_id = r.cluster_id AND w.event_time = r.event_time
        AND w.topic IS NOT DISTINCT FROM r.topic AND w.topic_id IS NOT DISTINCT FROM r.topic_id
        AND w."partition" = r."partition" AND w.broker_id = a.leader_id
    ASOF LEFT JOIN selectors s
        ON s.cluster_id = r.cluster_id AND s.broker_id = a.leader_id AND r.minute_end > s.since
    ASOF LEFT JOIN broker_racks b
        ON b.cluster_id = r.cluster_id AND b.broker_id = r.broker_id AND r.minute_end > b.since
),
chosen AS (
    SELECT
        *,
        if(is_selector_known, choice_reason(leader, assigned, selector, declared_rack), NULL)
            AS expected_reason,
        choice_reason(leader, assigned,
            'org.apache.kafka.common.replica.RackAwareReplicaSelector', client_rack)
            AS recommended_reason,
        eligible_in(assigned, client_rack) AS eligible,
        own_rack <> broker_rack AS is_cross_rack
    FROM with_own_rack(read, known_racks)
)
SELECT
    cluster_id, CAST(event_time AS DATE) AS event_date, event_time, principal, client_id,
    client_rack, declared_rack IS NULL AND client_rack IS NOT NULL AS is_rack_inferred,
    rack_source, topic_id, topic, "partition", broker_id, broker_rack, api_version,
    answers_with_records AS fetches, bytes, redirects, preferred_read_replica,
    leader_id, leader.rack AS leader_rack,
    chosen_replica(expected_reason, leader, assigned, declared_rack) AS expected_replica,
    expected_reason,
    chosen_replica(recommended_reason, leader, assigned, client_rack) AS recommended_replica,
    recommended_reason,
    if(recommended_reason = 'follower_in_rack', list_sort(eligible), NULL) AS eligible_replicas,
    CASE WHEN is_cross_rack THEN bytes WHEN NOT is_cross_rack THEN 0 END AS cross_rack_bytes,
    -- Bytes that the recommended replica would have kept in the rack.
    CASE
        WHEN NOT is_cross_rack THEN 0
        WHEN is_cross_rack AND recommended_reason IN ('leader_in_rack', 'follower_in_rack')
            THEN bytes
        WHEN is_cross_rack AND recommended_reason IS NOT NULL THEN 0
    END AS avoidable_bytes,
    CASE WHEN broker_id <> leader_id AND behind_leader IS NOT NULL THEN greatest(behind_leader, 0)
    END AS hw_lag,
    CASE
        WHEN assigned IS NULL THEN 'replicas_unknown'
        WHEN leader_id IS NULL THEN 'leader_unknown'
        WHEN NOT is_selector_known THEN 'selector_unseen'
        WHEN recommended_reason IS NULL THEN 'racks_unknown'
        WHEN recommended_reason = 'follower_in_rack' AND len(eligible) > 1 THEN 'offsets_unknown'
        ELSE 'known'
    END AS eligibility,
    list_bool_or([replica.snapshot_time >= minute_end FOR replica IN assigned])
        AS is_before_snapshot
FROM chosen
