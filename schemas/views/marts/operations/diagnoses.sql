-- kind: mart
-- grain: one row per subject, symptom, time and cause
-- area: requests
-- level: admin_api
-- question: Diagnoses. Who suffers, since when, and why?
-- description: What is wrong with clients, brokers, groups and topics, and why: the causes of a symptom
--   by rank. Who is well has no row. Clients and brokers are those of the last day, rebalances those of
--   two days, lags, replicas and moves as they are now. From a cost nobody suffers: it is no incident.
--   What clients name is no proof of who is guilty.
-- columns:
--   cluster_id: Kafka cluster id
--   subject_kind: client, broker, group or topic
--   principal: of a client; null: the subject is no client
--   client_id: of a client: client.id, of several ids of one program what they share, with * for what
--     varies; untrusted text
--   group_id: of a group; null: the subject is no group
--   topic: topic that the group lags behind, that moves, that lacks replicas, or whose bytes cost; null:
--     another symptom
--   broker_id: of a broker; null: the subject is no broker
--   symptom: slow, failing, lag, rebalances, unavailable, under_min_isr, under_replicated, move_stalled or
--     cost
--   api: API on which a client waits or fails; null: the subject is no client
--   since: start of the symptom; of a lag when the oldest record left was written, as it lags since
--     then at least; null: it is not known, or the lag shrinks
--   until: end of the last minute with it, or when it was last known
--   is_ongoing: it was there when the cluster's tables end; false for a lag that shrinks
--   requests: of a client, or of the clients that wait for a broker, in this time
--   waited_ms: mean wait of a request, in ms, as in client_diagnoses
--   usual_ms: what is usual for the client, in ms, as in client_diagnoses
--   lag: records that a group has left
--   lag_s: age of the oldest of them, in seconds
--   budget: parts of waited_ms, as in client_diagnoses
--   rank: 1 for the cause that explains most
--   cause: as in client_diagnoses, why_groups_lag and cluster_symptoms; of a move its state, of a cost the
--     step that spares it
--   share: part of the symptom that the cause explains, 0 to 1; null: of a lag and a move nothing
--     measures it, and steps of a cost may spare the same bytes
--   confidence: 0.3 to 0.95, how well the evidence supports the cause; null: it is not explained
--   detail: which quota, broker, client, partition or error; null: the cause has none
--   evidence: the numbers that the cause rests on
--   facts: names that belong to the cause, as in client_diagnoses
SELECT
    *,
    'client' AS subject_kind,
    CAST(NULL AS STRING) AS group_id,
    CAST(NULL AS STRING) AS topic,
    CAST(NULL AS INT) AS broker_id,
    unix_micros(until) >= unix_micros(known_until) - 120000000 AS is_ongoing,
    CAST(NULL AS BIGINT) AS lag,
    CAST(NULL AS DOUBLE) AS lag_s
FROM client_diagnoses
UNION ALL
SELECT
    *,
    'group' AS subject_kind,
    'lag' AS symptom,
    CASE WHEN trend IS DISTINCT FROM 'shrinking' THEN since END AS since,
    known_at AS until,
    trend IS DISTINCT FROM 'shrinking' AS is_ongoing
FROM why_groups_lag
UNION ALL
SELECT
    *,
    'topic' AS subject_kind,
    'move_stalled' AS symptom,
    requested_time AS since,
    last_fetch_time AS until,
    TRUE AS is_ongoing,
    CAST(row_number() OVER (
        PARTITION BY cluster_id, topic ORDER BY requested_time, partition, replica_id
    ) AS INT) AS rank,
    state AS cause,
    0.9e0 AS confidence,
    concat(CAST(partition AS STRING), ' to broker ', CAST(replica_id AS STRING)) AS detail
FROM reassignments
WHERE state IN ('stuck', 'never_converges')
UNION ALL
SELECT * FROM cluster_symptoms
UNION ALL
SELECT
    *,
    'cost' AS symptom,
    TRUE AS is_ongoing,
    0.8e0 AS confidence
FROM needless_costs
