-- kind: answer
-- grain: one row per client and topic that could not be read as it should, over the last day
-- area: racks
-- level: sampled_log
-- question: Failing reads. Which consumers cannot read as they should, and why?
-- description: What goes wrong when consumers read (KIP-392, cases 1 to 4), how often, and what to
--   do. See fetch_faults, offset_resets, offset_lookups and lagging_reads for the single events.
-- key: cluster_id, principal, client_id, topic, unnamed_topic_id
-- time: last_seen
-- clustering: last_seen, principal
-- lookbacks:
--   fetch_faults: 2 d
--   offset_lookups: 2 d
--   preferred_replicas: 1 d
--   request_times: 2 d
-- columns:
--   from requests: cluster_id, principal, client_id
--   topic STRING: name of the topic; null: not known
--   unnamed_topic_id STRING: id of the topic if its name is not known; null otherwise
--   client_software_name STRING: client library; null: no fetch fault shows it
--   client_software_version STRING: its version, the least of several by number; null: no fetch
--     fault shows it
--   advice STRING: the first that fits: align_log_starts (the leader has what a follower deleted),
--     update_client (it requests a refused offset again and again, returns to the leader instead of
--     going where it is sent, or is a Java client before 3.4, which stays on a lagging follower:
--     KAFKA-14379; its last hour has the version still), extend_retention (it reads too late: the leader deleted the records too),
--     check_offsets (past the end of the leader: offsets of another topic, or lost records),
--     check_replication (broker_id lags) or refresh_metadata (the broker it fetches from no longer
--     leads); null: the rest heals by itself
--   broker_id INT: broker where most of what the advice is about happened; null: no advice
--   first_seen TIMESTAMP: first minute with a problem
--   last_seen TIMESTAMP: last minute with a problem
--   uncommitted_answers BIGINT: case 1: answers for an offset past the high watermark
--   unavailable_answers BIGINT: case 2: answers for an offset past the end of the follower that
--     other replicas have
--   too_small_answers BIGINT: case 3: answers for an offset before the log start of the replica
--   answers_leader_has BIGINT: those of too_small_answers for an offset that the leader has
--   too_large_answers BIGINT: case 4: answers for an offset past the end of the leader
--   unknown_answers BIGINT: answers for an offset out of range, where the case is not known
--   redirect_loop_answers BIGINT: answers that sent a connection to a replica, if it was sent three
--     times or more in a minute
--   failed_redirect_answers BIGINT: errors, in the minute of such a loop, of the replica that the
--     client was sent to
--   spin_answers BIGINT: answers that refused an offset to a connection, if it requested this offset
--     three times or more in a minute
--   stale_metadata_answers BIGINT: errors of a broker that does not lead the partition or not know
--     the topic any more
--   other_error_answers BIGINT: answers with another error
--   resets BIGINT: lookups of an offset to read from after one was out of range (offset_resets)
--   diverged_answers BIGINT: answers to epoch checks that name another epoch: the log was truncated
--     there (KIP-320)
--   lagging_minutes BIGINT: minutes on a follower that fell further and further behind
--   stays_on_lagging_follower BOOLEAN: lagging_minutes is above 0

