-- kind: answer
-- grain: one row per broker, group or topic, symptom, time and cause
-- area: requests
-- level: admin_api
-- description: What is wrong with brokers, with groups that rebalance and with replicas of
--   topics, and why, one row {per}. A broker is slow for two or more clients that are half of
--   those that send it requests of the same APIs. Members of a group stop too often if it
--   rebalances five times, at most ten minutes apart, and more than twice for each member, as a
--   restart of all of them would, and if they stop for a tenth of that time. A replica counts if
--   it is not in sync, no move adds it, and its leader has not reported it in sync since the
--   last snapshot.
-- empty: while no broker, group or topic suffers
-- key: cluster_id, subject_kind, group_id, topic, broker_id, symptom, since, rank
-- time: since
-- clustering: since, subject_kind
-- lookbacks:
--   pipeline_progress: 7 d
-- columns:
--   from client_diagnoses: cluster_id
--   subject_kind STRING: broker, group or topic
--   group_id STRING: group that rebalances; null: another subject
--   topic STRING: topic with replicas that are not in sync; null: another subject
--   broker_id INT: broker that is slow; null: another subject
--   symptom STRING: slow, rebalances, unavailable (a partition has no leader), under_min_isr (fewer
--     replicas in sync than min.insync.replicas) or under_replicated
--   since TIMESTAMP: start of the symptom; of replicas when the first of them was out of sync, as
--     current_replicas has it, or when a snapshot saw it first
--   until TIMESTAMP: end of the symptom, or when it was last known
--   is_ongoing BOOLEAN: it was there when the cluster's tables end
--   requests BIGINT: requests to that broker of the clients that wait; null: another symptom
--   waited_ms DOUBLE: mean wait of these requests, in ms; null: another symptom
--   rank INT: 1 for the cause that explains most
--   cause STRING: of a broker as in client_diagnoses; of rebalances as trigger of rebalances, or
--     poll_interval; of replicas broker_down, log_dir_down or follower_behind
--   share DOUBLE: part of the symptom that the cause explains, 0 to 1: of the wait, the rebalances
--     or the replicas
--   confidence DOUBLE: 0.5 to 0.9, how well the evidence supports the cause; null: it is not known
--   detail STRING: broker of the cause, client that takes its time, or client that makes the group
--     rebalance; null: not known
--   evidence ARRAY<STRUCT<signal: STRING, value: DOUBLE>>: the numbers that the cause rests on
--   facts ARRAY<STRUCT<fact: STRING, text: STRING>>: names that belong to the cause: the clients
--     that wait; or the first partition with its leader and the replicas in sync

