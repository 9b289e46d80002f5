-- kind: result
-- grain: one row per minute, consumer, broker, partition and fault
-- area: racks
-- level: sampled_log
-- description: What went wrong when consumers fetched (KIP-392, cases 1 to 4 of reading from
--   followers), one row {per}. The kinds of out of range follow from the offsets of replicas in
--   that minute and the one before, if nothing is appended, committed and deleted again within
--   those two; else the kind is unknown
-- key: cluster_id, event_time, topic_id, topic, partition, broker_id, principal, client_id, fault
-- time: event_time
-- partitioning: event_date
-- facts: fetches
-- bucket: 1 min
-- lookback: 1 min
-- lookups:
--   replica_offsets: changes nothing, within the time
--   topic_names: changes nothing
--   replicas: from event_time, reaches back
--   topics: from event_time, reaches back
-- unnamed:
--   fetch_faults
-- columns:
--   from fetches: cluster_id
--   from topic_names: event_date, event_time
--   from fetches: principal, client_id
--   broker_id INT: broker that answered
--   topic_id STRING: id of the topic; null: requests have its name, and nothing has its id
--   topic STRING: name of the topic; null: no request, answer or snapshot has a name of topic_id
--     yet
--   from replicas: partition
--   fault STRING: uncommitted_offset (case 1: past the high watermark, answered empty);
--     unavailable_offset (case 2: past the end of this follower, other replicas have it);
--     offset_too_small (case 3: before its log start); offset_too_large (case 4: past the end of
--     the leader); out_of_range_unknown; another error by Kafka's name, as not_leader_or_follower;
--     redirect_loop (one connection was sent to a replica three times or more); out_of_range_spin
--     (one connection requested an offset out of range three times or more). Answers of loops and
--     spins also count under their own fault
--   answers BIGINT: answers with that fault
--   min_fetch_offset BIGINT: least offset requested; null: no session has it
--   max_fetch_offset BIGINT: greatest offset requested
--   preferred_read_replica INT: redirect_loop: the greatest broker id that answers name
--   leader_id INT: leader: it answers followers or names replicas; else by snapshot
--   log_start_offset BIGINT: greatest log start of this replica in the minute and the one before
--     it; null: none, or a redirect_loop
--   end_offset BIGINT: greatest high watermark or log end of it in the minute and the one before
--     it; null: none, or a redirect_loop
--   leader_log_start_offset BIGINT: greatest log start of the leader in the minute and the one
--     before it; null: none, or a redirect_loop
--   leader_end_offset BIGINT: greatest high watermark of the leader in the minute and the one
--     before it; null: none, or a redirect_loop
--   answers_leader_has BIGINT: answers for an offset that the leader has, by its offsets; null: not
--     known of any
--   client_software_name STRING: client library, one of those of the client
--   client_software_version STRING: its version, the least of several by number

