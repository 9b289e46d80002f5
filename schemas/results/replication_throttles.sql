-- kind: result
-- grain: one row per minute and side of the replication of each partition that is listed or being
--   moved, and one without a topic for a rate that is set where no list names the broker
-- area: replication
-- level: sampled_log
-- question: Replication throttles. Which replication throttles are set now, and do they limit?
-- description: Whether a replication throttle (KIP-73) limits, and why not: one row {per}
-- key: cluster_id, event_time, topic, partition, side, broker_id, peer_broker_id
-- time: event_time
-- partitioning: event_date
-- facts: requests
-- relevant: api = 'PRODUCE' OR (api = 'FETCH' AND replica_id IS NOT NULL) OR api IN
--   ('INCREMENTAL_ALTER_CONFIGS', 'ALTER_CONFIGS', 'CREATE_TOPICS', 'DELETE_TOPICS', 'METADATA',
--   'DESCRIBE_TOPIC_PARTITIONS', 'CREATE_TOPICS') OR api IN ('ALTER_PARTITION',
--   'ALTER_PARTITION_REASSIGNMENTS')
-- bucket: 1 min
-- runs_forward: yes
-- lookups:
--   config_alterations: changes nothing
--   configs: from event_time, reaches back
--   topic_names: changes nothing
--   topics: changes nothing
--   replication_traffic: changes nothing, within the time
--   replication_rates: changes nothing, within the time
--   reassignment_changes: changes nothing
--   replicas: from event_time
--   brokers: from event_time, reaches back
-- unnamed:
--   replication_traffic
--   reassignment_changes
-- columns:
--   from topic_names: cluster_id, event_date, event_time, topic
--   from replication_traffic: partition
--   from replication_rates: side
--   broker_id INT: broker that is listed, or whose rate it is
--   peer_broker_id INT: broker at the other side; null: none in the minute
--   listed STRING: entry, wildcard (the list is *), or unlisted
--   list_malformed STRING: entries of the list that mean nothing, if there are
--   list_set_at TIMESTAMP: when the list was set; null: not in the log
--   list_set_by STRING: principal that did so
--   list_set_by_client_id STRING: its client.id: untrusted text
--   rate DOUBLE: rate that was set in the minute, in bytes per second; null: none is known
--   rate_source STRING: dynamic_broker, dynamic_default, static (which has no effect), or unset;
--     null: not known: it is older than the log, if it is set, and there is no snapshot
--   rate_set_at TIMESTAMP: when the rate was set; null: not in the log
--   rate_set_by STRING: principal that did so
--   rate_set_by_client_id STRING: its client.id: untrusted text
--   is_configured BOOLEAN: the list, or without one the rate, was set at the end of the minute
--   is_moving BOOLEAN: the partition was being moved (KIP-455)
--   in_isr BOOLEAN: the follower was in sync all minute; null: not known
--   in_isr_source STRING: source of in_isr: fetch_offset (it requested an offset below the high
--     watermark), alter_partition, or snapshot
--   offset_lag BIGINT: how many offsets the follower was behind; null: not known
--   bytes BIGINT: record bytes replicated between the two
--   peak_throttled_rate DOUBLE: highest throttled_rate of the broker and side, or 0
--   stalled_fetches BIGINT: evidence: as in replication_traffic, by the side
--   is_effective BOOLEAN: would limit as soon as the rate is reached; null: not known, see reason
--   is_biting BOOLEAN: the rate is reached and fetches stall
--   reason STRING: why it does not bite: no_throttle, rate_without_list, list_without_rate,
--     static_rate_ignored, broker_gone, not_leader, not_replicating, in_isr, follower_caught_up,
--     under_rate, no_stalled_fetches; or what is not known: list_unknown, rate_unknown,
--     isr_unknown, lag_unknown

