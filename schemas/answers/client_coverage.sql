-- kind: answer
-- grain: one row per client instance that was there in the week before as_of
-- area: telemetry
-- level: telemetry
-- question: Telemetry coverage. Which client instances push what is asked of them?
-- description: Which pushes of that week its subscription requests (KIP-714), and which came. A
--   push is missing if the next one comes later than 1.5 intervals: counted are whole intervals
--   without a push, each as long as the subscription named at that time, up to the last contact of
--   the client: one that is silent may have ended. Times without metrics in the subscription do not
--   count. Pushes that upkeep deleted do not count as missing: an instance not seen since then is
--   left out, and an older one can be vanished but not never_pushed.
-- key: cluster_id, client_instance_id
-- time: last_seen
-- clustering: last_seen, client_instance_id
-- lookbacks:
--   telemetry_pushes: 7 d
--   telemetry_subscriptions: 7 d
--   pipeline_progress: 14 d
-- columns:
--   from pipeline_progress: cluster_id
--   client_instance_id STRING: client instance id as Kafka prints a Uuid
--   principal STRING: authenticated principal at its last contact, e.g. User:alice
--   client_id STRING: client.id at its last contact: untrusted text
--   client_pattern STRING: client_id with * for numbers and random parts: what instances of one
--     program share
--   client_software_name STRING: client library (KIP-511) at its last contact
--   client_software_version STRING: version of the client library at its last contact
--   client_address STRING: address it connected from at its last contact
--   broker_ids ARRAY<INT>: brokers that it pushed to or requested from, sorted
--   first_seen TIMESTAMP: first push or subscription request
--   last_seen TIMESTAMP: last push or subscription request
--   state STRING: terminated (sent its last push), cut_off (a broker answered 35
--     UNSUPPORTED_VERSION, 42 INVALID_REQUEST or 87 INVALID_RECORD, after which clients stop),
--     refused (each push was refused, or each since one that came more than 1.5 intervals ago),
--     vanished (silent for more than 1.5 intervals), never_pushed (requested its subscription, then
--     silent for as long), or active
--   subscription_requests BIGINT: subscription requests (GetTelemetrySubscriptions)
--   push_interval_ms INT: push interval of its last subscription, in ms
--   accepted_pushes BIGINT: pushes that a broker accepted
--   rejected_pushes BIGINT: pushes that a broker rejected
--   refused_error_code INT: error of its last rejected push; null: none was rejected, or it is not
--     known
--   refused_bytes BIGINT: size of its largest rejected push on the wire; null: not known
--   expected_pushes BIGINT: accepted_pushes + missing_pushes
--   missing_pushes BIGINT: pushes that were due before its last contact, and did not come
--   missing_share DOUBLE: missing_pushes / expected_pushes, 0 to 1; null: none was expected
--   first_push TIMESTAMP: first accepted push
--   last_push TIMESTAMP: last accepted push
--   as_of TIMESTAMP: newest push or subscription request of the cluster

