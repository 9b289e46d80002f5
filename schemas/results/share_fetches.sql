-- kind: result
-- grain: one row per minute, member, client, broker and partition
-- area: groups
-- level: sampled_log
-- description: What members of share groups acquire and acknowledge (KIP-932), one row {per}. A row
--   without a partition counts whole requests: those of other rows do not add to it. Bytes are in
--   no row, because brokers log none of SHARE_FETCH. Without bodies (ingest.without_body) rows have
--   requests and throttles only. Counts of records are null if what a client names is more than a
--   number can be
-- empty: while no share group works
-- key: cluster_id, event_time, group_id, member_id, topic_id, topic, partition, broker_id,
--   principal, client_id
-- time: event_time
-- partitioning: event_date
-- facts: requests
-- relevant: group_id IS NOT NULL AND api IN ('SHARE_FETCH', 'SHARE_ACKNOWLEDGE')
-- bucket: 1 min
-- lookback: 10 min
-- split_by: cluster_id, kafka_string(group_id)
-- lookups:
--   client_quotas: from coalesce(set_at, event_time)
--   topic_names: changes nothing
--   topics: changes nothing
-- unnamed:
--   share_fetches
-- columns:
--   from requests: cluster_id
--   from topic_names: event_date, event_time
--   group_id STRING: id of the group as its client gave it: untrusted text
--   member_id STRING: id of the member; null: the body was not kept
--   topic_id STRING: id of the topic; null: requests have its name, and nothing has its id
--   topic STRING: name of the topic; null: no request, answer or snapshot has a name of topic_id
--     yet
--   partition INT: number of the partition; null: the row counts whole requests
--   broker_id INT: broker that answered: the leader of the partition
--   from requests: principal, client_id
--   fetches BIGINT: whole requests: SHARE_FETCH. 0 in rows of a partition
--   acknowledges BIGINT: whole requests: SHARE_ACKNOWLEDGE
--   throttled_requests BIGINT: of these, those that were throttled
--   throttle_time_ms BIGINT: sum of their throttle times
--   max_throttle_time_ms BIGINT: longest of them; null: the row is of a partition
--   acquired_records BIGINT: records that answers gave to the member
--   acquired_ranges BIGINT: ranges of offsets in which they came
--   redelivered_records BIGINT: those of them that had been delivered before (count > 1)
--   max_delivery_count INT: greatest delivery count of acquired records; null: none was
--   accepted_records BIGINT: records acknowledged as processed
--   released_records BIGINT: records released, to be delivered again
--   rejected_records BIGINT: records refused, not to be delivered again
--   renewed_records BIGINT: records whose lock the member prolonged (KIP-1222)
--   gap_records BIGINT: offsets acknowledged as having no record
--   lock_timeouts BIGINT: records that the member had acquired, did not release, and that were
--     delivered again after its lock had run out, in the minute of that delivery. At least: a
--     record that nobody got again is not seen
--   throttled_redeliveries BIGINT: inferred: those of redelivered_records whose delivery before was
--     for a throttled answer of the group. Brokers acquire records for it, leave them out and keep
--     them locked, so no client has seen that delivery, and it counts
--   unexplained_redeliveries BIGINT: those of redelivered_records of which no line shows why: their
--     delivery before is more than ten minutes back or in no line, or they came again before the
--     lock had run out
--   errors BIGINT: requests, or partitions of answers, that failed
--   acknowledge_errors BIGINT: acknowledgements of the partition that the broker refused, such as
--     INVALID_RECORD_STATE (121) once the lock has run out
--   error_code INT: error code of the newest failure of either; null: none failed
--   max_bytes BIGINT: greatest limit requested for an answer; null: a row of a partition
--   quota_bytes BIGINT: the most that consumer_byte_rate lets an answer have, if that is less:
--     quota x the broker's windows but one; null: no quota is known, or a row of a partition
--   lock_timeout_ms INT: how long acquired records are locked
--     (group.share.record.lock.duration.ms); null: no answer names it, or a row of a partition

