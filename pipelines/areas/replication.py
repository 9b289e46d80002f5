"""Replication around the topics of a client: moves, throttles, and brokers whose clients wait."""

from collections.abc import Iterator

from quotaflow.pipelines.areas.finding import (
    FACT,
    PROBLEM,
    Finding,
    Row,
    amount,
    last_day,
    moment,
)
from quotaflow.pipelines.areas.scope import Scope
from quotaflow.udfs.counted import counted, noun

NAME = "replication"
TABLES = (
    "reassignments",
    "replication_throttles",
    "throttle_checks",
    "min_isr_shrinks",
    "broker_degradation",
)

_MOVES = (
    "SELECT topic, state, CAST(count(*) AS BIGINT) AS replicas, min(partition) AS partition, "
    "max(requested_time) AS requested_time, min(requested_by) AS requested_by, "
    "max(joined_time) AS joined_time, CAST(sum(bytes_left) AS DOUBLE) AS bytes_left, "
    "max(eta_s) AS eta_s FROM reassignments WHERE {of_cluster} AND {is_topic} "
    "AND requested_time < {until} AND state NOT IN ('in_place') AND (state NOT IN "
    "('done', 'cancelled') OR coalesce(joined_time, requested_time) >= {day}) "
    "GROUP BY topic, state ORDER BY topic, state"
    " LIMIT {limit}"
)
_THROTTLES = (
    "SELECT topic, side, broker_id, max(rate) AS rate, max(event_time) AS event_time, "
    "max(rate_set_by) AS rate_set_by, CAST(sum(stalled_fetches) AS BIGINT) AS stalled_fetches "
    "FROM replication_throttles WHERE {of_cluster} AND {is_topic} AND event_time >= {day} "
    "AND event_time < {until} AND is_biting GROUP BY topic, side, broker_id "
    "ORDER BY topic, side, broker_id"
    " LIMIT {limit}"
)
_CHECKS = (
    "SELECT finding, topic, side, broker_id, rate, set_by, set_at FROM throttle_checks "
    "WHERE {of_cluster} AND {is_topic} ORDER BY finding, topic, broker_id"
    " LIMIT {limit}"
)
_SHRINKS = (
    "SELECT topic, partition, event_time, in_sync, replicas, min_in_sync FROM min_isr_shrinks "
    "WHERE {of_cluster} AND {is_topic} AND event_time >= {day} AND event_time < {until} "
    "QUALIFY row_number() OVER (PARTITION BY topic, partition ORDER BY event_time DESC) = 1 "
    "ORDER BY event_time DESC, topic, partition"
    " LIMIT {limit}"
)
_DEGRADED = (
    "SELECT * FROM broker_degradation WHERE {of_cluster} AND {within:event_time} AND is_slow "
    "AND broker_id IN (SELECT broker_id FROM quota_usage WHERE {of_cluster} AND {is_client} "
    "AND {within:event_time}) ORDER BY event_time DESC, broker_id"
    " LIMIT {limit}"
)
_AT_WORK = {"moving", "waiting"}
_ENDED = {"done", "cancelled"}


def findings(scope: Scope) -> Iterator[Finding]:
    """Moves of its topics, what holds them back, and brokers that are slow for their clients."""
    for row in scope.rows(_MOVES):
        yield _move(row)
    for row in scope.rows(_THROTTLES):
        yield _throttled(row)
    if not scope.is_recent:
        yield last_day("throttle_checks")
    for row in scope.rows(_CHECKS) if scope.is_recent else ():
        yield Finding(
            text=f"throttle of {row['topic']}: {row['finding']}.",
            state=PROBLEM,
            next_step="see docs/replication.md for what each finding means",
            evidence_table="throttle_checks",
            evidence=row,
        )
    for row in scope.rows(_SHRINKS):
        yield _shrink(row)
    for row in scope.rows(_DEGRADED):
        yield _degraded(row)


def _move(row: Row) -> Finding:
    state = row["state"]
    left = f", {row['bytes_left'] / 1e6:,.1f} MB are left" if row["bytes_left"] else ""
    eta = f", about {row['eta_s']:,.0f} s to go" if row["eta_s"] is not None else ""
    by = f" by {row['requested_by']}" if row["requested_by"] else ""
    return Finding(
        text=(
            f"{counted(row['replicas'], 'replica')} of {row['topic']} "
            f"{noun(row['replicas'], 'is', 'are')} {state}: requested{by} at "
            f"{moment(row['requested_time'])}{left}{eta}."
        ),
        state=FACT if state in _AT_WORK | _ENDED else PROBLEM,
        next_step=None if state in _ENDED else "see reassignments and move_progress",
        evidence_table="reassignments",
        evidence=row,
    )


def _throttled(row: Row) -> Finding:
    stalled = amount(row["stalled_fetches"])
    return Finding(
        text=(
            f"a throttle of {amount(row['rate'])} bytes/s slows replication of {row['topic']} at "
            f"the {row['side']} {row['broker_id']}: {stalled} "
            f"{noun(stalled, 'fetch', 'fetches')} stalled."
        ),
        next_step="see throttle_timeline for who set it, replication_rate_advice for the rate",
        evidence_table="replication_throttles",
        evidence=row,
    )


def _shrink(row: Row) -> Finding:
    return Finding(
        text=(
            f"{row['topic']}-{row['partition']} had {row['in_sync']} of "
            f"{counted(row['replicas'], 'replica')} in sync at {moment(row['event_time'])}, and "
            f"min.insync.replicas is {row['min_in_sync']}: PRODUCE with acks=all may wait or fail."
        ),
        state=PROBLEM,
        next_step="see replica_lag for the followers that are behind",
        evidence_table="min_isr_shrinks",
        evidence=row,
    )


def _degraded(row: Row) -> Finding:
    p99 = {"PRODUCE": "produce_p99_ms", "FETCH": "fetch_p99_ms"}
    slow = [
        f"p99 of {api} {row[column]:,.0f} ms, usually {row[f'usual_{column}']:,.0f}"
        for api, column in p99.items()
        if row[column] is not None and row[f"usual_{column}"] is not None
    ]
    if row["shrunk_partitions"]:
        shrunk = counted(row["shrunk_partitions"], "partition is", "partitions are")
        slow.append(f"{shrunk} down to min.insync.replicas")
    return Finding(
        text=f"all clients of broker {row['broker_id']} wait at {moment(row['event_time'])}: "
        f"{', '.join(slow)}.",
        state=PROBLEM,
        next_step="see slowest_brokers and replication_rates of that broker",
        evidence_table="broker_degradation",
        evidence=row,
    )