WITH newest AS (
    SELECT cluster_id, max(event_time) AS as_of FROM telemetry_contacts GROUP BY cluster_id
),
retained AS (
    SELECT cluster_id, max(event_time) AS kept_since
    FROM pipeline_progress
    WHERE target = 'telemetry_pushes' AND outcome = 'removed'
    GROUP BY cluster_id
),
gaps AS (
    SELECT
        contacts.*,
        CASE
            WHEN is_push = 0 OR NOT accepted OR elapsed_intervals <= 1.5 THEN 0
            WHEN unix_millis(previous_push) < unix_millis(as_of) - 604800000 THEN 0
            WHEN terminating THEN CAST(floor(elapsed_intervals) AS BIGINT)
            ELSE CAST(round(elapsed_intervals) AS BIGINT) - 1
        END AS missing_before,
        row_number() OVER (
            PARTITION BY contacts.cluster_id, client_instance_id
            ORDER BY event_time DESC, is_push DESC, coalesce(error_code, 0) DESC
        ) AS from_end
    FROM telemetry_contacts AS contacts
    INNER JOIN newest USING (cluster_id)
    WHERE unix_millis(event_time) >= unix_millis(as_of) - 604800000
),
instances AS (
    SELECT
        cluster_id,
        client_instance_id,
        max(CASE WHEN from_end = 1 THEN principal END) AS principal,
        max(CASE WHEN from_end = 1 THEN client_id END) AS client_id,
        max(CASE WHEN from_end = 1 THEN client_software_name END) AS client_software_name,
        max(CASE WHEN from_end = 1 THEN client_software_version END) AS client_software_version,
        max(CASE WHEN from_end = 1 THEN client_address END) AS client_address,
        max(CASE WHEN from_end = 1 THEN interval_ms END) AS push_interval_ms,
        max(CASE WHEN from_end = 1 AND is_subscribed THEN interval_ms END) AS subscribed_interval_ms,
        max(CASE WHEN from_end = 1 AND (is_push = 0 OR NOT accepted) THEN elapsed_intervals END)
            AS elapsed_intervals,
        array_sort(array_agg(DISTINCT broker_id)) AS broker_ids,
        min(event_time) AS first_seen,
        max(event_time) AS last_seen,
        min(CASE WHEN is_push = 1 AND accepted THEN event_time END) AS first_push,
        max(CASE WHEN is_push = 1 AND accepted THEN event_time END) AS last_push,
        max(CASE WHEN is_push = 1 AND accepted AND terminating THEN event_time END) AS terminated,
        max(CASE WHEN error_code IN (35, 42, 87) THEN event_time END) AS refused,
        sum(CASE WHEN is_push = 0 THEN 1 ELSE 0 END) AS subscription_requests,
        sum(CASE WHEN is_push = 1 AND accepted THEN 1 ELSE 0 END) AS accepted_pushes,
        sum(CASE WHEN is_push = 1 AND NOT accepted THEN 1 ELSE 0 END) AS rejected_pushes,
        max(CASE WHEN is_push = 1 AND NOT accepted THEN event_time END) AS last_refused,
        max(
            CASE
                WHEN is_push = 1 AND NOT accepted
                    THEN struct(event_time AS at, error_code AS code)
            END
        ).code AS refused_error_code,
        max(CASE WHEN is_push = 1 AND NOT accepted THEN wire_bytes END) AS refused_bytes,
        -- After 89 THROTTLING_QUOTA_EXCEEDED and 117 UNKNOWN_SUBSCRIPTION_ID a client soon tries again.
        count(CASE WHEN is_push = 1 AND NOT accepted AND error_code IN (89, 117) THEN 1 END)
            AS retried_pushes,
        sum(missing_before) AS missing_within
    FROM gaps
    GROUP BY cluster_id, client_instance_id
),
ended AS (
    SELECT
        instances.*,
        as_of,
        terminated IS NOT NULL AS is_terminated,
        terminated IS NULL AND refused IS NOT NULL
            AND (last_push IS NULL OR last_push < refused) AS is_cut_off,
        last_push IS NULL AND (kept_since IS NULL OR first_seen >= kept_since) AS has_never_pushed,
        last_refused IS NOT NULL
            AND (rejected_pushes > retried_pushes OR rejected_pushes > 2)
            AND (
                last_push IS NULL
                OR (
                    last_refused > last_push
                    AND unix_millis(as_of) - unix_millis(last_push) > push_interval_ms * 1.5
                )
            ) AS is_refused,
        unix_millis(as_of) - unix_millis(last_seen) AS silent_ms
    FROM instances
    INNER JOIN newest USING (cluster_id)
    LEFT JOIN retained USING (cluster_id)
    WHERE kept_since IS NULL OR last_seen >= kept_since
),
counted AS (
    SELECT
        *,
        missing_within + CASE
            WHEN is_terminated OR is_cut_off THEN 0
            -- From its last push to its last contact.
            WHEN last_push IS NOT NULL AND elapsed_intervals > 1.5
                THEN CAST(floor(round(elapsed_intervals, 3)) AS BIGINT)
            -- Of a client that none was ever accepted of, each refused one was due.
            WHEN last_push IS NULL AND is_refused
                THEN least(
                    rejected_pushes,
                    CAST(
                        floor(
                            (unix_millis(last_seen) - unix_millis(first_seen))
                            / nullif(subscribed_interval_ms, 0)
                        ) AS BIGINT
                    )
                )
            ELSE 0
        END AS missing_pushes
    FROM ended
)
SELECT
    *,
    program_of(client_id) AS client_pattern,
    CASE
        WHEN is_terminated THEN 'terminated'
        WHEN is_cut_off THEN 'cut_off'
        WHEN is_refused AND (last_push IS NULL OR silent_ms <= push_interval_ms * 1.5) THEN 'refused'
        WHEN silent_ms <= push_interval_ms * 1.5 THEN 'active'
        WHEN has_never_pushed THEN 'never_pushed'
        WHEN push_interval_ms IS NOT NULL THEN 'vanished'
        ELSE 'active'
    END AS state,
    accepted_pushes + missing_pushes AS expected_pushes,
    CASE
        WHEN accepted_pushes + missing_pushes > 0
            THEN CAST(missing_pushes AS DOUBLE) / (accepted_pushes + missing_pushes)
    END AS missing_share
FROM counted