-- What goes wrong when consumers fetch (KIP-392, cases 1 to 4), minute by minute.
--
-- A broker answers OFFSET_OUT_OF_RANGE (1) where an offset is before its log start or past its log
-- end, and does not say which. What replicas report in the minute of the answer and in the one
-- before decides. Starts and ends of a log only grow. The rule assumes that nothing is appended,
-- committed and deleted again within these two minutes: then no log start is past an end that a
-- replica reported in them. `fetch_errors` are Kafka's other errors of partitions by name.
WITH suspects AS (
    -- A row: a partition of an answer that failed, is past the high watermark or names a replica.
    SELECT
        cluster_id, floored(event_time, 60) AS event_time,
        floored(event_time, 60) + INTERVAL 1 MINUTE AS minute_end, broker_id, principal, client_id,
        client_software_name, client_software_version, connection_id, weight_of(weight) AS weight,
        part.topic AS topic, part.topic_id AS topic_id, part."partition" AS "partition",
        coalesce(part.error_code, 0) AS error_code,
        part.fetch_offset AS fetch_offset,
        part.high_watermark AS high_watermark,
        if(coalesce(part.error_code, 0) = 0 AND part.preferred_read_replica >= 0,
            part.preferred_read_replica, NULL) AS preferred_read_replica
    FROM (SELECT * EXCLUDE (partitions), unnest(partitions) AS part FROM fetches)
    WHERE event_time >= $since AND replica_id IS NULL AND (
        part.error_code <> 0
        OR part.preferred_read_replica >= 0
        OR (part.high_watermark >= 0 AND part.fetch_offset > part.high_watermark))
),
-- A row: what one connection got for a partition and an offset in a minute. All answers that name a
-- replica are one row for all their offsets.
counted AS (
    SELECT
        cluster_id, event_time, minute_end, topic, topic_id, "partition",
        broker_id, principal, client_id, client_software_name, client_software_version,
        connection_id, error_code,
        preferred_read_replica IS NOT NULL AS is_redirect,
        if(is_redirect, NULL, fetch_offset) AS refused_offset,
        count(*) AS lines,
        sum(weight) AS answers,
        max(preferred_read_replica) AS preferred_read_replica,
        min(high_watermark) FILTER (high_watermark >= 0) AS high_watermark,
        min(fetch_offset) AS min_fetch_offset,
        max(fetch_offset) AS max_fetch_offset
    FROM with_topics(suspects, topics, topics_by_id)
    GROUP BY ALL
),
-- A consumer that follows a redirect does not fetch from the leader again soon. Many are a loop.
found AS (
    FROM counted WHERE NOT is_redirect OR lines >= $loop_redirects
),
-- What a replica reports in a minute counts in that minute and in the next one.
offsets AS (
    SELECT *, unnest([event_time, event_time + INTERVAL 1 MINUTE]) AS used_at
    FROM replica_offsets
),
by_replica AS (
    SELECT
        cluster_id, used_at, topic, topic_id, "partition", broker_id,
        bool_or(answers_to_followers > 0) AS is_leader,
        max(max_log_start_offset) AS log_start_offset,
        max(greatest(max_high_watermark, max_log_end_offset)) AS end_offset,
        max(greatest(max_high_watermark, max_log_end_offset)) FILTER (event_time < used_at)
            AS previous_end_offset,
        min(least(min_high_watermark, min_log_end_offset)) FILTER (event_time = used_at)
            AS least_end_offset
    FROM offsets
    GROUP BY ALL
),
-- A row: a partition, with the reports of all replicas. Those that answered followers led it.
reported AS (
    SELECT
        cluster_id, used_at, topic, topic_id, "partition",
        list(broker_id ORDER BY broker_id) FILTER (is_leader) AS leaders,
        list({
            broker_id: broker_id, log_start_offset: log_start_offset, end_offset: end_offset,
            previous_end_offset: previous_end_offset,
            settled_end_offset: coalesce(previous_end_offset, least_end_offset)}
            ORDER BY broker_id) AS reports
    FROM by_replica
    GROUP BY ALL
),
leaders_by_snapshot AS (
    SELECT DISTINCT cluster_id, topic_id, "partition", minute_end, leader_id AS leader_by_snapshot
    FROM replicas_at(found, replicas)
),
-- A redirect needs no offsets, and only the leader answers so. Where several brokers answered
-- followers, leadership moved, and which of them led at the time is not known.
led AS (
    SELECT
        f.*, r.reports,
        CASE
            WHEN f.is_redirect THEN f.broker_id
            WHEN len(r.leaders) = 1 THEN r.leaders[1]
            WHEN r.leaders IS NULL THEN s.leader_by_snapshot
        END AS leader_id
    FROM found f
    LEFT JOIN reported r
        ON NOT f.is_redirect AND r.cluster_id = f.cluster_id AND r.used_at = f.event_time
        AND r.topic IS NOT DISTINCT FROM f.topic AND r.topic_id IS NOT DISTINCT FROM f.topic_id
        AND r."partition" = f."partition"
    LEFT JOIN leaders_by_snapshot s
        ON s.cluster_id = f.cluster_id AND s.topic_id = f.topic_id
        AND s."partition" = f."partition" AND s.minute_end = f.minute_end
),
explained AS (
    SELECT
        *,
        list_filter(reports, lambda report: report.broker_id = led.broker_id)[1] AS own,
        list_filter(reports, lambda report: report.broker_id = led.leader_id)[1] AS leader,
        list_max([r.end_offset FOR r IN reports IF r.broker_id <> led.broker_id]) AS end_elsewhere
    FROM led
),
-- Where an offset is, as far as replicas reported: a comparison with what is not known is null. No
-- follower knows of more that is committed than the leader, so none starts past the leader's end.
located AS (
    SELECT
        *,
        refused_offset < own.log_start_offset OR refused_offset <= own.previous_end_offset
            AS is_before_start,
        refused_offset > own.settled_end_offset OR refused_offset > leader.settled_end_offset
            AS is_past_end,
        refused_offset BETWEEN leader.log_start_offset AND leader.end_offset AS is_in_leader,
        NOT (refused_offset IS NULL OR leader.log_start_offset IS NULL OR leader.end_offset IS NULL)
            AS is_leader_known
    FROM explained
),
judged AS (
    SELECT
        l.*,
        CASE
            WHEN error_code = 1 THEN CASE
                WHEN is_before_start THEN 'offset_too_small'
                WHEN is_past_end AND broker_id = leader_id THEN 'offset_too_large'
                WHEN is_past_end IS NOT TRUE OR leader.end_offset IS NULL
                    THEN 'out_of_range_unknown'
                WHEN refused_offset <= end_elsewhere THEN 'unavailable_offset'
                ELSE 'offset_too_large' END
            WHEN error_code <> 0 THEN coalesce(e.name, 'error_' || error_code)
            WHEN refused_offset > high_watermark THEN 'uncommitted_offset'
        END AS fault,
        CASE WHEN is_in_leader THEN answers WHEN is_leader_known THEN 0 END AS answers_leader_has
    FROM located l
    LEFT JOIN fetch_errors e ON e.code = l.error_code
),
-- A row: a fault of these answers. They may have several.
faults AS (
    SELECT * EXCLUDE (fault), fault FROM judged WHERE fault IS NOT NULL
    UNION ALL
    SELECT * EXCLUDE (fault), 'out_of_range_spin' AS fault
    FROM judged
    WHERE error_code = 1 AND refused_offset IS NOT NULL AND lines >= $spin_answers
    UNION ALL
    SELECT * EXCLUDE (fault), 'redirect_loop' AS fault FROM judged WHERE is_redirect
)
SELECT
    cluster_id, CAST(event_time AS DATE) AS event_date, event_time, principal, client_id, broker_id,
    topic_id, topic, "partition", fault,
    sum(answers) AS answers,
    min(min_fetch_offset) AS min_fetch_offset,
    max(max_fetch_offset) AS max_fetch_offset,
    max(preferred_read_replica) AS preferred_read_replica,
    max(leader_id) AS leader_id,
    max(own.log_start_offset) AS log_start_offset,
    max(own.end_offset) AS end_offset,
    max(leader.log_start_offset) AS leader_log_start_offset,
    max(leader.end_offset) AS leader_end_offset,
    sum(answers_leader_has) AS answers_leader_has,
    max(client_software_name) AS client_software_name,
    least_version(client_software_version) AS client_software_version
FROM faults
GROUP BY ALL
