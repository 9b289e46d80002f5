-- What rules of several results may use. Words of the engine itself are in udfs/engine/macros.sql.

-- The name by which quotas know a principal: what follows its type.
CREATE MACRO user_of(principal) AS substring(principal, instr(principal, ':') + 1);

-- Whole microseconds of a time in ms; 0 where there is none.
CREATE MACRO whole_us(ms) AS greatest(coalesce(TRY_CAST(round(ms * 1_000) AS BIGINT), 0), 0);

-- The bytes of each partition that moved records: a refused partition moves nothing. Without acks
-- (acks=0) no refusal is ever reported. To filter a list of numbers costs a third of what it costs
-- to filter a list of structs.
CREATE MACRO moved_bytes(partitions) AS list_filter(
    [if(coalesce(p.error_code, 0) = 0, p.bytes, NULL) FOR p IN partitions], lambda b: b > 0);

-- Macros of relations: FROM with_topics(rows, topics). Rows with cluster_id and minute_end look up
-- what snapshots found before minute_end.

-- Rows of snapshots with `since`: from when each is valid.
CREATE MACRO with_since(changes) AS TABLE
    SELECT c.*, since_of(c.event_time, f.first_snapshot) AS since
    FROM query_table(changes) c
    JOIN (
        SELECT cluster_id, min(event_time) AS first_snapshot
        FROM query_table(changes)
        GROUP BY cluster_id
    ) f USING (cluster_id);

-- Rows with the name of a topic where they have only its id. `names` is topics_by_id.
CREATE MACRO with_names(rows, names) AS TABLE
    SELECT r.* REPLACE (coalesce(r.topic, n.topic) AS topic)
    FROM query_table(rows) r
    LEFT JOIN query_table(names) n ON n.cluster_id = r.cluster_id AND n.topic_id = r.topic_id;

-- Rows with the id of a topic where they have only its name, and the name where they have only the
-- id. A name has no id after its topic is removed. `names` is topics_by_id.
CREATE MACRO with_topics(rows, topics, names) AS TABLE
    WITH ids AS (
        SELECT cluster_id, topic, since, max(topic_id) FILTER (NOT is_removed) AS known_id
        FROM with_since(topics)
        GROUP BY ALL
    ),
    with_ids AS (
        SELECT r.* REPLACE (coalesce(r.topic_id, i.known_id) AS topic_id)
        FROM query_table(rows) r
        ASOF LEFT JOIN ids i
            ON i.cluster_id = r.cluster_id AND i.topic = r.topic AND r.minute_end > i.since
    )
    FROM with_names(with_ids, names);

-- Replicas of partitions (cluster_id, topic_id, partition) at minute_end: a row per replica that is
-- assigned. leader_id is that of the partition: of several replicas marked as its leader the one
-- that was assigned first. `snapshot_time` is that of the snapshot that found this state. It is
-- later than the minute only before the first snapshot.
CREATE MACRO replicas_at(partitions, replicas) AS TABLE
    WITH minutes AS (
        SELECT DISTINCT cluster_id, topic_id, "partition", minute_end FROM query_table(partitions)
    ),
    -- A row: a state of a replica. Of two states at one time the one that sorts last counts.
    states AS (
        SELECT cluster_id, topic_id, "partition", broker_id, since, max({
            is_leader: coalesce(is_leader, false), is_in_sync: coalesce(is_in_sync, false),
            is_offline: coalesce(is_offline, false), is_removed: coalesce(is_removed, false),
            snapshot_time: event_time}) AS state
        FROM with_since(replicas)
        SEMI JOIN minutes USING (cluster_id, topic_id, "partition")
        GROUP BY ALL
    ),
    assigned AS (
        SELECT cluster_id, topic_id, "partition", broker_id, min(since) AS assigned_since
        FROM states
        GROUP BY ALL
    ),
    current AS (
        SELECT m.*, a.broker_id, a.assigned_since, unnest(s.state)
        FROM minutes m
        JOIN assigned a USING (cluster_id, topic_id, "partition")
        ASOF JOIN states s
            ON s.cluster_id = m.cluster_id AND s.topic_id = m.topic_id
            AND s."partition" = m."partition" AND s.broker_id = a.broker_id
            AND m.minute_end > s.since
    )
    SELECT
        * EXCLUDE (is_removed),
        arg_min(broker_id, {assigned_since: assigned_since, broker_id: broker_id})
            FILTER (is_leader)
            OVER (PARTITION BY cluster_id, topic_id, "partition", minute_end) AS leader_id
    FROM current
    WHERE NOT is_removed;

