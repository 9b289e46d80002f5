"""Replication: moves, throttles, replicas out of sync, and brokers whose clients wait."""

import math
from collections.abc import Iterator, Sequence
from itertools import islice

from quotaflow.pipelines import reasons
from quotaflow.pipelines.areas.finding import (
    NOW,
    SOON,
    Finding,
    RowProblem,
    last_day,
    moment,
)
from quotaflow.pipelines.areas.question import OF_ALL, Question, Row
from quotaflow.pipelines.areas.scope import Scope
from quotaflow.pipelines.terminal import texts
from quotaflow.udfs.counted import counted, noun

NAME = "replication"
TABLES = (
    "reassignments",
    "replication_throttles",
    "throttle_checks",
    "isr_shrinks",
    "broker_degradation",
)

_ENDED = {"done", "cancelled"}
STUCK = {"never_converges", "stuck"}
"""States of moves that do not come to an end."""
_STALE = "stale_"
_MOVES_OF_NAME = (
    "SELECT topic, state, CAST(count(*) AS BIGINT) AS replicas, min(partition) AS partition, "
    "max(requested_time) AS requested_time, min(requested_by) AS requested_by, "
    "max(joined_time) AS joined_time, CAST(sum(bytes_left) AS DOUBLE) AS bytes_left, "
    "max(eta_s) AS eta_s FROM reassignments "
    "WHERE {of_cluster} AND ({is_topic} OR {is_move_of_broker}) "
    "AND requested_time < {until} AND state NOT IN ('in_place') AND (state NOT IN "
    "('done', 'cancelled') OR coalesce(joined_time, requested_time) >= {day}) "
    "GROUP BY topic, state ORDER BY topic, state LIMIT {limit}"
)
_THROTTLES = (
    "SELECT topic, side, broker_id, max(CASE WHEN is_biting THEN rate END) AS rate, "
    "max(CASE WHEN is_biting THEN event_time END) AS event_time, "
    "max(CASE WHEN is_biting THEN rate_set_by END) AS rate_set_by, "
    "CAST(sum(CASE WHEN is_biting THEN stalled_fetches END) AS BIGINT) AS stalled_fetches, "
    "coalesce(max(CASE WHEN is_configured THEN event_time END) = max(newest), false) AS is_set "
    "FROM (SELECT *, max(event_time) OVER (PARTITION BY cluster_id) AS newest "
    "FROM replication_throttles WHERE {of_cluster} AND {in_day:event_time}) AS minutes "
    "WHERE {is_topic} OR {is_named_broker} GROUP BY topic, side, broker_id "
    "HAVING max(CASE WHEN is_biting THEN 1 END) = 1 ORDER BY topic, side, broker_id LIMIT {limit}"
)
_SHRINKS = """
SELECT cluster_id, topic, partition, event_time, in_sync, replicas, min_in_sync, ended_at
FROM (
    SELECT *, row_number() OVER (
        PARTITION BY cluster_id, topic, partition ORDER BY event_time DESC) AS nth
    FROM isr_shrinks
    WHERE {of_cluster} AND {is_topic} AND {in_day:event_time} AND in_sync <= min_in_sync
) AS shrinks
WHERE nth = 1 AND ended_at IS NULL
"""
_REPORTED = (
    "SELECT 1 AS n FROM reassignment_changes WHERE {of_cluster} AND change = 'in_sync' "
    "AND {in_day:event_time} AND topic_id IN "
    "(SELECT topic_id FROM topic_ids WHERE {of_cluster} AND {is_topic}) LIMIT 1"
)
"""Whether leaders reported replicas in sync: without that no partition shrank."""
EVERY_MOVE = Question(
    "SELECT * FROM reassignments WHERE {of_cluster}",
    "requested_time DESC, topic, partition, replica_id",
)
EVERY_STEP = Question(
    "SELECT * FROM throttle_timeline WHERE {of_cluster}",
    "event_time DESC, entity_type, entity_name, config_key, partition",
)
MOVES = Question(
    "SELECT *, count(CASE WHEN state = 'done' THEN 1 END) OVER (PARTITION BY cluster_id) AS done "
    "FROM reassignments WHERE {of_cluster} AND {is_topic} AND state <> 'in_place' "
    "AND (state NOT IN ('done', 'cancelled') OR {within:requested_time})",
    "CASE state WHEN 'never_converges' THEN 0 WHEN 'stuck' THEN 1 WHEN 'moving' THEN 2 "
    "WHEN 'waiting' THEN 3 ELSE 4 END, requested_time DESC, topic, partition, replica_id",
)
"""Moves that go on, and those of the time that ended."""
RATES = """
WITH ranked AS (
    SELECT broker_id, side,
        row_number() OVER (ORDER BY max(throttled_rate) DESC, broker_id, side) AS nth
    FROM replication_rates
    WHERE {of_cluster} AND {within:event_time}
    GROUP BY broker_id, side
)
SELECT
    concat('broker ', CAST(rates.broker_id AS STRING), ' as ', rates.side) AS name,
    unix_micros(rates.event_time) // 1000000 // {step} * {step} AS second,
    max(rates.throttled_rate) / 1e6 AS rate
FROM (SELECT * FROM replication_rates WHERE {of_cluster} AND {within:event_time}) AS rates
INNER JOIN ranked
    ON rates.broker_id = ranked.broker_id AND rates.side = ranked.side
        AND ranked.nth <= {series}
GROUP BY 1, 2, ranked.nth
ORDER BY ranked.nth, second
"""
"""Throttled rates of the brokers with the highest, in steps of a chart."""
THROTTLE_RATES = """
SELECT DISTINCT quota / 1e6 AS quota
FROM replication_rates
WHERE {of_cluster} AND {within:event_time} AND quota IS NOT NULL
LIMIT 2
"""
"""Rates that the throttles allow; two of them are as good as many."""
THROTTLED_BY_MINUTE = Question(
    "SELECT cluster_id, event_time AS minute, broker_id, leader_replication_throttled_rate AS rate "
    "FROM replication_metrics WHERE {of_cluster} AND {within:event_time}",
    "minute",
)
TIMELINE = EVERY_STEP.where("{within:event_time}")
"""Who altered throttles and moves."""
ONGOING = Question(
    "SELECT *, count(CASE WHEN state = 'stalled' THEN 1 END) OVER (PARTITION BY cluster_id) "
    "AS stalled FROM ongoing_moves WHERE {of_cluster} AND {is_topic} AND {without_log}",
    "state = 'stalled' DESC, bytes_left DESC NULLS LAST, topic, partition, replica_id",
)
"""Moves as snapshots see them."""


