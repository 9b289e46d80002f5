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
        CAST(
            TRY_CAST(regexp_extract(event.client_software_version, '^v?([0-9]+)', 1) AS INT)
            AS BIGINT
        ) * 1000000
        + least(
            coalesce(
                TRY_CAST(
                    regexp_extract(event.client_software_version, '^v?[0-9]+[.]([0-9]+)', 1)
                    AS INT
                ),
                0
            ),
            999
        ) * 1000
        + least(
            coalesce(
                TRY_CAST(
                    regexp_extract(
                        event.client_software_version, '^v?[0-9]+[.][0-9]+[.]([0-9]+)', 1
                    ) AS INT
                ),
                0
            ),
            999
        ) AS version_number,
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
    INNER JOIN newest ON event.cluster_id = newest.cluster_id
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
    INNER JOIN newest ON event.cluster_id = newest.cluster_id
    WHERE unix_millis(event.event_time) > unix_millis(newest.event_time) - 86400000
    UNION ALL
    SELECT
        event.cluster_id, event.principal, event.client_id, event.topic, CAST(NULL AS STRING),
        event.broker_id, event.event_time, 'diverged', event.diverged_answers + 0
    FROM offset_lookups AS event
    INNER JOIN newest ON event.cluster_id = newest.cluster_id
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
advised AS (
    SELECT
        counted.*,
        software.client_software_name,
        software.client_software_version,
        CASE
            WHEN counted.answers_leader_has > 0 THEN 'align_log_starts'
            WHEN counted.spin_answers > 0 THEN 'update_client'
            WHEN counted.redirect_loop_answers > 0 AND counted.failed_redirect_answers = 0
                THEN 'update_client'
            WHEN counted.answers_none_has > 0 THEN 'extend_retention'
            WHEN counted.too_large_answers > 0 THEN 'check_offsets'
            WHEN counted.lagging_minutes > 0
                AND software.client_software_name = 'apache-kafka-java'
                AND TRY_CAST(split_part(software.client_software_version, '.', 1) AS INT) * 1000
                    + TRY_CAST(split_part(software.client_software_version, '.', 2) AS INT)
                    -- Confluent's 7.4.0-ccs is Kafka 3.4.0.
                    < CASE
                        WHEN software.client_software_version LIKE '%-ccs'
                            OR software.client_software_version LIKE '%-ce'
                            THEN 7004
                        ELSE 3004
                    END
                THEN 'update_client'
            WHEN counted.unavailable_answers + counted.failed_redirect_answers
                    + counted.lagging_minutes > 0
                OR counted.uncommitted_answers >= 10
                THEN 'check_replication'
            WHEN counted.stale_metadata_answers >= 10 THEN 'refresh_metadata'
        END AS advice
    FROM counted
    LEFT JOIN software
        ON counted.cluster_id = software.cluster_id
            AND (counted.principal IS NOT DISTINCT FROM software.principal)
            AND (counted.client_id IS NOT DISTINCT FROM software.client_id)
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
    advised.cluster_id,
    advised.principal,
    advised.client_id,
    advised.topic,
    advised.unnamed_topic_id,
    advised.client_software_name,
    advised.client_software_version,
    advised.advice,
    places.broker_id,
    advised.first_seen,
    advised.last_seen,
    advised.uncommitted_answers,
    advised.unavailable_answers,
    advised.too_small_answers,
    advised.answers_leader_has,
    advised.too_large_answers,
    advised.unknown_answers,
    advised.redirect_loop_answers,
    advised.failed_redirect_answers,
    advised.spin_answers,
    advised.stale_metadata_answers,
    advised.other_error_answers,
    advised.resets,
    advised.diverged_answers,
    advised.lagging_minutes,
    advised.lagging_minutes > 0 AS stays_on_lagging_follower
FROM advised
LEFT JOIN places
    ON advised.cluster_id = places.cluster_id
        AND (advised.principal IS NOT DISTINCT FROM places.principal)
        AND (advised.client_id IS NOT DISTINCT FROM places.client_id)
        AND (advised.topic IS NOT DISTINCT FROM places.topic)
        AND (advised.unnamed_topic_id IS NOT DISTINCT FROM places.unnamed_topic_id)
        AND places.nth = 1