-- An address as hex digits that compare as addresses do: 8 of IPv4, 32 of IPv6. Java prints all
-- eight groups of an IPv6 address, without leading zeros, and its zone.
CREATE MACRO address_digits(address) AS
    CASE WHEN regexp_full_match(address, '\d{1,3}(\.\d{1,3}){3}')
        THEN array_to_string(
            [printf('%02x', CAST(byte AS INT)) FOR byte IN string_split(address, '.')], '')
        ELSE lower(array_to_string(
            [lpad(part, 4, '0') FOR part IN string_split(split_part(address, '%', 1), ':')], ''))
    END;

-- The rack of each client of these rows that names none in its requests, and the source of the rack:
-- `address`, a network of conf that contains its address (of several the narrowest, which has the
-- least place), else `client_id`, the group of the first pattern of conf that its client id matches.
-- A client chooses its id, so what is known by it alone changes nothing in the cluster. `rows` is a
-- relation of facts: a CTE that is read twice would be stored whole.
CREATE MACRO inferred_racks(rows, racks, rack_patterns) AS TABLE
    WITH clients AS (
        SELECT DISTINCT client_address, client_id FROM query_table(rows)
    ),
    by_address AS (
        SELECT a.client_address, arg_min(r.rack, r.place) AS rack
        FROM (
            SELECT client_address, address_digits(client_address) AS digits
            FROM (SELECT DISTINCT client_address FROM clients)
        ) a
        JOIN query_table(racks) r
            ON r.length = length(a.digits) AND a.digits BETWEEN r.first AND r.last
        GROUP BY a.client_address
    ),
    by_client_id AS (
        SELECT client_id, arg_min(rack, place) AS rack
        FROM (
            SELECT
                c.client_id, p.place,
                left(regexp_extract(left(c.client_id, 500), p.pattern, 1), 100) AS rack
            FROM (SELECT DISTINCT client_id FROM clients) c
            CROSS JOIN query_table(rack_patterns) p
        )
        WHERE rack <> ''
        GROUP BY client_id
    )
    SELECT
        c.client_address, c.client_id, coalesce(a.rack, i.rack) AS rack,
        if(a.rack IS NULL, 'client_id', 'address') AS source
    FROM clients c
    LEFT JOIN by_address a ON a.client_address = c.client_address
    LEFT JOIN by_client_id i ON i.client_id = c.client_id
    WHERE coalesce(a.rack, i.rack) IS NOT NULL;

-- Those of these bytes that cross racks; null: one of the racks is not known.
CREATE MACRO cross_rack(client_rack, broker_rack, bytes) AS
    CASE WHEN client_rack <> broker_rack THEN bytes WHEN client_rack = broker_rack THEN 0 END;

-- Rows with the rack of their client, by minute_end, if a broker of the cluster has it by then: what
-- moved to another one crossed no rack that is known. `racks` is known_racks.
CREATE MACRO with_own_rack(rows, racks) AS TABLE
    SELECT r.*, CASE WHEN EXISTS (
        FROM query_table(racks) known
        WHERE known.cluster_id = r.cluster_id AND known.since < r.minute_end
            AND (known.rack IS NULL OR known.rack = r.client_rack)
    ) THEN r.client_rack END AS own_rack
    FROM query_table(rows) r;

-- Which replica a consumer in a rack should read from, and why, if `selector` is the leader's
-- replica.selector.class (KIP-392). `replicas` are structs of broker_id, rack, is_rack_known,
-- is_leader, is_in_sync and is_offline. A snapshot has no log ends, so each follower that is in
-- sync counts as one that has the offset. Of these the greatest broker id is chosen.
CREATE MACRO in_rack(replicas, rack) AS
    list_filter(replicas, lambda r: NOT r.is_leader AND r.rack = rack);