def _is_stale(check: Row) -> bool:
    """Whether a throttle is set that nothing needs: a plan may remove it."""
    return bool(check["finding"].startswith(_STALE))


def _partitions(rows: Sequence[Row]) -> str:
    return texts.names(f"{row['topic']}-{row['partition']}" for row in rows)


def _checked(rows: Sequence[Row]) -> str:
    more = rows[0][OF_ALL] - 1
    others = f" Current throttles have {counted(more, 'more fault')}." if more else ""
    return f"{texts.step(reasons.throttle_fault(rows[0]))}{others}"


def check_steps(checks: Sequence[Row]) -> Iterator[str]:
    """What to do about throttles that are left over, and about the first other fault."""
    if any(map(_is_stale, checks)):
        yield "`quotaflow plan` says which left-over lists and rates it takes back"
    steps = (reasons.throttle_step(row) for row in checks if not _is_stale(row))
    yield from islice(filter(None, steps), 1)


def _check_action(checks: Sequence[Row]) -> str:
    others = [row for row in checks if not _is_stale(row)]
    return texts.to_do(tuple(check_steps(others or checks)))


OUT_OF_SYNC = RowProblem(
    code="replicas_out_of_sync",
    severity=NOW,
    subjects="partitions with replicas out of sync",
    subject=("topic_id", "partition"),
    table="current_replicas",
    question=Question(
        "SELECT cluster_id, topic_id, topic, partition, "
        "CAST(count(*) AS BIGINT) AS out_of_sync, min(coalesce(since, valid_from)) AS since, "
        "bool_and(since IS NOT NULL) AS is_since_known FROM current_replicas "
        "WHERE {of_cluster} AND {is_topic} AND NOT is_in_sync "
        "AND move_role IS DISTINCT FROM 'adding' "
        "GROUP BY cluster_id, topic_id, topic, partition",
        "topic, partition",
    ),
    summary=lambda rows: (
        f"{counted(rows[0][OF_ALL], 'partition has', 'partitions have')} replicas out of sync in "
        "the newest snapshot."
    ),
    action=lambda _: "Check the brokers that fall behind (`quotaflow show current_replicas`).",
)
_SHRUNK = Question(_SHRINKS, "event_time DESC, topic, partition")
UNDER_MIN_ISR = RowProblem(
    code="partition_under_min_isr",
    severity=NOW,
    subjects="partitions with too few replicas in sync",
    subject=("topic", "partition"),
    table="isr_shrinks",
    question=_SHRUNK.where("in_sync < min_in_sync"),
    summary=lambda rows: f"PRODUCE with acks=all fails for {_partitions(rows)}.",
    action=lambda _: "`quotaflow show replica_lag` has the followers that are behind.",
)
AT_MIN_ISR = RowProblem(
    code="partition_at_min_isr",
    severity=SOON,
    subjects="partitions with no spare replica in sync",
    subject=("topic", "partition"),
    table="isr_shrinks",
    question=_SHRUNK.where("in_sync >= min_in_sync"),
    summary=lambda rows: f"One more failure stops PRODUCE with acks=all to {_partitions(rows)}.",
    action=UNDER_MIN_ISR.action,
)
BROKER_SLOW = RowProblem(
    code="broker_slow",
    severity=NOW,
    subjects="brokers whose clients waited",
    subject=("broker_id",),
    table="broker_degradation",
    question=Question(
        "SELECT * FROM broker_degradation WHERE {of_cluster} AND {within:event_time} AND is_slow "
        "AND {is_own_broker}",
        "event_time DESC, broker_id",
    ),
    summary=lambda rows: (
        f"Clients waited at broker {texts.names(row['broker_id'] for row in rows)}."
    ),
    action=lambda _: "`quotaflow show broker_degradation --where is_slow` says when.",
)
MOVE_STUCK = RowProblem(
    code="move_stuck",
    severity=NOW,
    subjects="moves that do not come to an end",
    subject=("topic", "partition", "replica_id"),
    table="reassignments",
    question=MOVES.where("state IN ('never_converges', 'stuck')"),
    summary=lambda rows: f"Moves do not end: {_partitions(rows)}.",
)
THROTTLE_WRONG = RowProblem(
    code="throttle_wrong",
    severity=SOON,
    subjects="findings about replication throttles",
    subject=("finding", "topic", "side", "broker_id"),
    table="throttle_checks",
    question=Question(
        "SELECT * FROM throttle_checks WHERE {of_cluster} AND ({is_topic} OR {is_named_broker})",
        "finding, topic, side, broker_id",
    ),
    summary=_checked,
    action=_check_action,
)
PROBLEMS = (UNDER_MIN_ISR, AT_MIN_ISR, BROKER_SLOW, MOVE_STUCK, THROTTLE_WRONG)
MOVE_STALLED = RowProblem(
    code="move_stalled",
    severity=SOON,
    subjects="moves that did not go on",
    subject=("topic", "partition", "replica_id"),
    table="ongoing_moves",
    question=ONGOING.where("state = 'stalled'"),
    summary=lambda rows: f"Moves did not go on: {_partitions(rows)}.",
)
THROTTLE_LEFT = RowProblem(
    code="throttle_left_over",
    severity=SOON,
    subjects="replication throttles that are left over",
    subject=("entity_type", "entity_name", "config_key"),
    table="throttle_leftovers",
    question=Question(
        "SELECT * FROM throttle_leftovers WHERE {of_cluster} AND {without_log}",
        "age_s DESC, entity_type, entity_name, config_key",
    ),
    summary=lambda rows: (
        f"{counted(rows[0][OF_ALL], 'throttle is', 'throttles are')} left over from replication."
    ),
)
OF_SNAPSHOTS = (MOVE_STALLED, THROTTLE_LEFT)
"""What snapshots alone show: a request log says more."""