WITH waits AS (
    -- A row is a cause that a client has at one broker. What is its own load is no fault of the broker.
    SELECT
        cluster_id,
        CAST(
            array_max(
                transform(evidence, x -> CASE x.signal WHEN 'broker_id' THEN x.value END)
            ) AS INT
        ) AS broker_id,
        array_max(
            transform(evidence, x -> CASE x.signal WHEN 'broker_clients' THEN x.value END)
        ) AS broker_clients,
        concat(principal, ' ', coalesce(client_id, '')) AS client,
        coalesce(client_id, principal) AS client_name,
        since,
        until,
        known_until,
        api,
        array_max(
            transform(evidence, x -> CASE x.signal WHEN 'broker_requests' THEN x.value END)
        ) AS requests,
        array_max(
            transform(evidence, x -> CASE x.signal WHEN 'broker_waited_ms' THEN x.value END)
        ) AS waited_ms,
        cause,
        share,
        confidence,
        detail,
        evidence,
        facts
    FROM client_diagnoses
    WHERE
        symptom = 'slow'
        AND cause IN (
            'noisy_neighbour', 'busy_broker', 'stalled_broker', 'slow_broker', 'busy_network'
        )
),
begun_waits AS (
    SELECT
        *,
        requests * waited_ms AS waited,
        requests * waited_ms * share AS explained,
        CASE
            WHEN unix_micros(since) - unix_micros(max(until) OVER (
                PARTITION BY cluster_id, broker_id
                ORDER BY since, until, client, api
                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            )) <= 600000000 THEN 0
            ELSE 1
        END AS is_start
    FROM waits
    WHERE broker_id IS NOT NULL
),
broker_waits AS (
    SELECT
        *,
        sum(is_start) OVER (
            PARTITION BY cluster_id, broker_id ORDER BY since, until, client, api
        ) AS episode
    FROM begun_waits
),
episode_waits AS (
    -- A wait has a row for each of its causes.
    SELECT cluster_id, broker_id, episode, sum(waited) AS all_waited
    FROM (
        SELECT DISTINCT cluster_id, broker_id, episode, client, api, since, waited FROM broker_waits
    ) AS waits
    GROUP BY cluster_id, broker_id, episode
),
api_clients AS (
    -- A client that waits in two APIs counts in each.
    SELECT cluster_id, broker_id, episode, cause, sum(broker_clients) AS broker_clients
    FROM (
        SELECT cluster_id, broker_id, episode, cause, api, max(broker_clients) AS broker_clients
        FROM broker_waits
        GROUP BY cluster_id, broker_id, episode, cause, api
    ) AS by_api
    GROUP BY cluster_id, broker_id, episode, cause
),
broker_causes AS (
    SELECT
        cluster_id,
        broker_id,
        episode,
        cause,
        min(since) AS since,
        max(until) AS until,
        max(known_until) AS known_until,
        CAST(sum(requests) AS BIGINT) AS requests,
        sum(waited) AS waited,
        sum(explained) AS explained,
        max(confidence) AS confidence,
        max_by(detail, waited) AS detail,
        count(DISTINCT concat(api, ' ', client)) AS hit,
        max(api_clients.broker_clients) AS broker_clients,
        array_join(slice(array_sort(collect_set(client_name)), 1, 10), ', ') AS names,
        max_by(evidence, waited) AS evidence,
        max_by(facts, waited) AS facts
    FROM broker_waits
    INNER JOIN api_clients USING (cluster_id, broker_id, episode, cause)
    GROUP BY cluster_id, broker_id, episode, cause
    HAVING
        count(DISTINCT client) >= 2
        AND count(DISTINCT concat(api, ' ', client)) * 2 >= max(api_clients.broker_clients)
),
changes AS (
    SELECT
        cluster_id,
        group_id,
        group_type,
        started_at,
        ended_at,
        stopped_ms,
        members,
        CASE WHEN reason LIKE '%poll timeout%' THEN 'poll_interval' ELSE trigger END AS cause,
        trigger_client_id,
        CASE
            WHEN unix_micros(started_at) - unix_micros(max(ended_at) OVER (
                PARTITION BY cluster_id, group_id, group_type
                ORDER BY started_at, group_epoch
                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            )) <= 600000000 THEN 0
            ELSE 1
        END AS is_start,
        group_epoch
    FROM rebalances
),
numbered_changes AS (
    SELECT
        *,
        sum(is_start) OVER (
            PARTITION BY cluster_id, group_id, group_type ORDER BY started_at, group_epoch
        ) AS episode
    FROM changes
),
storms AS (
    SELECT
        cluster_id,
        group_id,
        group_type,
        episode,
        min(started_at) AS since,
        max(ended_at) AS until,
        count(*) AS rebalances,
        sum(stopped_ms) AS stopped_ms,
        max(members) AS members
    FROM numbered_changes
    GROUP BY cluster_id, group_id, group_type, episode
    HAVING
        count(*) >= 5
        AND count(*) > 2 * max(members)
        AND sum(stopped_ms) * 1e4 >= unix_micros(max(ended_at)) - unix_micros(min(started_at))
),
storm_causes AS (
    SELECT
        cluster_id, group_id, group_type, episode, cause,
        sum(rebalances) AS of_cause,
        max_by(trigger_client_id, rebalances) AS client_id
    FROM (
        SELECT
            cluster_id, group_id, group_type, episode, cause, trigger_client_id,
            count(*) AS rebalances
        FROM numbered_changes
        GROUP BY cluster_id, group_id, group_type, episode, cause, trigger_client_id
    ) AS by_client
    GROUP BY cluster_id, group_id, group_type, episode, cause
),
group_ends AS (
    SELECT cluster_id, max(known_at) AS known_until
    FROM (
        SELECT cluster_id, position_known_at AS known_at FROM group_lag
        UNION ALL
        SELECT cluster_id, ended_at AS known_at FROM rebalances
    ) AS times
    GROUP BY cluster_id
),
min_isr AS (
    SELECT
        cluster_id,
        max(CASE WHEN entity_type = 'topic' THEN entity_name END) AS topic,
        max(CAST(config_value AS BIGINT)) AS min_in_sync
    FROM current_configs
    WHERE config_key = 'min.insync.replicas' AND entity_type IN ('topic', 'broker')
    GROUP BY cluster_id, entity_type, CASE WHEN entity_type = 'topic' THEN entity_name END
),
partitions AS (
    SELECT
        cluster_id,
        topic_id,
        topic,
        partition,
        count(*) AS replicas,
        count(CASE WHEN is_in_sync THEN 1 END) AS in_sync,
        max(CASE WHEN is_leader THEN broker_id END) AS leader_id,
        array_join(
            array_sort(collect_set(CASE WHEN is_in_sync THEN CAST(broker_id AS STRING) END)), ', '
        ) AS isr
    FROM current_replicas
    GROUP BY cluster_id, topic_id, topic, partition
),
moves AS (
    SELECT cluster_id, topic, partition, broker_id
    FROM (
        SELECT
            *,
            row_number() OVER (
                PARTITION BY cluster_id, topic, partition, broker_id ORDER BY event_time DESC
            ) AS age
        FROM moving_replicas
    ) AS aged
    WHERE age = 1 AND NOT is_removed AND role = 'adding'
    UNION
    SELECT cluster_id, topic, partition, replica_id AS broker_id
    FROM reassignments
    WHERE state NOT IN ('done', 'in_place', 'cancelled')
),
came_back AS (
    SELECT cluster_id, topic_id, partition, replica_id AS broker_id, max(event_time) AS event_time
    FROM reassignment_changes
    WHERE change = 'in_sync' AND error_code IN (0, 108)
    GROUP BY cluster_id, topic_id, partition, replica_id
),
snapshots AS (
    SELECT cluster_id, max(last_taken) AS taken_at
    FROM snapshot_times
    WHERE table_name = 'replicas'
    GROUP BY cluster_id
),
missing AS (
    -- A row is a replica that should serve and does not.
    SELECT
        replicas.cluster_id,
        replicas.topic_id,
        replicas.topic,
        replicas.partition,
        replicas.broker_id,
        coalesce(replicas.since, replicas.valid_from) AS since,
        partitions.replicas,
        partitions.in_sync,
        partitions.leader_id,
        partitions.isr,
        coalesce(of_topic.min_in_sync, of_brokers.min_in_sync, 1) AS min_in_sync,
        CASE
            WHEN partitions.leader_id IS NULL THEN 'unavailable'
            WHEN partitions.in_sync < coalesce(of_topic.min_in_sync, of_brokers.min_in_sync, 1)
                THEN 'under_min_isr'
            ELSE 'under_replicated'
        END AS symptom,
        CASE
            WHEN brokers.is_fenced OR (brokers.broker_id IS NULL AND known.cluster_id IS NOT NULL)
                THEN 'broker_down'
            WHEN replicas.is_offline THEN 'log_dir_down'
            ELSE 'follower_behind'
        END AS cause
    FROM current_replicas AS replicas
    INNER JOIN partitions USING (cluster_id, topic_id, partition)
    LEFT JOIN current_brokers AS brokers
        ON replicas.cluster_id = brokers.cluster_id AND replicas.broker_id = brokers.broker_id
    LEFT JOIN (SELECT DISTINCT cluster_id FROM current_brokers) AS known
        ON replicas.cluster_id = known.cluster_id
    LEFT JOIN min_isr AS of_topic
        ON replicas.cluster_id = of_topic.cluster_id AND replicas.topic = of_topic.topic
    LEFT JOIN min_isr AS of_brokers
        ON replicas.cluster_id = of_brokers.cluster_id AND of_brokers.topic IS NULL
    LEFT JOIN moves
        ON replicas.cluster_id = moves.cluster_id
            AND replicas.topic = moves.topic
            AND replicas.partition = moves.partition
            AND replicas.broker_id = moves.broker_id
    LEFT JOIN snapshots ON replicas.cluster_id = snapshots.cluster_id
    LEFT JOIN came_back
        ON replicas.cluster_id = came_back.cluster_id
            AND replicas.topic_id = came_back.topic_id
            AND replicas.partition = came_back.partition
            AND replicas.broker_id = came_back.broker_id
            AND replicas.valid_from < came_back.event_time
            -- What a later snapshot saw counts more.
            AND (snapshots.taken_at IS NULL OR came_back.event_time > snapshots.taken_at)
    WHERE
        moves.broker_id IS NULL
        AND came_back.broker_id IS NULL
        AND (
            NOT replicas.is_in_sync
            OR (partitions.leader_id IS NULL AND replicas.is_offline)
        )
),
replica_causes AS (
    SELECT
        cluster_id,
        topic,
        symptom,
        cause,
        broker_id,
        min(since) AS since,
        count(*) AS partitions,
        min(
            named_struct(
                'partition', partition, 'leader_id', leader_id, 'isr', isr, 'in_sync', in_sync,
                'replicas', replicas, 'min_in_sync', min_in_sync
            )
        ) AS first
    FROM missing
    GROUP BY cluster_id, topic, symptom, cause, broker_id
)
SELECT
    *,
    'broker' AS subject_kind,
    CAST(NULL AS STRING) AS group_id,
    CAST(NULL AS STRING) AS topic,
    'slow' AS symptom,
    min(since) OVER of_broker AS since,
    max(until) OVER of_broker AS until,
    unix_micros(max(until) OVER of_broker) >= unix_micros(known_until) - 120000000 AS is_ongoing,
    waited / requests AS waited_ms,
    CAST(row_number() OVER (
        PARTITION BY cluster_id, broker_id, episode ORDER BY explained DESC, cause
    ) AS INT) AS rank,
    explained / all_waited AS share,
    concat(
        filter(evidence, x -> x.signal <> 'broker_clients'),
        array(
            named_struct('signal', 'clients_hit', 'value', CAST(hit AS DOUBLE)),
            named_struct('signal', 'broker_clients', 'value', CAST(broker_clients AS DOUBLE))
        )
    ) AS evidence,
    concat(
        coalesce(facts, array()), array(named_struct('fact', 'hit', 'text', names))
    ) AS facts