-- Whether replication throttles limit (KIP-73), and why not: one row per minute and side of the
-- replication of each partition that is listed or being moved, and one without a topic for a rate
-- of a broker that no list names.
WITH minutes AS (
    SELECT DISTINCT
        cluster_id, floored(event_time, 60) AS event_time,
        floored(event_time, 60) + INTERVAL 1 MINUTE AS minute_end
    FROM requests
),
sides(side) AS (VALUES ('leader'), ('follower')),
-- One row per side of what a follower read from a leader in a minute.
pairs AS (
    SELECT
        cluster_id, event_time, topic, "partition", side,
        if(side = 'leader', leader_id, follower_id) AS broker_id,
        if(side = 'leader', follower_id, leader_id) AS peer_broker_id,
        max(topic_id) AS topic_id, max(offset_lag) AS offset_lag, sum(bytes) AS bytes,
        sum(behind_fetches) AS behind_fetches,
        -- The evidence of a leader's throttle, and of a follower's.
        sum(if(side = 'leader', stalled_fetches, omitted_fetches)) AS stalled_fetches
    FROM replication_traffic, sides
    WHERE follower_id IS NOT NULL AND topic IS NOT NULL AND fetches > 0
    GROUP BY ALL
),
-- Lists of throttled replicas over time.
lists AS (
    SELECT *, entity_name AS topic, trim(value) AS list
    FROM throttle_configs
    WHERE entity_type = 'topic'
),
-- Lists that a topic had in a minute, if only for a moment, with their elements.
lists_of_minutes AS (
    SELECT
        m.*, topic, side, n, list = '*' AS is_wildcard,
        set_at AS list_set_at, set_by AS list_set_by, set_by_client_id AS list_set_by_client_id,
        coalesce(l.until >= minute_end, true) AS is_list_configured,
        if(is_wildcard, [], distinct_of(parts_of(list))) AS elements,
        throttled_entries(elements) AS entries
    FROM minutes m
    JOIN lists l USING (cluster_id)
    WHERE l.since < minute_end AND coalesce(l.until > m.event_time, true) AND list <> ''
),
-- One row per entry of such a list. `*`, and a list of nothing but malformed elements, has one row
-- without a broker.
entries_of_lists AS (
    SELECT
        * EXCLUDE (elements, entries), unnest(or_null(entries)) AS entry,
        list_text([e FOR e IN elements IF NOT list_contains(entries, e)]) AS malformed
    FROM lists_of_minutes
),
-- Of several values of a list in the minute, the last that has the entry.
entries AS (
    SELECT
        * EXCLUDE (entry, malformed), if(is_wildcard, 'wildcard', 'entry') AS listed,
        int_or_null(split_part(entry, ':', 1)) AS "partition",
        int_or_null(split_part(entry, ':', 2)) AS broker_id,
        nullif(left(malformed, 300), '') AS list_malformed
    FROM entries_of_lists
    QUALIFY row_number() OVER (
        PARTITION BY cluster_id, event_time, topic, side, is_wildcard, entry ORDER BY n DESC
    ) = 1
),
-- What lists name: an entry with each peer of its broker, `*` with each pair of the topic.
listed_sides AS (
    SELECT
        e.*, p.* EXCLUDE (cluster_id, event_time, topic, "partition", side, broker_id),
        broker_id IS NOT NULL AS is_listed
    FROM entries e
    LEFT JOIN pairs p USING (cluster_id, event_time, topic, "partition", side, broker_id)
    WHERE NOT is_wildcard
    UNION ALL BY NAME
    SELECT e.* EXCLUDE ("partition", broker_id),
        p.* EXCLUDE (cluster_id, event_time, topic, side), true AS is_listed
    FROM entries e
    LEFT JOIN pairs p USING (cluster_id, event_time, topic, side)
    WHERE is_wildcard
),
-- One row per minute and move that was going on in it.
moves_of_minutes AS (
    SELECT m.*, topic, "partition", target_replicas
    FROM minutes m
    JOIN moves v ON v.cluster_id = m.cluster_id AND v.since < minute_end
        AND coalesce(v.until > m.event_time, true)
),
-- Partitions that are being moved in a minute.
moved_partitions AS (
    SELECT DISTINCT cluster_id, event_time, topic, "partition", true AS is_moving
    FROM moves_of_minutes
),
-- Topics and sides of which the log or a snapshot shows whether they have lists.
known_lists AS (
    SELECT cluster_id, topic, side, false AS is_listed FROM lists
    UNION
    SELECT cluster_id, topic, side, false AS is_listed
    FROM (SELECT DISTINCT cluster_id FROM configs WHERE entity_type IN ('topic', 'broker'))
    JOIN (SELECT DISTINCT cluster_id, topic, side FROM pairs) USING (cluster_id)
),
-- Replication that a move needs and no list names. is_listed is null where that is not known.
unlisted_sides AS (
    SELECT DISTINCT minute_end, p.*, is_listed, if(is_listed IS NULL, NULL, 'unlisted') AS listed
    FROM pairs p
    JOIN moves_of_minutes USING (cluster_id, event_time, topic, "partition")
    LEFT JOIN known_lists USING (cluster_id, topic, side)
    ANTI JOIN listed_sides l
        USING (cluster_id, event_time, topic, "partition", side, broker_id, peer_broker_id)
    WHERE list_contains(target_replicas, if(side = 'follower', broker_id, peer_broker_id))
        AND (behind_fetches > 0 OR offset_lag > 0)
),
-- Brokers that replicate, or that the log or a snapshot names with a rate.
rated_brokers AS (
    SELECT cluster_id, int_or_null(entity_name) AS broker_id
    FROM (
        SELECT cluster_id, entity_type, entity_name, config_key FROM config_alterations
        UNION ALL
        SELECT cluster_id, entity_type, entity_name, config_key FROM configs
    )
    WHERE entity_type = 'broker'
        AND config_key IN
            ('leader.replication.throttled.rate', 'follower.replication.throttled.rate')
    UNION
    SELECT cluster_id, broker_id FROM pairs
),
-- Sides of brokers that no list names: each may have a rate all the same.
rated_sides AS (
    SELECT m.*, broker_id, side, false AS is_listed, 'unlisted' AS listed
    FROM minutes m
    JOIN rated_brokers USING (cluster_id)
    CROSS JOIN sides
    ANTI JOIN (FROM listed_sides WHERE is_listed) l
        USING (cluster_id, event_time, side, broker_id)
    WHERE broker_id IS NOT NULL
),
-- All rows of the result so far, numbered.
all_sides AS MATERIALIZED (
    SELECT *, row_number() OVER (
        ORDER BY cluster_id, event_time, side, broker_id, peer_broker_id, topic, "partition",
            listed, list_set_at
    ) AS id
    FROM (
        FROM listed_sides
        UNION ALL BY NAME
        FROM unlisted_sides
        UNION ALL BY NAME
        FROM rated_sides
    )
    LEFT JOIN moved_partitions USING (cluster_id, event_time, topic, "partition")
),
rates AS (FROM throttle_rates),
brokers_with_rates AS (SELECT DISTINCT cluster_id, side, broker_id FROM rates),
-- Sides with the last rate that their broker had in the minute.
sides_with_rates AS (
    SELECT
        s.*, r.rate, r.rate_source, r.set_at AS rate_set_at, r.set_by AS rate_set_by,
        r.set_by_client_id AS rate_set_by_client_id,
        coalesce(r.until >= minute_end, true) AND r.since IS NOT NULL AS is_rate_configured
    FROM all_sides s
    LEFT JOIN brokers_with_rates b USING (cluster_id, side, broker_id)
    LEFT JOIN rates r ON r.cluster_id = s.cluster_id AND r.side = s.side
        AND r.broker_id IS NOT DISTINCT FROM b.broker_id
        AND r.since < minute_end AND coalesce(r.until > s.event_time, true)
    QUALIFY row_number() OVER (PARTITION BY id ORDER BY r.since DESC) = 1
        -- Without a list, only a rate that brokers obey is worth a row.
        AND (s.topic IS NOT NULL OR starts_with(r.rate_source, 'dynamic'))
),
-- Since when snapshots know a broker's configs: a rate that they do not show is not set.
brokers_with_configs AS (
    SELECT cluster_id, int_or_null(entity_name) AS broker_id, min(since) AS configs_since
    FROM (
        SELECT *, since_of(event_time, min(event_time) OVER (PARTITION BY cluster_id)) AS since
        FROM configs
        WHERE entity_type = 'broker'
    )
    GROUP BY ALL
),
-- The highest rate of a broker's side in a minute.
peaks AS (
    SELECT
        cluster_id, floored(event_time, 60) AS event_time, broker_id, side,
        max(throttled_rate) AS peak_rate
    FROM replication_rates
    GROUP BY ALL
),
-- Partitions that a follower read in a minute: some broker leads them.
led_partitions AS (
    SELECT DISTINCT cluster_id, event_time, topic, "partition", true AS has_leader FROM pairs
),
-- Whether brokers are in the cluster, from `since` on, by snapshots.
broker_states AS (
    SELECT cluster_id, broker_id, since, bool_or(NOT is_removed) AS is_there
    FROM (
        SELECT *, since_of(event_time, min(event_time) OVER (PARTITION BY cluster_id)) AS since
        FROM brokers
    )
    GROUP BY ALL
),
-- Since when snapshots know a cluster's brokers.
clusters_with_brokers AS (
    SELECT cluster_id, min(since) AS brokers_since FROM broker_states GROUP BY ALL
),
-- The follower of each side that replicates.
followers AS (
    SELECT
        id, cluster_id, topic_id, "partition", event_time, minute_end,
        if(side = 'follower', broker_id, peer_broker_id) AS follower_id
    FROM sides_with_rates
    WHERE topic_id IS NOT NULL
),
-- One row per period, of the log or of snapshots, in which a follower was in sync or not.
sync_periods AS (
    SELECT
        id, event_time, since, list_contains(isr, follower_id) AS is_in_sync,
        'alter_partition' AS source
    FROM followers f
    JOIN isr_periods p USING (cluster_id, topic_id, "partition")
    WHERE p.since < minute_end AND coalesce(p.until > event_time, true)
    UNION ALL
    SELECT id, event_time, since, is_in_sync, 'snapshot' AS source
    FROM followers f
    JOIN replica_periods p ON p.cluster_id = f.cluster_id AND p.topic_id = f.topic_id
        AND p.partition = f.partition AND p.broker_id = f.follower_id
    WHERE p.since < minute_end AND coalesce(p.until > event_time, true)
),
-- In sync all minute, by the newer of log and snapshots. Null where the start is not known.
sync_states AS (
    SELECT
        id, source,
        CASE WHEN NOT bool_and(is_in_sync) THEN false
            WHEN min(since) <= event_time THEN true END AS is_in_sync
    FROM sync_periods
    GROUP BY id, event_time, source
    QUALIFY row_number() OVER (PARTITION BY id ORDER BY max(since) DESC, source) = 1
),
-- One row per side with all that the reason depends on.
evidence AS (
    SELECT
        s.* REPLACE (
            coalesce(rate_source, if(configs_since < minute_end, 'unset', NULL)) AS rate_source,
            coalesce(is_moving, false) AS is_moving,
            coalesce(stalled_fetches, 0) AS stalled_fetches
        ),
        coalesce(peak_rate, 0.0) AS peak_rate,
        peer_broker_id IS NOT NULL AS is_replicating,
        coalesce(has_leader, false) AS has_other_leader,
        peer_broker_id IS NULL AND s.broker_id IS NOT NULL AND NOT coalesce(is_there, false)
            AND coalesce(brokers_since < minute_end, false) AS is_broker_removed,
        coalesce(behind_fetches > 0, false) AS is_behind,
        -- No replica in sync fetches from below the high watermark.
        if(is_behind, false, is_in_sync) AS in_isr,
        if(is_behind, 'fetch_offset', source) AS in_isr_source,
        is_behind OR offset_lag > 0 AS is_lagging
    FROM sides_with_rates s
    LEFT JOIN brokers_with_configs USING (cluster_id, broker_id)
    LEFT JOIN peaks USING (cluster_id, event_time, broker_id, side)
    LEFT JOIN led_partitions USING (cluster_id, event_time, topic, "partition")
    LEFT JOIN clusters_with_brokers USING (cluster_id)
    LEFT JOIN sync_states USING (id)
    ASOF LEFT JOIN broker_states b ON b.cluster_id = s.cluster_id AND b.broker_id = s.broker_id
        AND s.minute_end > b.since
),
reasons AS (
    SELECT
        *,
        throttle_reason(side, is_listed, rate_source, is_broker_removed, is_replicating,
            has_other_leader, in_isr, is_lagging, peak_rate, rate, stalled_fetches) AS reason
    FROM evidence
)
SELECT
    cluster_id, CAST(event_time AS DATE) AS event_date, event_time, topic, "partition", side,
    broker_id, peer_broker_id, listed, list_malformed,
    list_set_at, list_set_by, list_set_by_client_id,
    rate, rate_source, rate_set_at, rate_set_by, rate_set_by_client_id,
    coalesce(is_list_configured, is_rate_configured) AS is_configured,
    is_moving, in_isr, in_isr_source, offset_lag, bytes, peak_rate AS peak_throttled_rate,
    stalled_fetches, throttle_is_effective(reason) AS is_effective,
    throttle_is_biting(reason) AS is_biting, reason
FROM reasons
