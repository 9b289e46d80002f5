-- kind: answer
-- grain: one row per client, topic or broker, and step that would spare bytes between racks or of remote
--   storage
-- area: racks
-- level: sampled_log
-- description: Costs without need, one row {per}, of 10 MB an hour or more. Of a client that reads, they
--   are a tenth of what it reads. Nobody suffers from them.
-- empty: while no step spares as much
-- key: cluster_id, subject_kind, principal, client_id, topic, broker_id, rank
-- time: until
-- clustering: until, subject_kind
-- columns:
--   from remote_read_advice: cluster_id
--   subject_kind STRING: client, topic or broker that the step is about
--   principal STRING: of a client; null: another subject
--   client_id STRING: of a client: untrusted text; null: another subject
--   topic STRING: of a topic; null: another subject
--   broker_id INT: of a broker; null: another subject
--   since TIMESTAMP: first minute that counts
--   until TIMESTAMP: last minute that counts
--   rank INT: 1 for the step of a subject that spares most
--   cause STRING: the step, as advice of replica_advice, producer_rack_advice and remote_read_advice
--   evidence ARRAY<STRUCT<signal: STRING, value: DOUBLE>>: bytes that the step would have spared, lasted_ms
--     from the first of them to the last, and the other numbers that its sentence names
--   facts ARRAY<STRUCT<fact: STRING, text: STRING>>: names that its sentence names; advice_table is
--     the relation that has the step

WITH steps AS (
    SELECT
        cluster_id,
        CASE WHEN broker_id IS NOT NULL AND advice <> 'move_leader' THEN 'broker' END AS of_broker,
        principal,
        client_id,
        topic,
        broker_id,
        since,
        until,
        advice,
        saved_bytes_per_hour AS spared,
        coalesce(read_share, 1e0) AS part,
        array(
            named_struct('signal', 'bytes', 'value', CAST(saved_bytes AS DOUBLE)),
            named_struct('signal', 'lasted_ms', 'value', CAST(lasted_ms AS DOUBLE)),
            named_struct('signal', 'read_share', 'value', read_share)
        ) AS evidence,
        array(
            named_struct('fact', 'advice_table', 'text', 'replica_advice'),
            named_struct('fact', 'topic', 'text', topic),
            named_struct('fact', 'client_rack', 'text', client_rack),
            named_struct('fact', 'nearest_racks', 'text', nearest_racks),
            named_struct('fact', 'partition', 'text', CAST(partition AS STRING)),
            named_struct('fact', 'partitions', 'text', partitions)
        ) AS facts
    FROM replica_advice
    UNION ALL
    SELECT
        cluster_id,
        NULL AS of_broker,
        principal,
        client_id,
        topic,
        NULL AS broker_id,
        since,
        until,
        advice,
        saved_bytes_per_hour AS spared,
        1e0 AS part,
        array(
            named_struct('signal', 'bytes', 'value', CAST(saved_bytes AS DOUBLE)),
            named_struct('signal', 'lasted_ms', 'value', CAST(lasted_ms AS DOUBLE))
        ) AS evidence,
        array(
            named_struct('fact', 'advice_table', 'text', 'producer_rack_advice'),
            named_struct('fact', 'topic', 'text', topic),
            named_struct('fact', 'client_rack', 'text', client_rack),
            named_struct('fact', 'nearest_racks', 'text', nearest_racks),
            named_struct('fact', 'rack_source', 'text', rack_source),
            named_struct('fact', 'client_software_name', 'text', client_software_name),
            named_struct('fact', 'client_software_version', 'text', client_software_version),
            named_struct('fact', 'rack_awareness', 'text', rack_awareness)
        ) AS facts
    FROM producer_rack_advice
    UNION ALL
    SELECT
        cluster_id,
        CASE WHEN broker_id IS NOT NULL THEN 'broker' END AS of_broker,
        principal,
        client_id,
        topic,
        broker_id,
        since,
        until,
        advice,
        bytes_per_hour AS spared,
        1e0 AS part,
        array(
            named_struct('signal', 'bytes', 'value', CAST(bytes AS DOUBLE)),
            named_struct('signal', 'lasted_ms', 'value', CAST(lasted_ms AS DOUBLE)),
            named_struct('signal', 'read_age_ms', 'value', CAST(read_age_ms AS DOUBLE)),
            named_struct('signal', 'local_retention_ms', 'value', CAST(local_retention_ms AS DOUBLE)),
            named_struct('signal', 'recommended_ms', 'value', CAST(recommended_ms AS DOUBLE)),
            named_struct('signal', 'extra_local_bytes', 'value', extra_local_bytes),
            named_struct('signal', 'fetch_quota', 'value', CAST(fetch_quota AS DOUBLE)),
            named_struct('signal', 'empty_time_ms', 'value', empty_time_ms)
        ) AS evidence,
        array(
            named_struct('fact', 'advice_table', 'text', 'remote_read_advice'),
            named_struct('fact', 'topic', 'text', topic)
        ) AS facts
    FROM remote_read_advice
),
subjects AS (
    SELECT
        *,
        CASE
            WHEN principal IS NOT NULL THEN 'client'
            ELSE coalesce(of_broker, 'topic')
        END AS subject_kind
    FROM steps
    WHERE
        spared >= 1e7
        AND part >= 0.1e0
        AND coalesce(principal, topic, CAST(broker_id AS STRING)) IS NOT NULL
)
SELECT
    *,
    CASE WHEN subject_kind = 'topic' THEN topic END AS topic,
    CASE WHEN subject_kind = 'broker' THEN broker_id END AS broker_id,
    min(since) OVER of_subject AS since,
    max(until) OVER of_subject AS until,
    CAST(row_number() OVER (
        PARTITION BY
            cluster_id, subject_kind, principal, client_id,
            CASE WHEN subject_kind = 'topic' THEN topic END,
            CASE WHEN subject_kind = 'broker' THEN broker_id END
        ORDER BY spared DESC, advice, topic
    ) AS INT) AS rank,
    advice AS cause
FROM subjects
WINDOW of_subject AS (
    PARTITION BY
        cluster_id, subject_kind, principal, client_id,
        CASE WHEN subject_kind = 'topic' THEN topic END,
        CASE WHEN subject_kind = 'broker' THEN broker_id END
)