WITH newest AS (
    SELECT cluster_id, max(event_time) AS event_time
    FROM (
        SELECT cluster_id, event_time FROM fetch_faults
        UNION ALL
        SELECT cluster_id, event_time FROM offset_lookups
    ) AS times
    GROUP BY cluster_id
),
faults AS (
    SELECT
        event.*,
        CASE WHEN event.topic IS NULL THEN event.topic_id END AS unnamed_topic_id,
        version_number(event.client_software_version) AS version_number,
        CASE
            WHEN event.fault IN (
                'not_leader_or_follower', 'replica_not_available', 'leader_not_available',
                'fenced_leader_epoch', 'unknown_leader_epoch', 'unknown_topic_or_partition',
                'unknown_topic_id', 'inconsistent_topic_id'
            ) THEN 'stale_metadata'
            WHEN event.fault NOT IN (
                'uncommitted_offset', 'unavailable_offset', 'offset_too_small', 'offset_too_large',
                'out_of_range_unknown', 'redirect_loop', 'out_of_range_spin'
            ) THEN 'other_error'
            ELSE event.fault
        END AS measure
    FROM fetch_faults AS event
    INNER JOIN newest USING (cluster_id)
    WHERE unix_millis(event.event_time) > unix_millis(newest.event_time) - 86400000
),
measured AS (
    SELECT
        cluster_id, principal, client_id, topic, unnamed_topic_id, broker_id, event_time, measure,
        answers AS amount
    FROM faults
    UNION ALL
    SELECT
        cluster_id, principal, client_id, topic, unnamed_topic_id, broker_id, event_time,
        CASE WHEN answers_leader_has > 0 THEN 'answers_leader_has' ELSE 'answers_none_has' END,
        CASE WHEN answers_leader_has > 0 THEN answers_leader_has ELSE answers END
    FROM faults
    WHERE fault = 'offset_too_small' AND answers_leader_has IS NOT NULL
    UNION ALL
    SELECT
        sent.cluster_id, sent.principal, sent.client_id, sent.topic, sent.unnamed_topic_id,
        sent.preferred_read_replica, sent.event_time, 'failed_redirect', came.answers + 0
    FROM faults AS sent
    INNER JOIN faults AS came
        ON sent.cluster_id = came.cluster_id
            AND sent.event_time = came.event_time
            AND (sent.topic IS NOT DISTINCT FROM came.topic)
            AND (sent.unnamed_topic_id IS NOT DISTINCT FROM came.unnamed_topic_id)
            AND sent.partition = came.partition
            AND sent.preferred_read_replica = came.broker_id
            AND (sent.principal IS NOT DISTINCT FROM came.principal)
            AND (sent.client_id IS NOT DISTINCT FROM came.client_id)
    WHERE
        sent.fault = 'redirect_loop'
        AND came.fault NOT IN ('redirect_loop', 'out_of_range_spin', 'uncommitted_offset')
    UNION ALL
    SELECT
        event.cluster_id, event.principal, event.client_id, event.topic, CAST(NULL AS STRING),
        event.broker_id, event.event_time, 'reset', event.requests + 0
    FROM offset_resets AS event
    INNER JOIN newest USING (cluster_id)
    WHERE unix_millis(event.event_time) > unix_millis(newest.event_time) - 86400000
    UNION ALL
    SELECT
        event.cluster_id, event.principal, event.client_id, event.topic, CAST(NULL AS STRING),
        event.broker_id, event.event_time, 'diverged', event.diverged_answers + 0
    FROM offset_lookups AS event
    INNER JOIN newest USING (cluster_id)
    WHERE
        event.diverged_answers > 0
        AND event.replica_id IS NULL
        AND unix_millis(event.event_time) > unix_millis(newest.event_time) - 86400000
    UNION ALL
    SELECT
        cluster_id, principal, client_id, topic, CASE WHEN topic IS NULL THEN topic_id END, broker_id,
        last_seen, 'lagging', lagging_minutes + 0
    FROM lagging_reads
),
counted AS (
    SELECT
        cluster_id,
        principal,
        client_id,
        topic,
        unnamed_topic_id,
        min(event_time) AS first_seen,
        max(event_time) AS last_seen,
        sum(CASE WHEN measure = 'uncommitted_offset' THEN amount ELSE 0 END) AS uncommitted_answers,
        sum(CASE WHEN measure = 'unavailable_offset' THEN amount ELSE 0 END) AS unavailable_answers,
        sum(CASE WHEN measure = 'offset_too_small' THEN amount ELSE 0 END) AS too_small_answers,
        sum(CASE WHEN measure = 'answers_leader_has' THEN amount ELSE 0 END) AS answers_leader_has,
        sum(CASE WHEN measure = 'answers_none_has' THEN amount ELSE 0 END) AS answers_none_has,
        sum(CASE WHEN measure = 'offset_too_large' THEN amount ELSE 0 END) AS too_large_answers,
        sum(CASE WHEN measure = 'out_of_range_unknown' THEN amount ELSE 0 END) AS unknown_answers,
        sum(CASE WHEN measure = 'redirect_loop' THEN amount ELSE 0 END) AS redirect_loop_answers,
        sum(CASE WHEN measure = 'failed_redirect' THEN amount ELSE 0 END) AS failed_redirect_answers,
        sum(CASE WHEN measure = 'out_of_range_spin' THEN amount ELSE 0 END) AS spin_answers,
        sum(CASE WHEN measure = 'stale_metadata' THEN amount ELSE 0 END) AS stale_metadata_answers,
        sum(CASE WHEN measure = 'other_error' THEN amount ELSE 0 END) AS other_error_answers,
        sum(CASE WHEN measure = 'reset' THEN amount ELSE 0 END) AS resets,
        sum(CASE WHEN measure = 'diverged' THEN amount ELSE 0 END) AS diverged_answers,
        sum(CASE WHEN measure = 'lagging' THEN amount ELSE 0 END) AS lagging_minutes
    FROM measured
    GROUP BY cluster_id, principal, client_id, topic, unnamed_topic_id
),
software AS (
    SELECT
        cluster_id,
        principal,
        client_id,
        max(client_software_name) AS client_software_name,
        max(version_number) AS greatest_number,
        -- By number, as in client_versions: 2.9.0 is before 2.10.0.
        (
            min(
                named_struct(
                    'number', coalesce(version_number, 9000000000000000),
                    'version', client_software_version
                )
            )
        ).version AS client_software_version
    FROM faults
    GROUP BY cluster_id, principal, client_id
),
timed AS (
    SELECT
        *,
        max(event_time) OVER (PARTITION BY cluster_id, principal, client_id) AS last_seen
    FROM request_times
    WHERE api = 'FETCH'
),
used AS (
    SELECT cluster_id, principal, client_id, explode(software) AS library
    FROM timed
    WHERE event_time > last_seen - INTERVAL '1' HOUR
),
newest_versions AS (
    SELECT
        cluster_id,
        principal,
        client_id,
        min(version_number(library.version)) AS version_number
    FROM used
    GROUP BY cluster_id, principal, client_id
),
known AS (
    SELECT
        counted.*,
        software.client_software_name,
        software.client_software_version,
        -- A client that was updated since has a greater version in its last hour.
        coalesce(newest_versions.version_number > software.greatest_number, FALSE) AS is_updated
    FROM counted
    LEFT JOIN software
        ON counted.cluster_id = software.cluster_id
            AND (counted.principal IS NOT DISTINCT FROM software.principal)
            AND (counted.client_id IS NOT DISTINCT FROM software.client_id)
    LEFT JOIN newest_versions
        ON counted.cluster_id = newest_versions.cluster_id
            AND (counted.principal IS NOT DISTINCT FROM newest_versions.principal)
            AND (counted.client_id IS NOT DISTINCT FROM newest_versions.client_id)
),
advised AS (
    SELECT
        *,
        CASE
            WHEN answers_leader_has > 0 THEN 'align_log_starts'
            WHEN spin_answers > 0 AND NOT is_updated THEN 'update_client'
            WHEN redirect_loop_answers > 0 AND failed_redirect_answers = 0 AND NOT is_updated
                THEN 'update_client'
            WHEN answers_none_has > 0 THEN 'extend_retention'
            WHEN too_large_answers > 0 THEN 'check_offsets'
            WHEN lagging_minutes > 0
                AND NOT is_updated
                AND client_software_name = 'apache-kafka-java'
                AND TRY_CAST(split_part(client_software_version, '.', 1) AS INT) * 1000
                    + TRY_CAST(split_part(client_software_version, '.', 2) AS INT)
                    -- Confluent's 7.4.0-ccs is Kafka 3.4.0.
                    < CASE
                        WHEN client_software_version LIKE '%-ccs'
                            OR client_software_version LIKE '%-ce'
                            THEN 7004
                        ELSE 3004
                    END
                THEN 'update_client'
            WHEN unavailable_answers + failed_redirect_answers + lagging_minutes > 0
                OR uncommitted_answers >= 10
                THEN 'check_replication'
            WHEN stale_metadata_answers >= 10 THEN 'refresh_metadata'
        END AS advice
    FROM known
),
places AS (
    SELECT
        advised.cluster_id,
        advised.principal,
        advised.client_id,
        advised.topic,
        advised.unnamed_topic_id,
        measured.broker_id,
        row_number() OVER (
            PARTITION BY
                advised.cluster_id, advised.principal, advised.client_id, advised.topic,
                advised.unnamed_topic_id
            ORDER BY sum(measured.amount) DESC, measured.broker_id
        ) AS nth
    FROM advised
    INNER JOIN measured
        ON advised.cluster_id = measured.cluster_id
            AND (advised.principal IS NOT DISTINCT FROM measured.principal)
            AND (advised.client_id IS NOT DISTINCT FROM measured.client_id)
            AND (advised.topic IS NOT DISTINCT FROM measured.topic)
            AND (advised.unnamed_topic_id IS NOT DISTINCT FROM measured.unnamed_topic_id)
    WHERE CASE advised.advice
        WHEN 'align_log_starts' THEN measured.measure = 'answers_leader_has'
        WHEN 'update_client'
            THEN measured.measure IN ('out_of_range_spin', 'redirect_loop', 'lagging')
        WHEN 'extend_retention' THEN measured.measure = 'answers_none_has'
        WHEN 'check_offsets' THEN measured.measure = 'offset_too_large'
        WHEN 'check_replication' THEN measured.measure IN (
            'unavailable_offset', 'uncommitted_offset', 'failed_redirect', 'lagging'
        )
        WHEN 'refresh_metadata' THEN measured.measure = 'stale_metadata'
        ELSE FALSE
    END
    GROUP BY
        advised.cluster_id, advised.principal, advised.client_id, advised.topic,
        advised.unnamed_topic_id, measured.broker_id
)

SELECT
    *,
    advised.cluster_id,
    advised.principal,
    advised.client_id,
    advised.topic,
    advised.unnamed_topic_id,
    advised.lagging_minutes > 0 AS stays_on_lagging_follower
FROM advised
LEFT JOIN places
    ON advised.cluster_id = places.cluster_id
        AND (advised.principal IS NOT DISTINCT FROM places.principal)
        AND (advised.client_id IS NOT DISTINCT FROM places.client_id)
        AND (advised.topic IS NOT DISTINCT FROM places.topic)
        AND (advised.unnamed_topic_id IS NOT DISTINCT FROM places.unnamed_topic_id)
        AND places.nth = 1
