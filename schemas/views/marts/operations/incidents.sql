-- kind: mart
-- grain: one row per symptom, first cause and time without a gap of ten minutes
-- area: requests
-- level: admin_api
-- question: Incidents. What went wrong, for how long, and who was hit?
-- description: Symptoms with one first cause at one time, as one incident: a quota that throttles nine
--   clients, a broker that is slow for all of them, or that is down. A cause that is not known makes an incident
--   for each subject. Symptoms of clients and brokers are those of the last day, rebalances those of two
--   days, others as they are now: there are no older incidents. What clients name is no proof of who is guilty.
-- columns:
--   from diagnoses: cluster_id, symptom, cause
--   origin: which quota and user, broker, client or error; of a cause that is not known the subject;
--     null: the cause has none
--   since: start of the first symptom, as in diagnoses; null: it is not known
--   until: end of the last symptom
--   state: open (a symptom is there when the cluster's tables end) or ended
--   subjects: clients, groups or topics that are hit
--   names: the first ten of their names, sorted: untrusted text
--   confidence: the greatest of the diagnoses, 0.3 to 0.95; null: the cause is not known
WITH firsts AS (
    SELECT
        *,
        coalesce(client_id, principal, group_id, topic) AS subject,
        coalesce(since, until) AS began,
        CASE
            WHEN cause = 'quota'
                THEN concat(
                    coalesce(detail, 'quota'), ' of ',
                    coalesce(
                        array_max(
                            transform(
                                facts, x -> CASE x.fact WHEN 'quota_user' THEN x.text END
                            )
                        ),
                        array_max(
                            transform(
                                facts, x -> CASE x.fact WHEN 'quota_client_id' THEN x.text END
                            )
                        ),
                        'the default'
                    )
                )
            WHEN cause IN ('not_explained', 'unknown')
                THEN coalesce(client_id, principal, group_id, topic)
            ELSE detail
        END AS origin
    FROM diagnoses
    -- A lag that shrinks has no start and goes away by itself. Clients that wait for a broker are an
    -- incident of their own, and from a cost nobody suffers.
    WHERE
        rank = 1
        AND (since IS NOT NULL OR is_ongoing)
        AND subject_kind <> 'broker'
        AND symptom <> 'cost'
),
begun AS (
    SELECT
        *,
        CASE
            WHEN unix_micros(began) - unix_micros(max(until) OVER (
                PARTITION BY cluster_id, symptom, cause, origin
                ORDER BY began, until, subject
                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            )) <= 600000000 THEN 0
            ELSE 1
        END AS is_start
    FROM firsts
),
numbered AS (
    SELECT
        *,
        sum(is_start) OVER (
            PARTITION BY cluster_id, symptom, cause, origin ORDER BY began, until, subject
        ) AS number
    FROM begun
)
SELECT
    *,
    min(since) AS since,
    max(until) AS until,
    CASE WHEN max(CASE WHEN is_ongoing THEN 1 ELSE 0 END) = 1 THEN 'open' ELSE 'ended' END AS state,
    count(DISTINCT subject) AS subjects,
    slice(array_sort(collect_set(subject)), 1, 10) AS names,
    max(confidence) AS confidence
FROM numbered
GROUP BY cluster_id, symptom, cause, origin, number
