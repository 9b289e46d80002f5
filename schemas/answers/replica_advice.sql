-- kind: answer
-- grain: one row per step that would keep consumers' bytes in their rack, over the last day
-- area: racks
-- level: sampled_log
-- question: Reads across racks. Why do consumers not read a near replica, and what keeps their reads in
--   their own rack?
-- description: What to change so that consumers read in their own rack (KIP-392). A byte that crossed
--   racks counts under the first step that fits it; move_leader is beside the other steps. Steps that
--   are done are left out: of a client those that it did not need in its last hour with a topic. So are
--   replicas that would fetch more than they spare. Whether the
--   producers of a partition are in that rack is not known. Reads of brokers and of this pipeline ask for
--   no step (protected_principals.is_internal). A rack that a client id alone claims asks for no step in
--   the cluster: update_client, set_client_rack and check_client only.
-- key: cluster_id, advice, principal, client_id, client_rack, topic, unnamed_topic_id, partition, broker_id
-- time: until
-- clustering: until, advice
-- first: saved_bytes_per_hour, bytes_per_hour
-- lookbacks:
--   preferred_replicas: 2 d
--   traffic: 2 d
--   replication_traffic: 2 d
--   client_metrics: 2 d
--   fetch_sizes: 7 d
-- columns:
--   from preferred_replicas: cluster_id
--   advice STRING: set_broker_rack (a broker that was read from has no broker.rack), unknown_rack (no broker has
--     the rack that the client names: nearest_racks), update_client (its FETCH is
--     older than version 11 and names no rack), place_replica (partitions of the topic have no replica in the
--     rack, whose brokers are not all cordoned: cordoned_brokers), set_selector (the leader has no replica.selector.class), set_client_rack (conf's racks
--     know its rack, the consumer does not name one), check_client (it names its rack and should have
--     been sent there, and a tenth of its bytes was not) or move_leader (more of the partition is read from client_rack than in the
--     leader's rack)
--   principal STRING: consumer that the step is about, as Kafka prints it; null: the step is not about one
--   client_id STRING: its client.id: untrusted text; null: the step is not about one
--   client_rack STRING: rack of the consumers; null: the step is not about one
--   rack_source STRING: how client_rack is known, as in preferred_replicas: the least trusted of its bytes; null:
--     the step is not about a client, or the rows are older
--   nearest_racks STRING: unknown_rack: the rack that is meant, or all that may be, with commas; null for other steps
--   topic STRING: topic of place_replica and move_leader; null: not known, or another step
--   unnamed_topic_id STRING: id of that topic if its name is not known; null otherwise
--   partition INT: partition of move_leader; null for other steps
--   partitions STRING: place_replica: the partitions, with commas, the first twenty; null for other steps
--   broker_id INT: broker of set_broker_rack, leader of set_selector and move_leader; null for other steps
--   bytes_per_hour DOUBLE: record bytes that the step is about, per hour of the last day
--   read_share DOUBLE: part of all bytes that the client read which the step is about, 0 to 1; null: the step is
--     not about a client, or it read none
--   saved_bytes BIGINT: those that would not have crossed racks, less what new replicas would fetch; null:
--     not known
--   saved_bytes_per_hour DOUBLE: saved_bytes per hour of the last day; null: not known
--   replica_bytes_per_hour DOUBLE: place_replica: record bytes produced to the partitions, per hour, that
--     new replicas would fetch; null for other steps
--   is_small BOOLEAN: saved_bytes_per_hour, or bytes_per_hour where that is not known, is less than
--     10 MB: no problem and no needless_costs
--   saved_cost_per_hour DOUBLE: cost of saved_bytes_per_hour, in currency; null: not known
--   currency STRING: currency of the prices, as conf names it
--   least_fetch_version INT: least version of the FETCH requests; below 11 they name no rack
--   redirects BIGINT: answers that named a preferred replica
--   since TIMESTAMP: first minute with such bytes
--   until TIMESTAMP: last minute with such bytes
--   lasted_ms BIGINT: time from the first minute to the end of the last, in ms

WITH newest AS (
    SELECT cluster_id, max(event_time) AS event_time
    FROM preferred_replicas
    GROUP BY cluster_id
),
dated AS (
    SELECT
        reads.*,
        max(reads.event_time) OVER (
            PARTITION BY
                reads.cluster_id, reads.principal, reads.client_id, reads.topic, reads.topic_id
        ) AS last_read
    FROM preferred_replicas AS reads
    INNER JOIN newest USING (cluster_id)
    WHERE unix_millis(reads.event_time) > unix_millis(newest.event_time) - 86400000
),
read AS (
    SELECT
        reads.*,
        CASE WHEN reads.event_time > reads.last_read - INTERVAL '1' HOUR THEN 1 ELSE 0 END
            AS is_in_last_hour,
        CASE WHEN reads.topic IS NULL THEN reads.topic_id END AS unnamed_topic_id,
        coalesce(reads.rack_source, '') = 'client_id' AS is_claimed,
        sum(reads.bytes) OVER (
            PARTITION BY reads.cluster_id, reads.principal, reads.client_id
        ) AS client_bytes,
        row_number() OVER (
            PARTITION BY reads.cluster_id, reads.topic_id, reads.partition
            ORDER BY reads.event_time DESC, coalesce(reads.leader_id, -1) DESC
        ) AS age
    FROM dated AS reads
    LEFT JOIN protected_principals AS internal
        ON reads.cluster_id = internal.cluster_id
            AND reads.principal = internal.principal
            AND internal.is_internal
    WHERE internal.principal IS NULL
),
time_ranges AS (
    SELECT cluster_id, min(event_time) AS since, max(event_time) AS until
    FROM read
    GROUP BY cluster_id
),
unracked AS (
    SELECT cluster_id, broker_id
    FROM current_brokers
    WHERE rack IS NULL
),
full_racks AS (
    SELECT brokers.cluster_id, brokers.rack
    FROM current_brokers AS brokers
    LEFT JOIN cordoned_brokers AS cordoned
        ON brokers.cluster_id = cordoned.cluster_id
            AND brokers.broker_id = cordoned.broker_id
            AND NOT cordoned.takes_replicas
    WHERE brokers.rack IS NOT NULL
    GROUP BY brokers.cluster_id, brokers.rack
    HAVING count(cordoned.broker_id) = count(*)
),
selectors AS (
    SELECT DISTINCT cluster_id, TRY_CAST(entity_name AS INT) AS broker_id
    FROM current_configs
    WHERE entity_type = 'broker' AND config_key = 'replica.selector.class' AND config_value <> ''
),
replica_racks AS (
    SELECT DISTINCT replicas.cluster_id, replicas.topic_id, replicas.partition, brokers.rack
    FROM current_replicas AS replicas
    INNER JOIN current_brokers AS brokers USING (cluster_id, broker_id)
    WHERE brokers.rack IS NOT NULL
),
advised AS (
    SELECT
        read.*,
        CASE
            WHEN unracked.broker_id IS NOT NULL AND read.client_rack IS NOT NULL AND NOT read.is_claimed
                THEN 'set_broker_rack'
            WHEN unknown.client_rack IS NOT NULL AND read.recommended_reason = 'no_replica_in_rack'
                THEN 'unknown_rack'
            WHEN
                read.cross_rack_bytes > 0
                AND read.recommended_reason = 'no_replica_in_rack'
                AND NOT read.is_claimed
                AND full_racks.rack IS NULL
                AND replica_racks.rack IS NULL
                THEN 'place_replica'
            WHEN coalesce(read.avoidable_bytes, 0) = 0 THEN NULL
            WHEN read.api_version < 11 THEN 'update_client'
            WHEN
                read.expected_reason = 'no_selector'
                AND NOT read.is_claimed
                AND selectors.broker_id IS NULL
                THEN 'set_selector'
            WHEN read.is_rack_inferred THEN 'set_client_rack'
            WHEN read.expected_reason IN ('leader_in_rack', 'follower_in_rack') THEN 'check_client'
        END AS advice,
        unknown.nearest_racks
    FROM read
    LEFT JOIN unknown_racks AS unknown USING (cluster_id, client_rack)
    LEFT JOIN unracked USING (cluster_id, broker_id)
    LEFT JOIN full_racks
        ON read.cluster_id = full_racks.cluster_id AND read.client_rack = full_racks.rack
    LEFT JOIN selectors
        ON read.cluster_id = selectors.cluster_id AND read.leader_id = selectors.broker_id
    LEFT JOIN replica_racks
        ON read.cluster_id = replica_racks.cluster_id
            AND read.topic_id = replica_racks.topic_id
            AND read.partition = replica_racks.partition
            AND read.client_rack = replica_racks.rack
),
judged AS (
    SELECT *, advice LIKE '%client%' OR advice = 'unknown_rack' AS is_of_client FROM advised
),
targets AS (
    SELECT
        *,
        CASE WHEN is_of_client THEN principal END AS of_principal,
        CASE WHEN is_of_client THEN client_id END AS of_client_id,
        CASE WHEN is_of_client THEN rack_source END AS of_rack_source,
        CASE WHEN advice NOT IN ('set_broker_rack', 'set_selector') THEN client_rack END AS of_rack,
        CASE WHEN advice = 'place_replica' THEN topic END AS of_topic,
        CASE WHEN advice = 'place_replica' THEN unnamed_topic_id END AS of_topic_id,
        CASE WHEN advice = 'place_replica' THEN partition END AS of_partition,
        CASE
            WHEN advice = 'set_broker_rack' THEN broker_id
            WHEN advice = 'set_selector' THEN leader_id
        END AS of_broker_id,
        CASE
            WHEN advice = 'place_replica' THEN cross_rack_bytes
            WHEN advice NOT IN ('set_broker_rack', 'unknown_rack') THEN avoidable_bytes
        END AS saved_bytes
    FROM judged
    WHERE advice IS NOT NULL
),
racks AS (
    SELECT
        read.cluster_id,
        read.topic,
        read.unnamed_topic_id,
        read.partition,
        read.leader_id,
        read.client_rack,
        sum(CASE WHEN read.client_rack <> read.leader_rack THEN read.avoidable_bytes END) AS abroad,
        sum(read.bytes) AS bytes,
        sum(CASE WHEN read.client_rack = read.leader_rack THEN read.bytes ELSE 0 END) AS at_home,
        min(read.api_version) AS api_version,
        sum(read.redirects) AS redirects,
        min(read.event_time) AS since,
        max(read.event_time) AS until
    FROM read
    INNER JOIN read AS last USING (cluster_id, topic_id, partition, leader_id)
    LEFT JOIN unknown_racks AS unknown
        ON read.cluster_id = unknown.cluster_id AND read.client_rack = unknown.client_rack
    WHERE
        last.age = 1
        AND read.broker_id = read.leader_id
        AND NOT read.is_claimed
        AND unknown.client_rack IS NULL
    GROUP BY ALL
),
leaders AS (
    SELECT
        *,
        abroad - sum(at_home) OVER (
            PARTITION BY cluster_id, topic, unnamed_topic_id, partition, leader_id
        ) AS saved_bytes,
        row_number() OVER (
            PARTITION BY cluster_id, topic, unnamed_topic_id, partition, leader_id
            ORDER BY coalesce(abroad, 0) DESC, client_rack
        ) AS nth
    FROM racks
),
written AS (
    SELECT
        writes.cluster_id,
        writes.topic,
        CASE WHEN writes.topic IS NULL THEN writes.topic_id END AS unnamed_topic_id,
        writes.partition,
        sum(writes.bytes) AS bytes
    FROM replication_traffic AS writes
    INNER JOIN time_ranges
        ON writes.cluster_id = time_ranges.cluster_id
            AND writes.event_time >= time_ranges.since
            AND writes.event_time <= time_ranges.until
    WHERE writes.follower_id IS NULL
    GROUP BY ALL
),
-- A replica is placed for a partition, and fetches all that is produced to it.
of_partitions AS (
    SELECT
        cluster_id, advice, of_principal, of_client_id, of_rack, of_topic, of_topic_id,
        of_partition, of_broker_id,
        max(of_rack_source) AS rack_source,
        max(CASE WHEN advice = 'unknown_rack' THEN nearest_racks END) AS nearest_racks,
        sum(bytes) AS bytes,
        max(CASE WHEN is_of_client THEN client_bytes END) AS client_bytes,
        max(CASE WHEN is_of_client THEN is_in_last_hour ELSE 1 END) AS is_current,
        sum(saved_bytes) AS spared_bytes,
        min(api_version) AS api_version,
        sum(redirects) AS redirects,
        min(event_time) AS since,
        max(event_time) AS until
    FROM targets
    GROUP BY ALL
),
netted AS (
    SELECT
        targets.*,
        CASE WHEN targets.advice = 'place_replica' THEN coalesce(written.bytes, 0) END
            AS replica_bytes
    FROM of_partitions AS targets
    LEFT JOIN written
        ON targets.cluster_id = written.cluster_id
            AND (targets.of_topic IS NOT DISTINCT FROM written.topic)
            AND (targets.of_topic_id IS NOT DISTINCT FROM written.unnamed_topic_id)
            AND targets.of_partition = written.partition
),
steps AS (
    SELECT
        cluster_id,
        advice,
        of_principal AS principal,
        of_client_id AS client_id,
        of_rack AS client_rack,
        max(rack_source) AS rack_source,
        max(nearest_racks) AS nearest_racks,
        of_topic AS topic,
        of_topic_id AS unnamed_topic_id,
        CAST(NULL AS INT) AS partition,
        nullif(
            concat(
                array_join(
                    transform(
                        slice(array_sort(collect_set(of_partition)), 1, 20), x -> CAST(x AS STRING)
                    ),
                    ', '
                ),
                CASE WHEN count(of_partition) > 20 THEN ', ...' ELSE '' END
            ),
            ''
        ) AS partitions,
        of_broker_id AS broker_id,
        sum(bytes) AS bytes,
        max(client_bytes) AS client_bytes,
        sum(spared_bytes - coalesce(replica_bytes, 0)) AS saved_bytes,
        sum(replica_bytes) AS replica_bytes,
        min(api_version) AS api_version,
        sum(redirects) AS redirects,
        min(since) AS since,
        max(until) AS until
    FROM netted
    -- A client that did not need the step in its last hour with a topic was changed since.
    WHERE is_current = 1 AND (advice <> 'place_replica' OR spared_bytes > replica_bytes)
    GROUP BY ALL
    UNION ALL
    SELECT
        cluster_id,
        'move_leader' AS advice,
        CAST(NULL AS STRING) AS principal,
        CAST(NULL AS STRING) AS client_id,
        client_rack,
        CAST(NULL AS STRING) AS rack_source,
        CAST(NULL AS STRING) AS nearest_racks,
        topic,
        unnamed_topic_id,
        partition,
        CAST(NULL AS STRING) AS partitions,
        leader_id AS broker_id,
        bytes,
        CAST(NULL AS BIGINT) AS client_bytes,
        saved_bytes,
        CAST(NULL AS BIGINT) AS replica_bytes,
        api_version,
        redirects,
        since,
        until
    FROM leaders
    WHERE nth = 1 AND saved_bytes > 0
),
hourly AS (
    SELECT
        steps.*,
        (unix_millis(time_ranges.until) - unix_millis(time_ranges.since) + 60000) / 36e5 AS hours
    FROM steps
    INNER JOIN time_ranges USING (cluster_id)
)

SELECT
    *,
    hourly.bytes / hourly.hours AS bytes_per_hour,
    hourly.bytes * 1e0 / nullif(hourly.client_bytes, 0) AS read_share,
    hourly.saved_bytes / hourly.hours AS saved_bytes_per_hour,
    coalesce(hourly.saved_bytes, hourly.bytes) / hourly.hours < 1e7 AS is_small,
    hourly.replica_bytes / hourly.hours AS replica_bytes_per_hour,
    hourly.saved_bytes / hourly.hours * prices.cross_rack_per_gib / 1073741824.0
        AS saved_cost_per_hour,
    hourly.api_version AS least_fetch_version,
    unix_millis(hourly.until) - unix_millis(hourly.since) + 60000 AS lasted_ms
FROM hourly
LEFT JOIN current_prices AS prices USING (cluster_id)
-- A client that reads a tenth or less elsewhere followed (client_racks).
WHERE
    hourly.advice <> 'check_client' OR hourly.bytes > 0.1e0 * coalesce(hourly.client_bytes, 0)
