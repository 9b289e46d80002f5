-- kind: mart
-- grain: one row per hour, share group, member and client
-- area: groups
-- level: sampled_log
-- question: Share groups. Do the members of share groups get on with their records?
-- description: How members of share groups get on (KIP-932): what they acquire, and what comes again
--   because they give it back, refuse it or let its lock run out; who waits for a byte quota. Sum over
--   members for a group.
-- empty: while no share group works
-- columns:
--   from share_fetches: cluster_id
--   hour: start of the hour
--   from share_fetches: group_id, member_id, principal, client_id
--   state: what to look at first: throttled (throttled_requests is more than 0), timing_out
--     (lock_timeouts), refused (acknowledge_errors), failing (errors), rejecting (rejected_records),
--     releasing (released_records), redelivered (redelivered_records), idle (it acquired nothing) or
--     healthy; the first that is true
--   fetches: SHARE_FETCH requests
--   acquired_records: records that it got
--   redelivered_records: those of them that had been delivered before
--   redelivered_share: redelivered_records / acquired_records; null: it acquired nothing
--   max_delivery_count: greatest delivery count of a record that it got; null: it got none
--   accepted_records: records that it acknowledged as processed
--   released_records: records that it released, to be delivered again
--   rejected_records: records that it refused, not to be delivered again
--   renewed_records: records whose lock it prolonged (KIP-1222)
--   lock_timeouts: records that it let time out, as far as they were delivered again
--   throttled_redeliveries: redelivered records that came again because an answer with them was
--     throttled: the broker counts it as a delivery, though no client got them
--   unexplained_redeliveries: redelivered records of which no line shows why they came again
--   errors: requests and partitions of answers that failed
--   acknowledge_errors: acknowledgements that the broker refused
--   error_code: error code of the newest failure, of one minute the greatest; null: none failed
--   throttled_requests: requests that were throttled
--   throttle_time_ms: sum of their throttle times, in ms
--   max_throttle_time_ms: longest of them, in ms
--   quota_bytes: the most that consumer_byte_rate let an answer have, in bytes; null: none is known
--   max_bytes: greatest limit that it asked for, in bytes; null: not known
--   lock_timeout_ms: longest lock of its records, in ms; null: no answer names it
--   bytes_consumed: bytes that it consumed, by its own pushes: brokers log none; null:
--     bytes_unknown_reason says why
--   bytes_source: telemetry; null: bytes_consumed is null
--   bytes_unknown_reason: not_pushed (no push of this client in the hour has them), shared_client_id
--     (several members have this client id, and pushes do not say whose bytes they are); null: known
--   partitions: partitions with records, acknowledgements or failures
--   last_minute: start of the last minute with requests
WITH members AS (
    SELECT
        cluster_id, date_trunc('hour', event_time) AS hour, group_id, member_id, principal,
        client_id, sum(fetches) AS fetches, sum(acquired_records) AS acquired_records,
        sum(redelivered_records) AS redelivered_records,
        max(max_delivery_count) AS max_delivery_count, sum(accepted_records) AS accepted_records,
        sum(released_records) AS released_records, sum(rejected_records) AS rejected_records,
        sum(renewed_records) AS renewed_records, sum(lock_timeouts) AS lock_timeouts,
        sum(throttled_redeliveries) AS throttled_redeliveries,
        sum(unexplained_redeliveries) AS unexplained_redeliveries, sum(errors) AS errors,
        sum(acknowledge_errors) AS acknowledge_errors,
        -- The newest, and of one minute the greatest.
        max_by(error_code, unix_millis(event_time) * 1000 + error_code) AS error_code,
        sum(throttled_requests) AS throttled_requests, sum(throttle_time_ms) AS throttle_time_ms,
        max(max_throttle_time_ms) AS max_throttle_time_ms, min(quota_bytes) AS quota_bytes,
        max(max_bytes) AS max_bytes, max(lock_timeout_ms) AS lock_timeout_ms,
        count(
            DISTINCT CASE
                WHEN partition IS NOT NULL
                    THEN concat_ws(':', topic_id, CAST(partition AS STRING))
            END
        ) AS partitions,
        max(event_time) AS last_minute
    FROM share_fetches
    GROUP BY cluster_id, date_trunc('hour', event_time), group_id, member_id, principal, client_id
),
counted AS (
    SELECT
        *, count(*) OVER (PARTITION BY cluster_id, hour, principal, client_id) AS same_clients
    FROM members
),
pushed AS (
    SELECT
        cluster_id, date_trunc('hour', event_time) AS hour, principal, client_id,
        CAST(sum(increase) AS BIGINT) AS bytes_consumed
    FROM metric_totals
    WHERE metric = 'org.apache.kafka.consumer.share.fetch.manager.bytes.consumed.total'
        AND topic IS NULL
        AND increase BETWEEN 0 AND 1e15
    GROUP BY cluster_id, date_trunc('hour', event_time), principal, client_id
)
SELECT
    m.cluster_id, m.hour, m.group_id, m.member_id, m.principal, m.client_id,
    CASE
        WHEN m.throttled_requests > 0 THEN 'throttled'
        WHEN m.lock_timeouts > 0 THEN 'timing_out'
        WHEN m.acknowledge_errors > 0 THEN 'refused'
        WHEN m.errors > 0 THEN 'failing'
        WHEN m.rejected_records > 0 THEN 'rejecting'
        WHEN m.released_records > 0 THEN 'releasing'
        WHEN m.redelivered_records > 0 THEN 'redelivered'
        WHEN m.acquired_records = 0 THEN 'idle'
        ELSE 'healthy'
    END AS state,
    m.fetches, m.acquired_records, m.redelivered_records,
    m.redelivered_records / nullif(CAST(m.acquired_records AS DOUBLE), 0) AS redelivered_share,
    m.max_delivery_count, m.accepted_records, m.released_records, m.rejected_records,
    m.renewed_records, m.lock_timeouts, m.throttled_redeliveries, m.unexplained_redeliveries,
    m.errors, m.acknowledge_errors, m.error_code, m.throttled_requests, m.throttle_time_ms,
    m.max_throttle_time_ms, m.quota_bytes, m.max_bytes, m.lock_timeout_ms,
    CASE WHEN m.same_clients = 1 THEN p.bytes_consumed END AS bytes_consumed,
    CASE WHEN m.same_clients = 1 AND p.bytes_consumed IS NOT NULL THEN 'telemetry' END AS bytes_source,
    CASE
        WHEN p.bytes_consumed IS NULL THEN 'not_pushed'
        WHEN m.same_clients > 1 THEN 'shared_client_id'
    END AS bytes_unknown_reason,
    m.partitions, m.last_minute
FROM counted AS m
LEFT JOIN pushed AS p
    ON p.cluster_id = m.cluster_id AND p.hour = m.hour
        AND p.principal IS NOT DISTINCT FROM m.principal
        AND p.client_id IS NOT DISTINCT FROM m.client_id
