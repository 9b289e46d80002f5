-- kind: mart
-- grain: one row per broker and side with a replication throttle or a move in the last hour with
--   replication
-- area: replication
-- level: sampled_log
-- question: Fitting throttle rates. Which rate of a replication throttle fits now?
-- description: The rate that each replication throttle should have now (KIP-73), and the numbers behind
--   it (replication_demand). What a broker carried so far is no capacity: without one in conf no rate
--   is advised but as much as is written, and less while clients are degraded. A rate is never below 1 MB/s, because brokers do not measure well below
--   it, and never below floor_bytes_per_s. tests/oracle/rules/throttle_rate.py is a reference of the rule.
-- columns:
--   from replication_demand: cluster_id, broker_id, side
--   recommended: rate to set, in bytes per second; null: none can be advised
--   reason: headroom (conf's share of the free capacity), floor (what is written, up to max_step_factor
--     times that if a lower rate was set and clients are well), step_bound (on the way to one of
--     these), unchanged, cooldown (changed less than cooldown_s ago), clients_degraded; or why there is
--     no rate: capacity_unknown, floor_exceeds_capacity, floor_exceeds_capacity_and_clients_degraded
--   from replication_demand: rate, rate_source, rate_set_at, rate_set_by, rate_set_by_client_id,
--     rate_age_s, is_listed, is_moving, is_used, replicas_behind, capacity_bytes_per_s,
--     capacity_source, carried_at_most_bytes_per_s, other_bytes_per_s, floor_bytes_per_s,
--     are_clients_healthy, produce_p99_ms, usual_produce_p99_ms, fetch_p99_ms, usual_fetch_p99_ms, shrunk_partitions, since, event_time
WITH sized AS (
    SELECT
        *,
        capacity_bytes_per_s - other_bytes_per_s AS left_bytes_per_s,
        greatest(floor_bytes_per_s, 1e6) AS lowest,
        share * (capacity_bytes_per_s - other_bytes_per_s) AS highest
    FROM replication_demand
),
aimed AS (
    SELECT
        *,
        CASE WHEN highest > lowest THEN highest ELSE lowest END AS target,
        CASE WHEN highest > lowest THEN 'headroom' ELSE 'floor' END AS target_reason,
        greatest(rate / max_step_factor, lowest) AS step_down
    FROM sized
),
stepped AS (
    SELECT
        *,
        -- If the free capacity says how much less, no less than that, so that it need not rise again.
        CASE WHEN target < rate THEN greatest(target, step_down) ELSE step_down END AS relief,
        least(greatest(target, step_down), rate * max_step_factor) AS step
    FROM aimed
),
decided AS (
    SELECT
        *,
        CASE
            WHEN
                capacity_bytes_per_s IS NULL
                AND (rate IS NULL OR (rate >= lowest AND are_clients_healthy IS DISTINCT FROM false))
                THEN 'capacity_unknown'
            WHEN lowest > left_bytes_per_s AND are_clients_healthy IS DISTINCT FROM false
                THEN 'floor_exceeds_capacity'
            WHEN lowest > left_bytes_per_s THEN 'floor_exceeds_capacity_and_clients_degraded'
            WHEN rate IS NULL THEN target_reason
            WHEN rate < lowest THEN 'floor'
            WHEN NOT are_clients_healthy AND relief < rate THEN 'clients_degraded'
            WHEN NOT are_clients_healthy THEN 'unchanged'
            WHEN rate_age_s < cooldown_s THEN 'cooldown'
            WHEN abs(target - rate) < hysteresis * rate THEN 'unchanged'
            WHEN step = target THEN target_reason
            ELSE 'step_bound'
        END AS reason
    FROM stepped
)

SELECT
    *,
    CASE
        WHEN reason = 'capacity_unknown' OR reason LIKE 'floor_exceeds_capacity%' THEN NULL
        WHEN rate IS NULL THEN target
        -- At the floor it would keep up and never come nearer.
        WHEN rate < lowest AND are_clients_healthy IS DISTINCT FROM false
            THEN least(target, lowest * max_step_factor)
        WHEN rate < lowest THEN lowest
        WHEN reason IN ('unchanged', 'cooldown') THEN rate
        WHEN reason = 'clients_degraded' THEN relief
        ELSE step
    END AS recommended
FROM decided