CREATE MACRO eligible_in(replicas, rack) AS
    [r.broker_id FOR r IN in_rack(replicas, rack) IF r.is_in_sync AND NOT r.is_offline];
-- The reason, in the words of tests/oracle/rules/replica.py; null: not known. To Kafka an empty class, or
-- rack, is none.
CREATE MACRO choice_reason(leader, replicas, selector, rack) AS CASE
    WHEN leader IS NULL THEN NULL
    WHEN coalesce(selector, '') = '' THEN 'no_selector'
    WHEN selector <> 'org.apache.kafka.common.replica.RackAwareReplicaSelector'
        THEN 'selector_unknown'
    WHEN coalesce(rack, '') = '' THEN 'no_client_rack'
    WHEN NOT list_bool_and([r.is_rack_known FOR r IN replicas]) THEN NULL
    WHEN leader.rack = rack AND NOT leader.is_offline THEN 'leader_in_rack'
    WHEN len(eligible_in(replicas, rack)) > 0 THEN 'follower_in_rack'
    WHEN len(in_rack(replicas, rack)) > 0 THEN 'not_eligible_in_rack'
    ELSE 'no_replica_in_rack' END;
CREATE MACRO chosen_replica(reason, leader, replicas, rack) AS CASE
    WHEN reason = 'follower_in_rack' THEN list_max(eligible_in(replicas, rack))
    WHEN reason <> 'selector_unknown' THEN leader.broker_id END;

-- How many offsets a fetch is behind a high watermark; below 0 it is ahead. Null if the number is
-- out of range: a client can say that it is a follower, and ask from any offset.
CREATE MACRO lag_of(high_watermark, fetch_offset) AS
    TRY_CAST(high_watermark::HUGEINT - fetch_offset AS BIGINT);

-- Lists of configs: elements between commas, and the text of such a list. Empty elements are none.
CREATE MACRO parts_of(value) AS
    list_filter(string_split(coalesce(value, ''), ','), lambda part: part <> '');
CREATE MACRO list_text(parts) AS array_to_string(parts, ',');

-- The value of a config after an operation, as the controller alters it (AlterConfigOp.OpType).
-- Null: not set. A list that loses its last element is empty, and set.
CREATE MACRO altered_value(value, operation, operand) AS CASE operation
    WHEN 'SET' THEN operand
    WHEN 'APPEND' THEN list_text(parts_of(value) || list_filter(
        distinct_of(parts_of(operand)),
        lambda part: NOT list_contains(parts_of(value), part)))
    WHEN 'SUBTRACT' THEN list_text(list_filter(
        parts_of(value), lambda part: NOT list_contains(parts_of(operand), part)))
END;

-- The elements of a list of throttled replicas that name a replica, as partition:broker.
CREATE MACRO throttled_entries(elements) AS [
    element FOR element IN elements
    IF regexp_full_match(element, '[0-9]+:[0-9]+')
        AND int_or_null(split_part(element, ':', 1)) IS NOT NULL
        AND int_or_null(split_part(element, ':', 2)) IS NOT NULL
];

-- Whether a list of throttled replicas (KIP-73) names the replica of a partition at a broker.
CREATE MACRO lists_replica(list, partition_id, broker_id) AS coalesce(
    list = '*' OR list_contains(string_split(list, ','), partition_id || ':' || broker_id), false);

-- A list for unnest(), which drops rows whose list is null or empty: these keep one, with null.
CREATE MACRO or_null(l) AS if(len(l) > 0, l, [NULL]);