def findings(scope: Scope) -> Iterator[Finding]:
    """Moves of its topics or to and from it, what holds them back, and brokers that are slow."""
    for row in scope.rows(_MOVES_OF_NAME):
        yield _move(row)
    for row in scope.facts(_THROTTLES):
        yield _throttled(row)
    if not scope.is_recent:
        yield last_day("throttle_checks")
    for row in scope.ask(THROTTLE_WRONG.question) if scope.is_recent else ():
        yield THROTTLE_WRONG.of_row(
            row,
            f"{texts.step(reasons.throttle_fault(row))}",
            reasons.throttle_step(row),
        )
    for row in scope.ask(_SHRUNK) if scope.rows(_REPORTED) else ():
        yield _shrink(row)
    for row in scope.ask(BROKER_SLOW.question):
        yield _degraded(row)
    for row in scope.ask_if_made(OUT_OF_SYNC.question) if scope.is_recent else ():
        replicas, verb = (
            counted(row["out_of_sync"], "replica"),
            noun(row["out_of_sync"], "has", "have"),
        )
        or_before = "" if row["is_since_known"] else " or before"
        yield OUT_OF_SYNC.of_row(
            row,
            f"{replicas} of {row['topic']}-{row['partition']} {verb} been out of sync since "
            f"{moment(row['since'])}{or_before}.",
            "check the brokers that fall behind (`quotaflow show current_replicas`)",
        )


