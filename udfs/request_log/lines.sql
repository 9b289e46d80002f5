-- One row per line that could be read as JSON: the columns of `requests`, why it is unreadable or
-- left out, and what was doubtful. `line_values` has the casts of shape.py.
WITH line_values AS ({line_values}), stated AS (
    SELECT *,
        instant_us(ts) AS instant,
        coalesce(api_name, 'UNKNOWN_' || api_key) AS api
    FROM line_values
), timed AS (
    {timed}
), named AS (
    SELECT *,
        CASE WHEN ts_us IS NULL OR record_us IS NULL THEN coalesce(ts_us, record_us)
            -- A clock that is ahead must not make later lines late.
            ELSE least(ts_us, record_us + $max_clock_skew_us) END AS event_us,
        (ts IS NOT NULL AND ts_us IS NULL AND NOT ($time_zone IS NULL AND is_zoneless(ts)))
            OR coalesce(abs(ts_us - record_us) > 86_400_000_000, false) AS implausible_time,
        -- What names the broker as such comes before what may name something else.
        coalesce(stated_broker(broker), stated_broker(header_broker), stated_broker(origin),
            named_broker(key, $brokers),
            list_filter(list_transform(names, lambda name: named_broker(name, $brokers)),
                lambda id: id IS NOT NULL)[1]) AS broker_id,
        regexp_extract(connection_id, '^.*?:[0-9]+-(.+:[0-9]+)-[0-9]+(?:-[0-9]+)?$', 1) AS remote,
        coalesce(requested_transactional_id, v3_transactional_id) AS transactional_id,
        -- INIT_PRODUCER_ID and END_TXN v5 return the id to use from now on; others name theirs.
        CASE WHEN answered_id >= 0 THEN answered_id END AS new_id,
        CASE WHEN coalesce(requested_id, v3_id) >= 0 THEN coalesce(requested_id, v3_id) END AS named_id,
        api = 'FETCH' AS is_fetch,
        -- What the broker's own sampling says: as many requests as conf lets a line stand for.
        coalesce(stated_weight NOT BETWEEN 1 AND 1_000, false) AS is_odd_weight
    FROM timed
), finished AS (
    SELECT *,
        coalesce(new_id, named_id) AS producer_id,
        broker_id IS NULL AND (name_number(key) IS NOT NULL OR coalesce(list_bool_or(
            list_transform(names, lambda name: name_number(name) IS NOT NULL)), false))
            AS unknown_broker,
        CASE WHEN new_id IS NOT NULL THEN answered_epoch
            WHEN named_id IS NOT NULL THEN coalesce(requested_epoch, v3_epoch) END AS producer_epoch,
        CASE WHEN api IS NULL THEN 'not_a_request_line'
            WHEN is_absurd THEN 'unexpected_shape'
            WHEN event_us IS NULL THEN 'no_time' END AS reason,
        -- By what the broker knows of the request, never by what a client may write.
        CASE WHEN is_forwarded THEN 'forwarded_copy'
            WHEN list_contains($controller_listeners, listener)
                AND (list_contains($raft_apis, api) OR is_fetch AND is_of_raft_log) THEN 'raft'
            WHEN list_contains($shippers, client_id)
                AND list_contains($shipper_principals, principal) THEN 'own_shipper'
        END AS left_out_by_kind
    FROM named
), weighted AS (
    SELECT *,
        -- A line that was throttled or names a producer is kept.
        CASE WHEN producer_id IS NULL AND transactional_id IS NULL AND coalesce(throttle_time_ms, 0) <= 0
            THEN {one_of} ELSE 1 END AS one_of
    FROM finished
)
SELECT
    line,
    make_timestamp(event_us) AS event_time,
    broker_id,
    api,
    api_version,
    correlation_id,
    principal,
    client_id,
    client_software_name,
    client_software_version,
    nullif(regexp_extract(remote, '^(.*):[0-9]+$', 1), '') AS client_address,
    int32(regexp_extract(remote, '[0-9]+$')) AS client_port,
    listener,
    security_protocol,
    connection_id,
    error_code,
    total_time_ms,
    request_queue_time_ms,
    local_time_ms,
    remote_time_ms,
    throttle_time_ms,
    response_queue_time_ms,
    send_time_ms,
    CASE WHEN is_fetch THEN max_bytes END AS max_bytes,
    CASE WHEN is_fetch THEN min_bytes END AS min_bytes,
    CASE WHEN is_fetch THEN max_wait_ms END AS max_wait_ms,
    CASE WHEN is_fetch THEN isolation_level END AS isolation_level,
    CASE WHEN api = 'PRODUCE' THEN acks END AS acks,
    CASE WHEN is_fetch THEN session_id END AS session_id,
    CASE WHEN is_fetch THEN session_epoch END AS session_epoch,
    CASE WHEN is_fetch THEN response_session_id END AS response_session_id,
    CASE WHEN is_fetch THEN nullif(rack, '') END AS rack_id,
    CASE WHEN is_fetch AND coalesce(state_replica_id, fetch_replica_id) >= 0
        THEN coalesce(state_replica_id, fetch_replica_id) END AS replica_id,
    group_id,
    transactional_id,
    producer_id,
    producer_epoch,
    CAST(one_of * CASE WHEN is_odd_weight THEN 1 ELSE coalesce(stated_weight, 1) END AS DOUBLE)
        AS weight,
    reason,
    CASE WHEN reason IS NULL THEN coalesce(left_out_by_kind,
        CASE WHEN one_of > 1
            -- A line that a shipper sends again is sampled alike. A client cannot choose what decides.
            AND md5_number_lower(concat_ws(':', connection_id, event_us, total_time_ms)) % one_of <> 0
            THEN 'sampled' END) END AS left_out,
    implausible_time,
    ambiguous_time,
    unreadable_numbers OR is_odd_weight AS unreadable_numbers,
    unknown_broker,
    has_forgotten,
    form,
    make_timestamp(ts_us) AS stated_time,
    make_timestamp(other_us) AS other_time,
    -- A PRODUCE without acknowledgement has no response.
    has_request AND (has_response OR api = 'PRODUCE') AS has_bodies
FROM weighted