FROM broker_causes
INNER JOIN episode_waits USING (cluster_id, broker_id, episode)
WINDOW of_broker AS (PARTITION BY cluster_id, broker_id, episode)
UNION ALL
SELECT
    storms.*,
    'group' AS subject_kind,
    NULL AS topic,
    NULL AS broker_id,
    'rebalances' AS symptom,
    unix_micros(storms.until) >= unix_micros(group_ends.known_until) - 600000000 AS is_ongoing,
    NULL AS requests,
    NULL AS waited_ms,
    CAST(row_number() OVER (
        PARTITION BY storms.cluster_id, storms.group_id, storms.group_type, storms.episode
        ORDER BY causes.of_cause DESC, causes.cause
    ) AS INT) AS rank,
    causes.cause,
    causes.of_cause * 1e0 / storms.rebalances AS share,
    CASE WHEN causes.cause <> 'unknown' THEN 0.9e0 END AS confidence,
    causes.client_id AS detail,
    array(
        named_struct('signal', 'rebalances', 'value', CAST(storms.rebalances AS DOUBLE)),
        named_struct('signal', 'of_cause', 'value', CAST(causes.of_cause AS DOUBLE)),
        named_struct('signal', 'stopped_ms', 'value', CAST(storms.stopped_ms AS DOUBLE)),
        named_struct('signal', 'members', 'value', CAST(storms.members AS DOUBLE))
    ) AS evidence,
    NULL AS facts