def _move(row: Row) -> Finding:
    """A move, and when it ends by its pace.

    The rate of a throttle says no end: a leader may send a whole answer in each window of 11 s, and
    exceeds a low rate many times.
    """
    state = row["state"]
    left = f"; {texts.size(row['bytes_left'])} are left" if row["bytes_left"] else ""
    eta = "" if row["eta_s"] is None else f"; it ends in about {texts.duration(row['eta_s'] * 1e3)}"
    if state == "moving" and not eta:
        eta = "; its end is not known, because neither fetches nor snapshots show a pace"
    by = f"{row['requested_by']} requested it" if row["requested_by"] else "it was requested"
    return Finding(
        text=(
            f"The move of {counted(row['replicas'], 'replica')} of {row['topic']} "
            f"{MOVE_STATES.get(state, state)}; {by} at "
            f"{moment(row['requested_time'])}{left}{eta}."
        ),
        problem=MOVE_STUCK if state in STUCK else None,
        is_hint=state not in _ENDED,
        next_step=None if state in _ENDED else "see `quotaflow show move_progress`",
        evidence_table="reassignments",
        evidence=row,
    )


MOVE_STATES = {
    "never_converges": "does not end: records come faster than they are copied",
    "stuck": "does not end: nothing was copied for half a minute",
    "moving": "goes on",
    "waiting": "waits to begin",
    "done": "is done",
    "cancelled": "was cancelled",
}
"""What a move does, by its state."""


def _throttled(row: Row) -> Finding:
    stalled = row["stalled_fetches"]
    fetches = f"; {counted(stalled, 'fetch', 'fetches')} stalled" if stalled else ""
    verb = "slows" if row["is_set"] else "slowed"
    ended = "" if row["is_set"] else f"; it ended after {moment(row['event_time'])}"
    step = (
        "see `quotaflow show throttle_timeline` for who set it, and "
        "`quotaflow show replication_rate_advice` for the advised rate"
    )
    return Finding(
        text=(
            f"A throttle {verb} replication of {row['topic']} to {texts.rate(row['rate'])} at "
            f"broker {row['broker_id']} ({row['side']}){fetches}{ended}."
        ),
        next_step=step if row["is_set"] else None,
        evidence_table="replication_throttles",
        evidence=row,
    )


def _shrink(row: Row) -> Finding:
    is_under = row["in_sync"] < row["min_in_sync"]
    effect = (
        "PRODUCE with acks=all fails"
        if is_under
        else "one more failure stops PRODUCE with acks=all"
    )
    return (UNDER_MIN_ISR if is_under else AT_MIN_ISR).of_row(
        row,
        f"{row['topic']}-{row['partition']} has {row['in_sync']} of "
        f"{counted(row['replicas'], 'replica')} in sync since {moment(row['event_time'])}; "
        f"min.insync.replicas is {row['min_in_sync']}: {effect}.",
        "see `quotaflow show replica_lag` for the followers that are behind",
    )


def _degraded(row: Row) -> Finding:
    p99 = {"PRODUCE": "produce_p99_ms", "FETCH": "fetch_p99_ms"}
    slow = [
        f"p99 of {api} {texts.duration(row[column])}, usually "
        f"{texts.duration(row[f'usual_{column}'])}"
        for api, column in p99.items()
        if (row[column] or 0) > (row[f"usual_{column}"] or math.inf)
    ]
    return BROKER_SLOW.of_row(
        row,
        f"Requests to broker {row['broker_id']} waited at {moment(row['event_time'])}: "
        f"{', '.join(slow)}.",
        "see `quotaflow show slowest_brokers` and `quotaflow show replication_rates`",
    )