-- Why a replication throttle does not limit one side of a replication, or what is not known of it;
-- null if it bites (KIP-73). Reasons and sides are those of tests/oracle/rules/replication_throttle.py.
CREATE MACRO throttle_reason(
    side, is_listed, rate_source, is_broker_removed, is_replicating, has_other_leader, is_in_sync,
    is_lagging, peak_rate, rate, stalled_fetches
) AS CASE
    -- It is not configured: it needs a list and a rate.
    WHEN is_listed IS NULL THEN 'list_unknown'
    WHEN NOT is_listed AND rate_source IN ('dynamic_broker', 'dynamic_default')
        THEN 'rate_without_list'
    WHEN NOT is_listed THEN 'no_throttle'
    WHEN rate_source IS NULL THEN 'rate_unknown'
    WHEN rate_source = 'static' THEN 'static_rate_ignored'
    WHEN rate_source NOT IN ('dynamic_broker', 'dynamic_default') THEN 'list_without_rate'
    -- The broker does not replicate the partition.
    WHEN is_broker_removed THEN 'broker_gone'
    WHEN NOT is_replicating AND has_other_leader AND side = 'leader' THEN 'not_leader'
    WHEN NOT is_replicating THEN 'not_replicating'
    -- Leaders let replicas in sync pass, followers limit what lags.
    WHEN side = 'leader' AND is_in_sync IS NULL THEN 'isr_unknown'
    WHEN side = 'leader' AND is_in_sync THEN 'in_isr'
    WHEN side = 'follower' AND is_lagging IS NULL THEN 'lag_unknown'
    WHEN side = 'follower' AND NOT is_lagging THEN 'follower_caught_up'
    -- It is effective. Rates are of aligned seconds, and can be one sample off the broker's.
    WHEN peak_rate < 0.9::DOUBLE * coalesce(rate, 0) THEN 'under_rate'
    WHEN stalled_fetches = 0 THEN 'no_stalled_fetches'
END;

-- Whether a throttle limits as soon as its rate is reached, and whether it does, by the reason why
-- not. Null: not known.
CREATE MACRO throttle_is_effective(reason) AS CASE
    WHEN ends_with(reason, '_unknown') THEN NULL
    ELSE coalesce(reason IN ('under_rate', 'no_stalled_fetches'), true) END;
CREATE MACRO throttle_is_biting(reason) AS
    CASE WHEN ends_with(reason, '_unknown') THEN NULL ELSE reason IS NULL END;

-- A number above 0, or null.
CREATE MACRO positive(n) AS CASE WHEN n > 0 THEN n END;

-- Windows of clients, with the quota that applies when the window ends, and its bucket: the user
-- and the client id that share it, null for all of them (KIP-13, KIP-55). A client without a quota
-- is a bucket of its own.
-- `windows` names a relation with cluster_id, principal, client_id ('' for none), quota_type,
-- event_time and window_end. Rows of `quota_levels` are udfs/rules/quota.py's LEVELS.
CREATE MACRO with_limits(windows) AS TABLE
WITH changes AS (
    -- A row is a change of the quota of one entity; null if it was removed. Of changes at the same
    -- time the greatest value counts.
    SELECT
        q.cluster_id, q.config_key AS quota_type, l.level, coalesce(q."user", '') AS user_name,
        coalesce(q.client_id, '') AS client_name, coalesce(q.set_at, q.event_time) AS since,
        max(CASE WHEN NOT q.is_removed THEN q.quota END) AS quota
    FROM client_quotas AS q
    JOIN quota_levels AS l
        ON l.of_user = CASE
            WHEN q.is_default_user THEN 'default' WHEN q."user" <> '' THEN 'named' ELSE 'any' END
        AND l.of_client_id = CASE
            WHEN q.is_default_client_id THEN 'default' WHEN q.client_id <> '' THEN 'named'
            ELSE 'any' END
    WHERE q.ip IS NULL AND NOT q.is_default_ip
    GROUP BY ALL
),
periods AS (
    -- A row is the time from one change of an entity's quota to the next.
    SELECT *, lead(since) OVER (
        PARTITION BY cluster_id, quota_type, level, user_name, client_name ORDER BY since
    ) AS until
    FROM changes
),
entities AS (
    -- A row is an entity whose quota a client may have: one per level. To Kafka an empty client id
    -- is none.
    SELECT
        w.*, l.level, if(l.of_user = 'named', user_of(w.principal), '') AS user_name,
        if(l.of_client_id = 'named', w.client_id, '') AS client_name
    FROM (
        SELECT DISTINCT cluster_id, quota_type, principal, client_id, event_time, window_end
        FROM query_table(windows)
    ) AS w
    JOIN quota_levels AS l ON l.of_client_id = 'any' OR w.client_id <> ''
),
limits AS (
    -- A row is a client's window that some quota covers. The lowest level with a quota counts.
    SELECT
        e.cluster_id, e.quota_type, e.principal, e.client_id, e.event_time,
        min(e.level) FILTER (p.quota IS NOT NULL AND coalesce(p.until >= e.window_end, true))
            AS quota_level,
        arg_min(p.quota, e.level) FILTER (coalesce(p.until >= e.window_end, true)) AS quota,
        min(e.level) FILTER (p.since > e.event_time) AS changed_level
    FROM entities AS e
    JOIN periods AS p
        ON p.cluster_id = e.cluster_id AND p.quota_type = e.quota_type AND p.level = e.level
        AND p.user_name = e.user_name AND p.client_name = e.client_name
        AND p.since < e.window_end AND coalesce(p.until > e.event_time, true)
    GROUP BY ALL
)
SELECT
    w.*, f.quota_level, f.quota,
    coalesce(f.changed_level <= coalesce(f.quota_level, f.changed_level), false)
        AS is_quota_changed,
    CASE WHEN coalesce(l.of_user, 'named') <> 'any' THEN user_of(w.principal) END
        AS quota_bucket_user,
    CASE WHEN coalesce(l.of_client_id, 'named') <> 'any' THEN w.client_id END
        AS quota_bucket_client_id
