-- kind: result
-- grain: one row per principal, broker and second
-- area: producer_ids
-- level: admin_api
-- question: Rates of new producer ids. Who takes new producer ids, and how fast beside the quota?
-- description: New producer ids {per} (KIP-936). A sum needs one kind: ids that principals took are
--   those with kind = 'allocation'. Open loop: no client was throttled. Aligned time:
--   the broker's own figures may differ by one sample
-- key: cluster_id, event_time, broker_id, principal, kind
-- time: event_time
-- partitioning: event_date, kind
-- facts: requests
-- relevant: producer_id >= 0 AND coalesce(error_code, 0) = 0 AND principal IS NOT NULL
-- scope: kind = 'allocation'
-- bucket: 1 min
-- lookback: $id_memory_s
-- carry: 1 d
-- carry_key: cluster_id, broker_id, principal
-- warm_up: $id_rate_period_s
-- split_by: cluster_id, broker_id, principal
-- columns:
--   from requests: cluster_id
--   event_date DATE: UTC date of event_time
--   event_time TIMESTAMP: start of the aligned second
--   broker_id INT: broker that counted: the one that answered; for activations the partition's
--     leader
--   principal STRING: principal, as Kafka prints it; null for activations of ids of unknown owner
--   kind STRING: allocation: ids handed out or used in transactions, by the second; activation: ids
--     a leader had for the first time, by the snapshot. Do not add the kinds up
--   sightings BIGINT: producer ids used in this second, repeats included
--   new_ids BIGINT: ids the timed Bloom filter had not seen. A filter starts in each window of conf
--     (producer.id.quota.window.size.seconds), so an id counts again after a pause of half to one
--     and a half windows
--   new_ids_exact BIGINT: ids new by exact count, beside the filter's
--   rate_per_s DOUBLE: new_ids over the aligned windows ending here / their span; for activations,
--     over the time since the snapshot before, null at the first
--   tokens DOUBLE: token bucket: quota x windows x size at most; may be negative; null for
--     activations and without a quota
--   quota_per_s DOUBLE: producer_ids_rate of this principal, from conf; null: unlimited, the KIP's
--     default
--   throttle_time_ms BIGINT: -tokens / quota in ms, 0 while tokens are left; null for activations
--     and without a quota
--   throttle_time_avg_ms DOUBLE: mean of the throttle times of the windows ending here, one for
--     each second with new ids over the quota; 0: there were none (the KIP's throttle-time); null
--     without a quota
--   is_violating BOOLEAN: tokens below zero; for activations, rate over quota; false without a
--     quota

-- New producer ids per principal, broker and second, their rate, and their token bucket (KIP-936,
-- Kafka's TokenBucket). Each principal at each broker has a bucket. Its tokens are integers in
-- thousandths here, so that sums are exact. A second has a row while its rate includes a sighting.
-- A principal without a quota is unlimited: it has no tokens, and violates nothing.
WITH
-- A row per sighting: the last sighting of the same id before it.
sightings AS (
    SELECT *, lag(event_ms) OVER of_id AS last_ms
    FROM flagged_sightings
    WINDOW of_id AS (PARTITION BY cluster_id, broker_id, principal, producer_id ORDER BY event_ms)
),
-- The same rows, with what a filter that makes no mistakes would answer. It remembers an id until
-- the end of the window, and in the first half of the next one.
compared AS (
    SELECT
        *,
        event_ms // $id_window_ms - last_ms // $id_window_ms AS windows_ago,
        if(2 * (event_ms % $id_window_ms) < $id_window_ms, 1, 0) AS windows_remembered,
        coalesce(windows_ago > windows_remembered, true) AS is_new_exact
    FROM sightings
),
-- A row per bucket and second with sightings.
counted AS (
    SELECT
        cluster_id, broker_id, principal, event_ms // 1_000 AS second,
        count(*) AS sightings,
        count(*) FILTER (is_new) AS new_ids,
        count(*) FILTER (is_new_exact) AS new_ids_exact
    FROM compared
    GROUP BY ALL
),
-- A row per bucket that the table has already: its last second before $since.
carried AS (
    SELECT
        cluster_id, broker_id, principal, epoch_seconds(event_time) AS second,
        CAST(round(tokens * 1_000) AS BIGINT) AS carried_milli
    FROM carried_rows
),
-- A row per bucket and second with sightings or with carried tokens (max: there is one of each).
-- Buckets have numbers, because windows over numbers are faster than over text.
changes AS (
    SELECT
        cluster_id, broker_id, principal, second,
        dense_rank() OVER (ORDER BY cluster_id, broker_id, principal) AS bucket,
        coalesce(max(sightings), 0) AS sightings,
        coalesce(max(new_ids), 0) AS new_ids,
        coalesce(max(new_ids_exact), 0) AS new_ids_exact,
        max(carried_milli) AS carried_milli
    FROM (SELECT * FROM counted UNION ALL BY NAME SELECT * FROM carried)
    GROUP BY cluster_id, broker_id, principal, second
),
-- The same rows. `last_second`: the last one whose rate includes a sighting up to this row.
-- What was spent before $since is subtracted from the carried tokens already.
spending AS (
    SELECT
        changes.*,
        coalesce(quota_milli, $default_quota_milli::BIGINT) AS quota_milli,
        if(second >= epoch_seconds($since), new_ids * 1_000, 0) AS spent_milli,
        max(
            if(sightings > 0, second // $id_window_s * $id_window_s + $id_rate_period_s - 1, second)
        ) OVER of_bucket AS last_second,
        lead(second) OVER of_bucket AS next_second
    FROM changes LEFT JOIN producer_id_quotas USING (principal)
    WINDOW of_bucket AS (PARTITION BY bucket ORDER BY second)
),
-- The same rows, with whether a day without rows went before: then the bucket is full again.
gaps AS (
    SELECT
        *,
        second - lag(last_second) OVER of_bucket > $carry_s AS is_full_again
    FROM spending
    WINDOW of_bucket AS (PARTITION BY bucket ORDER BY second)
),
-- The same rows, numbered by how often the bucket was full again.
runs AS (
    SELECT *, count(*) FILTER (is_full_again) OVER (PARTITION BY bucket ORDER BY second) AS run
    FROM gaps
),
-- The same rows, with what the run spent up to and including this second.
spent AS (
    SELECT
        *,
        CAST(sum(spent_milli) OVER of_run AS BIGINT) AS run_spent_milli
    FROM runs
    WINDOW of_run AS (PARTITION BY bucket, run ORDER BY second)
),
-- The same rows with the tokens that are left after the second. Kafka's
--     tokens(i) = min(burst, tokens(i-1) + quota * seconds between) - spent(i)
-- is the same as the following, where N(i) is the sum of spent up to i:
--     quota * t(i) - N(i) + min over all j up to i of (burst - quota * t(j) + N(j) - spent(j)).
buckets AS (
    SELECT
        *,
        quota_milli * second - run_spent_milli + min(
            coalesce(carried_milli, quota_milli * $id_rate_period_s)
            - quota_milli * second + run_spent_milli - spent_milli
        ) OVER of_run AS left_milli
    FROM spent
    WINDOW of_run AS (PARTITION BY bucket, run ORDER BY second)
),
-- A row per bucket and second until the next change, or until the rate includes no sighting.
every_second AS (
    SELECT
        *,
        unnest(
            range(second, least(last_second + 1, coalesce(next_second, last_second + 1)))
        ) AS row_second
    FROM buckets
),
-- The same rows: counts belong to the second of the change alone, and tokens come back after it.
filled AS (
    SELECT
        cluster_id, broker_id, principal, bucket, row_second, quota_milli,
        if(row_second = second, sightings, 0) AS sightings,
        if(row_second = second, new_ids, 0) AS new_ids,
        if(row_second = second, new_ids_exact, 0) AS new_ids_exact,
        least(
            quota_milli * $id_rate_period_s, left_milli + quota_milli * (row_second - second)
        ) AS tokens_milli,
        CASE
            WHEN tokens_milli < 0 THEN CAST(round(-tokens_milli * 1_000 / quota_milli) AS BIGINT)
            WHEN tokens_milli >= 0 THEN 0
        END AS throttle_time_ms,
        -- KIP-936 throttles requests with new ids; other seconds have no throttle time to average.
        CASE WHEN row_second = second AND new_ids > 0 AND tokens_milli < 0 THEN throttle_time_ms
        END AS measured_ms
    FROM every_second
)
SELECT
    cluster_id,
    CAST(from_seconds(row_second) AS DATE) AS event_date,
    from_seconds(row_second) AS event_time,
    broker_id, principal, 'allocation' AS kind, sightings, new_ids, new_ids_exact,
    sum(new_ids) OVER rate_period / $id_rate_period_s AS rate_per_s,
    tokens_milli / 1e3 AS tokens,
    quota_milli / 1e3 AS quota_per_s,
    throttle_time_ms,
    CASE WHEN quota_milli IS NOT NULL THEN coalesce(avg(measured_ms) OVER rate_period, 0) END
        AS throttle_time_avg_ms,
    coalesce(tokens_milli < 0, false) AS is_violating
FROM filled
-- The aligned windows, the last of which has this second.
WINDOW rate_period AS (
    PARTITION BY bucket ORDER BY row_second
    RANGE BETWEEN row_second % $id_window_s + $id_rate_period_s - $id_window_s PRECEDING AND CURRENT ROW
)
QUALIFY row_second >= epoch_seconds($since)