-- What members of share groups acquire, acknowledge and are refused, by minute (KIP-932). A row
-- without a partition counts whole requests. A broker logs no bytes of SHARE_FETCH.
WITH parsed AS MATERIALIZED (
    -- A row is a request.
    SELECT
        * EXCLUDE (parts), left(parts.request.memberId, 32_767) AS member_id,
        parts.request.topics AS requested, parts.response.responses AS answered,
        json_int(parts.request.shareSessionEpoch) = -1 AS is_last_of_session,
        json_bigint(parts.request.maxBytes) AS max_bytes,
        json_int(parts.response.acquisitionLockTimeoutMs) AS lock_timeout_ms
    FROM (
        SELECT
            row_number() OVER () AS request_number, cluster_id, event_time,
            floored(event_time, 60) AS minute, broker_id, principal, client_id,
            left(group_id, 32_767) AS group_id, api = 'SHARE_FETCH' AS is_fetch,
            weight_of(weight) AS requests, coalesce(error_code, 0) AS error_code,
            coalesce(CAST(round(throttle_time_ms) AS BIGINT), 0) AS throttle_time_ms,
            -- A broker acknowledges what it received before it answers others.
            event_time - to_milliseconds(coalesce(total_time_ms, 0)) AS received_time,
            event_time - to_milliseconds(
                coalesce(response_queue_time_ms, 0) + coalesce(send_time_ms, 0)) AS answered_time,
            from_json(json_or_null(body), '{
                "request": {
                    "memberId": "VARCHAR", "shareSessionEpoch": "JSON", "maxBytes": "JSON",
                    "topics": [{"topicId": "VARCHAR", "partitions": [{
                        "partitionIndex": "JSON", "acknowledgementBatches": [{
                            "firstOffset": "JSON", "lastOffset": "JSON",
                            "acknowledgeTypes": ["JSON"]}]}]}]},
                "response": {
                    "acquisitionLockTimeoutMs": "JSON",
                    "responses": [{"topicId": "VARCHAR", "partitions": [{
                        "partitionIndex": "JSON", "errorCode": "JSON",
                        "acknowledgeErrorCode": "JSON", "acquiredRecords": [{
                            "firstOffset": "JSON", "lastOffset": "JSON",
                            "deliveryCount": "JSON"}]}]}]}
            }') AS parts
        FROM requests
    )
),
answers AS MATERIALIZED (
    -- A row is a partition in an answer. SHARE_ACKNOWLEDGE has one kind of error.
    SELECT
        request_number, topic_id, json_int(part.partitionIndex) AS "partition",
        if(is_fetch, json_int(part.errorCode), 0) AS fetch_error,
        json_int(if(is_fetch, part.acknowledgeErrorCode, part.errorCode)) AS acknowledge_error,
        part.acquiredRecords AS acquired
    FROM (
        SELECT
            request_number, is_fetch, left(nullif(t.topicId, $no_topic_id), 32_767) AS topic_id,
            unnest(t.partitions) AS part
        FROM (SELECT request_number, is_fetch, unnest(answered) AS t FROM parsed)
    )
),
acquisitions AS MATERIALIZED (
    -- A row is a range of records that an answer gives to a member.
    SELECT
        p.* EXCLUDE (requested, answered), a.topic_id, a."partition", a.first_offset, a.last_offset,
        a.delivery_count, a.last_offset::HUGEINT - a.first_offset + 1 AS records
    FROM (
        SELECT
            request_number, topic_id, "partition", json_bigint(r.firstOffset) AS first_offset,
            json_bigint(r.lastOffset) AS last_offset, json_int(r.deliveryCount) AS delivery_count
        FROM (SELECT request_number, topic_id, "partition", unnest(acquired) AS r FROM answers)
    ) AS a
    JOIN parsed AS p USING (request_number)
    WHERE first_offset BETWEEN 0 AND last_offset
),
batches AS MATERIALIZED (
    -- A row is a range of records that a request acknowledges. One type is for all of them, else
    -- each has its own. A throttled answer does not say whether the broker took it.
    SELECT
        p.* EXCLUDE (requested, answered), b.topic_id, b."partition", b.first_offset, b.last_offset,
        b.types, b.last_offset::HUGEINT - b.first_offset + 1 AS records,
        coalesce(a.acknowledge_error, p.error_code) <> 0 AS is_refused
    FROM (
        SELECT
            request_number, topic_id, "partition", json_bigint(b.firstOffset) AS first_offset,
            json_bigint(b.lastOffset) AS last_offset,
            [json_int(t) FOR t IN b.acknowledgeTypes] AS types
        FROM (
            SELECT
                request_number, topic_id, json_int(part.partitionIndex) AS "partition",
                unnest(part.acknowledgementBatches) AS b
            FROM (
                SELECT
                    request_number, left(nullif(t.topicId, $no_topic_id), 32_767) AS topic_id,
                    unnest(t.partitions) AS part
                FROM (SELECT request_number, unnest(requested) AS t FROM parsed)
            )
        )
    ) AS b
    JOIN parsed AS p USING (request_number)
    LEFT JOIN (
        SELECT request_number, topic_id, "partition", max(acknowledge_error) AS acknowledge_error
        FROM answers
        GROUP BY ALL
    ) AS a
        ON a.request_number = b.request_number AND a.topic_id = b.topic_id
        AND a."partition" = b."partition"
    WHERE first_offset BETWEEN 0 AND last_offset AND len(b.types) > 0
),
redelivered AS (
    -- A row is a range of records that were delivered before.
    SELECT *, row_number() OVER () AS redelivery
    FROM acquisitions
    WHERE delivery_count > 1
),
given_back AS (
    -- A row is a run of records of a batch that were released, or renewed.
    SELECT
        cluster_id, group_id, topic_id, "partition", event_time, received_time AS time, requests,
        if(type = 2, 'released', 'renewed') AS kind,
        if(is_of_all, first_of_batch, first_of_batch + min(nth) - 1) AS first_offset,
        if(is_of_all, last_of_batch, first_of_batch + max(nth) - 1) AS last_offset
    FROM (
        SELECT
            *, len(types) = 1 AS is_of_all,
            nth - row_number() OVER (PARTITION BY batch, type ORDER BY nth) AS run
        FROM (
            SELECT *, unnest(types) AS type, generate_subscripts(types, 1) AS nth
            FROM (
                SELECT
                    *, row_number() OVER () AS batch, first_offset AS first_of_batch,
                    last_offset AS last_of_batch
                FROM batches
                SEMI JOIN redelivered USING (cluster_id, group_id, topic_id, "partition")
                WHERE NOT is_refused AND (len(types) = 1 OR len(types) = records)
            )
        )
        WHERE type IN (2, 4)
    )
    GROUP BY
        batch, run, type, is_of_all, cluster_id, group_id, topic_id, "partition", event_time,
        received_time, requests, first_of_batch, last_of_batch
),
events AS (
    -- What befell records of partitions with redeliveries: acquired, released, renewed.
    SELECT
        cluster_id, group_id, topic_id, "partition", first_offset, last_offset, event_time,
        'acquired' AS kind, answered_time AS time, delivery_count, member_id, broker_id, principal,
        client_id, lock_timeout_ms, requests
    FROM acquisitions
    SEMI JOIN redelivered USING (cluster_id, group_id, topic_id, "partition")
    UNION ALL BY NAME
    FROM given_back
),
earlier AS MATERIALIZED (
    -- A row is an event before a redelivery, of some of its records. Those of ten minutes count:
    -- a lock takes a minute at most, unless brokers allow more.
    SELECT
        r.redelivery, greatest(e.first_offset, r.first_offset) AS first_offset,
        least(e.last_offset, r.last_offset) AS last_offset,
        e.* EXCLUDE (cluster_id, group_id, topic_id, "partition", first_offset, last_offset)
    FROM redelivered AS r
    JOIN events AS e
        ON e.cluster_id = r.cluster_id AND e.group_id = r.group_id AND e.topic_id = r.topic_id
        AND e."partition" = r."partition" AND e.first_offset <= r.last_offset
        AND e.last_offset >= r.first_offset AND e.time < r.answered_time
        AND e.event_time >= r.minute - to_seconds($lookback_s)
    WHERE e.kind <> 'acquired' OR e.delivery_count < r.delivery_count
),
pieces AS (
    -- A row is a part of a redelivered range whose records had the same events.
    SELECT
        redelivery, start AS first_offset,
        lead(start, 1, last_offset + 1) OVER (PARTITION BY redelivery ORDER BY start) - start
            AS records
    FROM (
        SELECT DISTINCT c.redelivery, c.start, r.last_offset
        FROM (
            SELECT redelivery, first_offset AS start FROM redelivered
            UNION ALL
            SELECT redelivery, unnest([first_offset, last_offset + 1]) FROM earlier
        ) AS c
        JOIN redelivered AS r ON r.redelivery = c.redelivery AND c.start <= r.last_offset
    )
),
histories AS (
    -- A row is such a part, with its delivery before and what the member did about it.
    SELECT
        p.redelivery, p.first_offset, p.records,
        max({time: e.time, delivery_count: e.delivery_count, member_id: e.member_id,
            broker_id: e.broker_id, principal: e.principal, client_id: e.client_id,
            lock_timeout_ms: e.lock_timeout_ms, requests: e.requests}) FILTER (e.kind = 'acquired') AS delivery,
        max(e.time) FILTER (e.kind = 'released') AS released_time,
        max(e.time) FILTER (e.kind = 'renewed') AS renewed_time
    FROM pieces AS p
    LEFT JOIN earlier AS e
        ON e.redelivery = p.redelivery
        AND p.first_offset BETWEEN e.first_offset AND e.last_offset
    GROUP BY ALL
),
closed AS (
    -- A row is the end of a session, which releases all that the member has of this broker.
    SELECT cluster_id, group_id, member_id, broker_id, event_time, received_time AS time
    FROM parsed
    WHERE is_last_of_session
),
throttled AS (
    -- A row is a throttled answer. The broker acquires records for it, leaves them out, and keeps
    -- their lock: a delivery that no client sees.
    SELECT cluster_id, group_id, broker_id, event_time, answered_time AS time
    FROM parsed
    WHERE is_fetch AND throttle_time_ms > 0
),
causes AS (
    -- Why records were delivered again: lock_timeout, released, throttled (the lock of an answer
    -- that was throttled ran out), or null: no line shows it. Answers are logged some time after the
    -- lock begins, hence half a second.
    SELECT
        h.records, r.minute, r.cluster_id, r.group_id, r.topic_id, r."partition", r.requests,
        r.member_id, r.broker_id, r.principal, r.client_id, h.delivery, CASE
            WHEN h.delivery.requests > 1 OR r.requests > 1 THEN NULL
            WHEN h.delivery.delivery_count IS DISTINCT FROM r.delivery_count - 1 THEN if(EXISTS (
                SELECT 1 FROM throttled AS t
                WHERE t.cluster_id = r.cluster_id AND t.group_id = r.group_id
                    AND t.broker_id = r.broker_id AND t.event_time >= r.minute - to_seconds($lookback_s)
                    AND t.time > coalesce(h.delivery.time, t.time - INTERVAL 1 SECOND)
                    AND t.time <= r.answered_time - to_milliseconds(r.lock_timeout_ms - 500)
            ), 'throttled', NULL)
            WHEN h.released_time > h.delivery.time OR EXISTS (
                SELECT 1 FROM closed AS c
                WHERE c.cluster_id = r.cluster_id AND c.group_id = r.group_id
                    AND c.member_id = h.delivery.member_id AND c.broker_id = h.delivery.broker_id
                    AND c.event_time >= r.minute - to_seconds($lookback_s)
                    AND c.time BETWEEN h.delivery.time AND r.answered_time
            ) THEN 'released'
            WHEN r.answered_time - greatest(h.delivery.time, h.renewed_time)
                >= to_milliseconds(h.delivery.lock_timeout_ms - 500) THEN 'lock_timeout'
        END AS cause
    FROM histories AS h
    JOIN redelivered AS r USING (redelivery)
),
clients AS (
    SELECT DISTINCT
        cluster_id, principal, coalesce(client_id, '') AS client_id, minute AS event_time,
        minute + INTERVAL 1 MINUTE AS window_end, 'consumer_byte_rate' AS quota_type
    FROM parsed
    WHERE is_fetch
),
quotas AS (
    SELECT *, quota_window_bytes(quota, $quota_refill_s) AS quota_bytes FROM with_limits(clients)
),
counted AS (
    -- Whole requests.
    SELECT
        p.cluster_id, p.minute, p.group_id, p.member_id, p.broker_id, p.principal, p.client_id,
        p.requests * p.is_fetch::INT AS fetches,
        p.requests * (NOT p.is_fetch)::INT AS acknowledges,
        p.requests * (p.throttle_time_ms > 0)::INT AS throttled_requests,
        p.requests * p.throttle_time_ms AS throttle_time_ms, p.throttle_time_ms AS max_throttle_ms,
        p.requests * (p.error_code <> 0)::INT AS errors,
        if(p.error_code <> 0, {failed_at: p.event_time, code: p.error_code}, NULL) AS error, p.max_bytes,
        q.quota_bytes, p.lock_timeout_ms
    FROM parsed AS p
    LEFT JOIN quotas AS q
        ON p.is_fetch AND q.cluster_id = p.cluster_id AND q.event_time = p.minute
        AND q.principal IS NOT DISTINCT FROM p.principal
        AND q.client_id = coalesce(p.client_id, '')
    UNION ALL BY NAME
    -- Partitions of answers that fail.
    SELECT
        p.cluster_id, p.minute, p.group_id, p.member_id, p.broker_id, p.principal, p.client_id,
        a.topic_id, a."partition",
        p.requests * (coalesce(a.fetch_error, 0) <> 0)::INT AS errors,
        p.requests * (coalesce(a.acknowledge_error, 0) <> 0)::INT AS acknowledge_errors,
        {failed_at: p.event_time, code: coalesce(nullif(a.fetch_error, 0), a.acknowledge_error)} AS error
    FROM answers AS a
    JOIN parsed AS p USING (request_number)
    WHERE a.fetch_error <> 0 OR a.acknowledge_error <> 0
    UNION ALL BY NAME
    SELECT
        cluster_id, minute, group_id, member_id, broker_id, principal, client_id, topic_id,
        "partition", requests * records AS acquired_records, requests AS acquired_ranges,
        requests * records * (delivery_count > 1)::INT AS redelivered_records,
        delivery_count AS max_delivery_count
    FROM acquisitions
    UNION ALL BY NAME
    SELECT
        cluster_id, minute, group_id, member_id, broker_id, principal, client_id, topic_id,
        "partition", requests * of_type[1] AS gap_records, requests * of_type[2] AS accepted_records,
        requests * of_type[3] AS released_records, requests * of_type[4] AS rejected_records,
        requests * of_type[5] AS renewed_records
    FROM (
        SELECT *, [
            CASE WHEN len(types) > 1 THEN len([t FOR t IN types IF t = n])
                WHEN types[1] = n THEN records ELSE 0 END FOR n IN range(5)
        ] AS of_type
        FROM batches
        WHERE NOT is_refused
    )
    UNION ALL BY NAME
    -- A time-out counts for the member that had the records.
    SELECT
        cluster_id, minute, group_id, delivery.member_id AS member_id,
        delivery.broker_id AS broker_id, delivery.principal AS principal,
        delivery.client_id AS client_id, topic_id, "partition", records AS lock_timeouts
    FROM causes
    WHERE cause = 'lock_timeout'
    UNION ALL BY NAME
    SELECT
        cluster_id, minute, group_id, member_id, broker_id, principal, client_id, topic_id,
        "partition", requests * records * (cause IS NULL)::INT AS unexplained_redeliveries,
        requests * records * (cause IS NOT NULL)::INT AS throttled_redeliveries
    FROM causes
    WHERE cause IS NULL OR cause = 'throttled'
),
summed AS (
    SELECT
        cluster_id, minute AS event_time, group_id, member_id, topic_id,
        CAST(NULL AS VARCHAR) AS topic, "partition", broker_id, principal, client_id,
        coalesce(sum(fetches), 0) AS fetches, coalesce(sum(acknowledges), 0) AS acknowledges,
        coalesce(sum(throttled_requests), 0) AS throttled_requests,
        coalesce(sum(throttle_time_ms), 0) AS throttle_time_ms,
        max(max_throttle_ms) AS max_throttle_time_ms,
        TRY_CAST(coalesce(sum(acquired_records), 0) AS BIGINT) AS acquired_records,
        coalesce(sum(acquired_ranges), 0) AS acquired_ranges,
        TRY_CAST(coalesce(sum(redelivered_records), 0) AS BIGINT) AS redelivered_records,
        max(max_delivery_count) AS max_delivery_count,
        TRY_CAST(coalesce(sum(accepted_records), 0) AS BIGINT) AS accepted_records,
        TRY_CAST(coalesce(sum(released_records), 0) AS BIGINT) AS released_records,
        TRY_CAST(coalesce(sum(rejected_records), 0) AS BIGINT) AS rejected_records,
        TRY_CAST(coalesce(sum(renewed_records), 0) AS BIGINT) AS renewed_records,
        TRY_CAST(coalesce(sum(gap_records), 0) AS BIGINT) AS gap_records,
        TRY_CAST(coalesce(sum(lock_timeouts), 0) AS BIGINT) AS lock_timeouts,
        TRY_CAST(coalesce(sum(throttled_redeliveries), 0) AS BIGINT) AS throttled_redeliveries,
        TRY_CAST(coalesce(sum(unexplained_redeliveries), 0) AS BIGINT) AS unexplained_redeliveries,
        coalesce(sum(errors), 0) AS errors,
        coalesce(sum(acknowledge_errors), 0) AS acknowledge_errors,
        max(error).code AS error_code, max(max_bytes) AS max_bytes, min(quota_bytes) AS quota_bytes,
        max(lock_timeout_ms) AS lock_timeout_ms
    FROM counted
    GROUP BY ALL
)
SELECT *, CAST(event_time AS DATE) AS event_date FROM with_names(summed, topics_by_id)
