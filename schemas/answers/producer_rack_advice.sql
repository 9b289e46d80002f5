-- kind: answer
-- grain: one row per step that would keep produced bytes in their rack (KIP-1123), over the last
--   day, of producers that send more than a tenth of a topic to other racks
-- area: racks
-- level: sampled_log
-- question: Writes across racks. What keeps produced bytes in their own rack?
-- description: Steps that a producer did not need in its last hour are left out: it was changed since.
--   So are producers of brokers and of this pipeline (protected_principals.is_internal).
-- empty: while producers' racks are not known, or they send little to other racks
-- key: cluster_id, advice, principal, client_id, topic, unnamed_topic_id, client_rack
-- time: until
-- clustering: until, advice
-- first: saved_bytes_per_hour, bytes_per_hour
-- lookbacks:
--   traffic: 2 d
--   client_metrics: 2 d
--   request_times: 2 d
--   fetch_sizes: 7 d
-- columns:
--   from brokers: cluster_id
--   advice STRING: unknown_rack (no broker has the rack that the producer names: nearest_racks),
--     set_producer_rack (no metrics of it name a rack, and partitions of the topic are led
--     in its rack), choose_partitions (the same, and its library is not Kafka's for Java, so it
--     has no partitioner.rack.aware), check_producer (it names its rack, and sends elsewhere) or
--     move_leaders (the topic has replicas in the rack, and no leader; never by a rack that a client
--     id claims)
--   principal STRING: producer, as Kafka prints it; null: move_leaders
--   client_id STRING: its client.id: untrusted text; null: move_leaders
--   client_software_name STRING: client library (KIP-511); null: not known, there are several, or
--     move_leaders
--   client_software_version STRING: its version in its last hour, the least of several by number;
--     null as client_software_name
--   rack_awareness STRING: rack_aware (every version of that hour has partitioner.rack.aware: Kafka's for
--     Java from 4.4, Confluent's from 8.4) or too_old; null: not known
--   topic STRING: topic that is produced to; null: not known
--   unnamed_topic_id STRING: id of the topic if its name is not known; null otherwise
--   client_rack STRING: rack of the producers
--   rack_source STRING: how it is known: telemetry, address or client_id (claimed by the client id)
--   nearest_racks STRING: unknown_rack: the rack that is meant, or all that may be, with commas;
--     null for other steps
--   leaders BIGINT: partitions of the topic that are led in this rack
--   bytes_per_hour DOUBLE: record bytes produced, per hour of the last day
--   saved_bytes BIGINT: those that crossed racks: the most that can be saved.
--     Records with a key stay with their partition, and no request shows which have one
--   saved_bytes_per_hour DOUBLE: saved_bytes per hour of the last day
--   is_small BOOLEAN: saved_bytes_per_hour is less than 10 MB: no problem and no needless_costs
--   saved_cost_per_hour DOUBLE: cost of saved_bytes_per_hour, in currency; null: conf has no price
--   currency STRING: currency of the prices, as conf names it
--   since TIMESTAMP: first minute with such bytes
--   until TIMESTAMP: last minute with such bytes
--   lasted_ms BIGINT: time from the first minute to the end of the last, in ms

WITH racked AS (
    SELECT
        replicas.cluster_id,
        replicas.topic,
        replicas.topic_id,
        brokers.rack,
        sum(CASE WHEN replicas.is_leader THEN 1 ELSE 0 END) AS leaders,
        sum(CASE WHEN replicas.is_in_sync AND NOT replicas.is_offline THEN 1 ELSE 0 END) AS replicas
    FROM current_replicas AS replicas
    INNER JOIN current_brokers AS brokers USING (cluster_id, broker_id)
    WHERE brokers.rack IS NOT NULL
    GROUP BY replicas.cluster_id, replicas.topic, replicas.topic_id, brokers.rack
),
timed AS (
    SELECT
        *,
        max(event_time) OVER (PARTITION BY cluster_id, principal, client_id) AS last_seen
    FROM request_times
    WHERE api = 'PRODUCE'
),
used AS (
    SELECT cluster_id, principal, client_id, explode(software) AS library
    FROM timed
    -- A client that was upgraded since has the version of its last hour.
    WHERE event_time > last_seen - INTERVAL '1' HOUR
),
versions AS (
    SELECT
        *,
        library.name AS library_name,
        library.version AS library_version,
        -- Confluent counts its own way: 8.4.0-ccs, or -ce with its server, is Kafka 4.4.0.
        TRY_CAST(split_part(library.version, '.', 1) AS INT) * 1000
        + TRY_CAST(split_part(library.version, '.', 2) AS INT)
        - CASE
            WHEN library.version LIKE '%-ccs' OR library.version LIKE '%-ce' THEN 4000
            ELSE 0
        END AS number
    FROM used
    WHERE library.name <> 'unknown'
),
ordered AS (
    SELECT
        *,
        row_number() OVER (
            PARTITION BY cluster_id, principal, client_id
            ORDER BY number NULLS LAST, library_version
        ) AS nth
    FROM versions
),
libraries AS (
    SELECT
        cluster_id,
        principal,
        client_id,
        min(library_name) AS client_software_name,
        max(CASE WHEN nth = 1 THEN library_version END) AS client_software_version,
        CASE
            WHEN count(number) = count(*) AND min(library_name) = 'apache-kafka-java'
                THEN CASE WHEN min(number) >= 4004 THEN 'rack_aware' ELSE 'too_old' END
        END AS rack_awareness
    FROM ordered
    GROUP BY cluster_id, principal, client_id
    HAVING count(DISTINCT library_name) = 1
),
crossing AS (
    SELECT
        sent.*,
        libraries.client_software_name,
        libraries.client_software_version,
        libraries.rack_awareness,
        coalesce(racked.leaders, 0) AS leaders,
        coalesce(racked.replicas, 0) AS replicas
    FROM producer_racks AS sent
    LEFT JOIN racked
        ON sent.cluster_id = racked.cluster_id
            AND sent.client_rack = racked.rack
            AND (sent.topic = racked.topic OR sent.unnamed_topic_id = racked.topic_id)
    LEFT JOIN libraries
        ON sent.cluster_id = libraries.cluster_id
            AND sent.principal = libraries.principal
            AND (sent.client_id IS NOT DISTINCT FROM libraries.client_id)
    LEFT JOIN protected_principals AS internal
        ON sent.cluster_id = internal.cluster_id
            AND sent.principal = internal.principal
            AND internal.is_internal
    WHERE
        (
            (
                sent.cross_rack_bytes * 10 > sent.bytes
                AND sent.last_hour_cross_bytes * 10 > sent.last_hour_bytes
            )
            OR (sent.nearest_racks IS NOT NULL AND sent.last_hour_bytes > 0)
        )
        AND internal.principal IS NULL
),
advised AS (
    SELECT
        *,
        CASE
            WHEN nearest_racks IS NOT NULL THEN 'unknown_rack'
            WHEN leaders > 0 AND coalesce(client_software_name, '') NOT IN ('', 'apache-kafka-java')
                THEN 'choose_partitions'
            WHEN leaders > 0 AND configured_rack IS NULL THEN 'set_producer_rack'
            WHEN leaders > 0 THEN 'check_producer'
            WHEN replicas > 0 AND rack_source <> 'client_id' THEN 'move_leaders'
        END AS advice
    FROM crossing
),
steps AS (
    SELECT
        *,
        CASE WHEN advice <> 'move_leaders' THEN principal END AS of_principal,
        CASE WHEN advice <> 'move_leaders' THEN client_id END AS of_client_id
    FROM advised
    WHERE advice IS NOT NULL
),
summed AS (
    SELECT
        cluster_id,
        advice,
        of_principal,
        of_client_id,
        topic,
        unnamed_topic_id,
        client_rack,
        max(rack_source) AS rack_source,
        max(CASE WHEN advice <> 'move_leaders' THEN client_software_name END)
            AS client_software_name,
        max(CASE WHEN advice <> 'move_leaders' THEN client_software_version END)
            AS client_software_version,
        max(CASE WHEN advice <> 'move_leaders' THEN rack_awareness END) AS rack_awareness,
        max(nearest_racks) AS nearest_racks,
        max(leaders) AS leaders,
        sum(bytes) AS bytes,
        sum(cross_rack_bytes) AS cross_rack_bytes,
        min(first_seen) AS since,
        max(last_seen) AS until,
        (unix_millis(max(until)) - unix_millis(min(since)) + 60000) / 36e5 AS hours
    FROM steps
    GROUP BY cluster_id, advice, of_principal, of_client_id, topic, unnamed_topic_id, client_rack
)

SELECT
    *,
    summed.of_principal AS principal,
    summed.of_client_id AS client_id,
    summed.bytes / summed.hours AS bytes_per_hour,
    summed.cross_rack_bytes AS saved_bytes,
    summed.cross_rack_bytes / summed.hours AS saved_bytes_per_hour,
    summed.cross_rack_bytes / summed.hours < 1e7 AS is_small,
    unix_millis(summed.until) - unix_millis(summed.since) + 60000 AS lasted_ms,
    summed.cross_rack_bytes / summed.hours * prices.cross_rack_per_gib / 1073741824.0
        AS saved_cost_per_hour
FROM summed
LEFT JOIN current_prices AS prices USING (cluster_id)