FROM query_table(windows) AS w
LEFT JOIN limits AS f
    ON f.cluster_id = w.cluster_id AND f.quota_type = w.quota_type
    AND f.principal IS NOT DISTINCT FROM w.principal AND f.client_id = w.client_id
    AND f.event_time = w.event_time
LEFT JOIN quota_levels AS l ON l.level = f.quota_level;

-- What a quota of bytes lets through at once: that of all the broker's windows but one, which are
-- `refill_s` long (ClientQuotaManager.maxValueInQuotaWindow). Fetches have limits of 32 bits.
CREATE MACRO quota_window_bytes(quota, refill_s) AS
    CAST(least(floor(quota * refill_s), 2_147_483_647) AS BIGINT);

-- Which quota likely throttled requests that count under a kind of quota: that quota, or the client's
-- of request time; null: none is known that can have. Brokers bound a throttle of request time to one
-- window (ClientRequestQuotaManager), so a longer one is of another quota. `is_unlogged`: its bucket
-- may be fuller than it shows.
CREATE MACRO throttling_quota(quota_type, fullness, time_fullness, is_unlogged, is_long) AS CASE
    WHEN is_long AND quota_type <> 'request_percentage'
        THEN if(fullness IS NOT NULL, quota_type, NULL)
    WHEN is_unlogged AND fullness IS NOT NULL AND coalesce(time_fullness < 1, true) THEN quota_type
    WHEN fullness >= coalesce(time_fullness, fullness) THEN quota_type
    WHEN time_fullness IS NOT NULL THEN 'request_percentage' END;

-- The least of several versions; one that is no number counts last.
CREATE MACRO least_version(version) AS
    min({is_text: version_number(version) IS NULL, number: version_number(version),
        version: version}).version;

-- A number as text without needless digits: 5, not 5.0.
CREATE MACRO number_text(n) AS
    CASE WHEN n = floor(n) AND abs(n) < 1e18 THEN CAST(TRY_CAST(n AS BIGINT) AS VARCHAR)
    ELSE CAST(n AS VARCHAR) END;

-- Tasks of Kafka Streams as it prints them, subtopology_partition, sorted: as answers list them.
CREATE MACRO task_names(tasks) AS list_sort(flatten([
    [left(t.subtopologyId, 32_767) || '_' || p FOR p IN t.partitions] FOR t IN tasks]));

-- Whether a broker refused a member of a group by its generation, epoch or instance:
-- ILLEGAL_GENERATION, FENCED_INSTANCE_ID, FENCED_MEMBER_EPOCH, UNRELEASED_INSTANCE_ID,
-- STALE_MEMBER_EPOCH.
CREATE MACRO is_fenced(error_code) AS coalesce(error_code IN (22, 82, 110, 111, 113), false);

-- What Kafka's protocol can have of a text. A line may have a longer one.
CREATE MACRO kafka_string(value) AS left(value, 32_767);