FROM storms
INNER JOIN storm_causes AS causes USING (cluster_id, group_id, group_type, episode)
LEFT JOIN group_ends USING (cluster_id)
UNION ALL
SELECT
    causes.*,
    'topic' AS subject_kind,
    NULL AS group_id,
    NULL AS broker_id,
    min(causes.since) OVER of_topic AS since,
    coalesce(snapshots.taken_at, max(causes.since) OVER of_topic) AS until,
    TRUE AS is_ongoing,
    NULL AS requests,
    NULL AS waited_ms,
    CAST(row_number() OVER (
        PARTITION BY causes.cluster_id, causes.topic, causes.symptom
        ORDER BY causes.partitions DESC, causes.cause, causes.broker_id
    ) AS INT) AS rank,
    causes.partitions * 1e0 / sum(causes.partitions) OVER of_topic AS share,
    CASE causes.cause
        WHEN 'broker_down' THEN 0.9e0
        WHEN 'log_dir_down' THEN 0.8e0
        ELSE 0.6e0
    END AS confidence,
    CAST(causes.broker_id AS STRING) AS detail,
    array(
        named_struct('signal', 'partitions', 'value', CAST(causes.partitions AS DOUBLE)),
        named_struct('signal', 'in_sync', 'value', CAST(causes.first.in_sync AS DOUBLE)),
        named_struct('signal', 'replicas', 'value', CAST(causes.first.replicas AS DOUBLE)),
        named_struct('signal', 'min_in_sync', 'value', CAST(causes.first.min_in_sync AS DOUBLE))
    ) AS evidence,
    array(
        named_struct('fact', 'partition', 'text', CAST(causes.first.partition AS STRING)),
        named_struct('fact', 'leader', 'text', CAST(causes.first.leader_id AS STRING)),
        named_struct('fact', 'isr', 'text', causes.first.isr)
    ) AS facts
FROM replica_causes AS causes
LEFT JOIN snapshots USING (cluster_id)
WINDOW of_topic AS (PARTITION BY causes.cluster_id, causes.topic, causes.symptom)
