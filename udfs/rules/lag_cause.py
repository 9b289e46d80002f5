"""Why a group lags behind a topic: causes by how well the evidence supports each.

A member spends its time in turns: it waits for the broker, for the network, for a throttle to end,
or works on what it read. The greatest share limits it. Other causes show in who reads, in where the
lag is, and in how fast records come. A cause that explains what looks like another lowers that
one. What is not known supports nothing, so unknown is an answer.
"""

from collections.abc import Callable
from dataclasses import dataclass

from quotaflow.udfs.rules.lag_evidence import Evidence
from quotaflow.udfs.rules.ramp import ramp

THROTTLED = "throttled"
FETCH_LIMITED = "fetch_limited"
FAR_REPLICA = "far_replica"
OUT_OF_RANGE = "out_of_range"
REBALANCING = "rebalancing"
NOT_POLLING = "not_polling"
SLOW_PROCESSING = "slow_processing"
SKEWED_PARTITIONS = "skewed_partitions"
SLOW_BROKER = "slow_broker"
PRODUCERS_FASTER = "producers_faster"
NO_MEMBERS = "no_members"
PAUSED = "paused"
OPEN_TRANSACTION = "open_transaction"
FENCED_INSTANCE = "fenced_instance"
NOT_SUBSCRIBED = "not_subscribed"
NEVER_COMMITTED = "never_committed"
STUCK_PARTITION = "stuck_partition"
UNKNOWN = "unknown"

CAUSES = (
    *(THROTTLED, FETCH_LIMITED, FAR_REPLICA, OUT_OF_RANGE, REBALANCING, NOT_POLLING),
    *(SLOW_PROCESSING, SKEWED_PARTITIONS, SLOW_BROKER, PRODUCERS_FASTER, NO_MEMBERS, PAUSED),
    *(OPEN_TRANSACTION, FENCED_INSTANCE, NOT_SUBSCRIBED, NEVER_COMMITTED, STUCK_PARTITION),
)
"""All but unknown. Of two that are as sure, the first here comes first."""

LEAST_CONFIDENCE = 0.3
"""What is less sure is no answer."""

_MOST = 0.95
_FETCH_SIDE = (THROTTLED, FETCH_LIMITED, FAR_REPLICA, SLOW_BROKER)
_BLOCKS = (OPEN_TRANSACTION, FENCED_INSTANCE, NOT_SUBSCRIBED, STUCK_PARTITION)
"""Causes that stop a group, regardless of its application."""
_OF_SHARED_CLIENT = 0.85
_REBALANCING_STATES = {"PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling"}
_EMPTY_STATES = {"Empty", "Dead"}
_DEFAULT_LIMITS = {"partition_max_bytes": 1_048_576.0, "max_bytes": 52_428_800.0}
"""Kafka's own values: an answer that ends there is no sign of a small limit."""


@dataclass(frozen=True, slots=True)
class Cause:
    """A cause. `confidence`: 0 to 1; None for unknown. `signals`: fields of the evidence for it."""

    name: str
    confidence: float | None
    signals: tuple[str, ...]
    detail: str | None = None
    """Which one: a quota, a limit, a broker, a partition, or what triggered it."""


def causes(evidence: Evidence) -> list[Cause]:
    """The causes that the evidence supports, the surest first; one at least, unknown if none."""
    sure = {name: _SCORES[name](evidence) for name in CAUSES}
    _explain_away(sure, evidence)
    ranked = sorted(CAUSES, key=lambda name: -sure[name])
    likely = [
        Cause(name, round(sure[name], 2), _measured(evidence, name), _detail(evidence, name))
        for name in ranked
        if sure[name] >= LEAST_CONFIDENCE
    ]
    return likely or [Cause(UNKNOWN, None, _measured(evidence, UNKNOWN))]


def _explain_away(sure: dict[str, float], e: Evidence) -> None:
    """Lower what another cause brings about, in place."""

    def less(name: str, by: float) -> None:
        sure[name] *= 1 - by

    less(SLOW_PROCESSING, 0.75 * sure[SKEWED_PARTITIONS])
    # It is as busy as ever, with more records than ever.
    less(SLOW_PROCESSING, 0.6 * sure[PRODUCERS_FASTER])
    for name in (NOT_POLLING, PAUSED):
        less(name, 0.9 * max(sure[NO_MEMBERS] if not e.poll_timeouts else 0, sure[REBALANCING]))
        if e.out_of_range_answers or e.beyond_end_partitions:
            less(name, 0.9 * sure[OUT_OF_RANGE])
    less(SLOW_PROCESSING, 0.9 * max(sure[NO_MEMBERS], sure[PAUSED]))
    # Who did not poll for minutes, and did before, is not only slow.
    less(SLOW_PROCESSING, 0.5 * _overdue_poll(e))
    # Who reads again what it had read works as fast as it can, and catches up.
    less(SLOW_PROCESSING, _MOST * ramp(e.reread_lag_share, 0.2, 0.7) * _catches_up(e))
    for name in (NOT_POLLING, PAUSED, SLOW_PROCESSING, NO_MEMBERS, PRODUCERS_FASTER):
        less(name, max(sure[blocks] for blocks in _BLOCKS))
    # Where nothing shows how far a group read, what it does with what it read comes second.
    for name in (NOT_POLLING, PAUSED, SLOW_PROCESSING):
        less(name, 0.5 * sure[NEVER_COMMITTED])
    less(STUCK_PARTITION, max(sure[OUT_OF_RANGE], sure[OPEN_TRANSACTION]))
    less(SKEWED_PARTITIONS, sure[STUCK_PARTITION])
    less(REBALANCING, 0.9 * sure[FENCED_INSTANCE])
    less(PRODUCERS_FASTER, 0.7 * sure[SKEWED_PARTITIONS])
    less(PAUSED, max(sure[name] for name in (NOT_POLLING, THROTTLED, SLOW_BROKER)))
    less(NO_MEMBERS, 0.9 * sure[REBALANCING])
    less(NO_MEMBERS, 0.5 if e.poll_timeouts else 0)
    # A stopped group reads nothing, however fast records come.
    stopped = max(sure[NO_MEMBERS], sure[NOT_POLLING], sure[PAUSED])
    less(PRODUCERS_FASTER, 0.8 * stopped)
    less(SKEWED_PARTITIONS, 0.8 * stopped)
    if (e.groups_of_client or 1) > 1:
        for name in _FETCH_SIDE:
            sure[name] = min(sure[name], _OF_SHARED_CLIENT)


def _throttled(e: Evidence) -> float:
    return ramp(e.throttle_time_share, 0.05, 0.35) * (_MOST if e.throttled_by else 0.85)


def _fetch_limited(e: Evidence) -> float:
    default = _DEFAULT_LIMITS.get(e.limited_by or "")
    is_small = default is not None and (e.limit_bytes or default) < default
    # Round trips take the time: there are many, or each is long.
    trips = ramp(e.fetches_per_s, 1, 5)
    if is_small:
        trips = max(trips, ramp(e.network_time_share, 0.2, 0.5))
    sure = ramp(e.limit_share, 0.4, 0.8) * trips
    sure *= 0.8 if e.poll_idle_ratio is None else ramp(e.poll_idle_ratio, 0.15, 0.5)
    return _MOST * sure * (1.0 if is_small or default is None else 0.5)


def _far_replica(e: Evidence) -> float:
    sure = ramp(e.network_time_share, 0.15, 0.5) * ramp(e.network_ms, 5, 25)
    # A network can be slow within a rack: that is no far replica.
    racks = 0.6 if e.cross_rack_share is None else ramp(e.cross_rack_share, 0.1, 0.5)
    return _MOST * sure * racks


def _slow_broker(e: Evidence) -> float:
    sure = ramp(e.broker_time_share, 0.1, 0.45) * ramp(e.broker_ms, 5, 40)
    if e.other_brokers_ms and e.broker_ms:
        sure *= 0.7 + 0.3 * ramp(e.broker_ms / e.other_brokers_ms, 1.5, 4)
    return _MOST * sure


def _out_of_range(e: Evidence) -> float:
    return max(
        _MOST * ramp(e.out_of_range_answers, 0, 10),
        0.92 if e.beyond_end_partitions else 0.0,
        _MOST * ramp(e.reread_lag_share, 0.2, 0.7),
    )


def _rebalancing(e: Evidence) -> float:
    is_in_state = e.group_state in _REBALANCING_STATES and e.members is not None
    return max(
        _MOST * ramp(e.rebalance_time_share, 0.05, 0.3),
        0.7 * ramp(e.rebalances, 2, 10),
        0.4 if is_in_state else 0.0,
    )


def _no_members(e: Evidence) -> float:
    if e.recent_commits or e.unassigned_lag_share is None:
        return 0.0
    is_empty = e.group_state in _EMPTY_STATES or e.members == 0
    sure = ramp(e.unassigned_lag_share, 0.3, 0.9) * ramp(_stalled_share(e), 0.5, 0.9)
    return (_MOST if is_empty else 0.85) * sure


def _not_polling(e: Evidence) -> float:
    stalled = ramp(_stalled_share(e), 0.3, 0.8)
    by_telemetry = _MOST * _overdue_poll(e) * stalled
    by_reason = 0.93 * stalled if e.poll_timeouts else 0.0
    is_silent = _reads_nothing(e, e.consumed_bytes) and e.last_poll_s is None
    by_silence = 0.7 if is_silent and e.heartbeats else 0.0
    return max(by_telemetry, by_reason, by_silence)


def _overdue_poll(e: Evidence) -> float:
    """1 if a member did not poll for far longer than it usually takes."""
    beyond_s = (e.last_poll_s or 0) - 2 * (e.time_between_polls_ms or 0) / 1e3
    return ramp(beyond_s, 20, 90)


def _paused(e: Evidence) -> float:
    if e.last_poll_s is None:
        return 0.4 if e.heartbeats and _reads_nothing(e, e.consumed_bytes) else 0.0
    if not _reads_nothing(e, e.recent_bytes):
        return 0.0
    return 0.92 * (1 - ramp(e.last_poll_s, 20, 60))


def _slow_processing(e: Evidence) -> float:
    too_slow = _is_too_slow_between_stops(e)
    if e.poll_idle_ratio is not None:
        # Who reads nothing has nothing to work on.
        moves = 0.3 if e.consumed_bytes == 0 else 1 - 0.5 * ramp(_stalled_share(e), 0.5, 1)
        return _MOST * ramp(_busy_share(e, e.poll_idle_ratio), 0.6, 0.88) * moves * too_slow
    if not e.fetches or not (e.consumed_bytes or e.acquired_records):
        return 0.0
    # What is left of its time, where nothing shows that it waits.
    waits = (e.throttle_time_share, e.broker_time_share, e.network_time_share)
    left = 1 - sum(share or 0 for share in waits)
    sides = (_throttled(e), _fetch_limited(e), _far_replica(e), _slow_broker(e))
    return 0.6 * ramp(left, 0.5, 0.8) * (1 - max(sides)) * too_slow


def _busy_share(e: Evidence, idle_ratio: float) -> float:
    """Part of the time in which it may read that the application works: poll waits in the rest."""
    stopped = min(e.rebalance_time_share or 0.0, 0.9)
    return min(1.0, (1 - idle_ratio) / (1 - stopped))


def _is_too_slow_between_stops(e: Evidence) -> float:
    """1 if it would fall behind without rebalances too: else they alone are the cause."""
    stopped = min(e.rebalance_time_share or 0.0, 0.9)
    if stopped < 0.05 or not e.records_in_per_s or e.records_out_per_s is None:  # noqa: PLR2004
        return 1.0
    return 1 - ramp(e.records_out_per_s / (1 - stopped) / e.records_in_per_s, 0.8, 1)


def _skewed(e: Evidence) -> float:
    if (e.partitions or 0) < 2:  # noqa: PLR2004  one alone is no skew
        return 0.0
    # How much more of the lag it has than it would by its number.
    times = (e.hot_lag_share or 0.0) * (e.partitions or 0)
    return _MOST * ramp(e.hot_in_ratio, 1.7, 4) * ramp(times, 1.3, 2)


def _producers_faster(e: Evidence) -> float:
    as_ever = 0.8 if e.out_ratio is None else 0.65 + 0.35 * ramp(e.out_ratio, 0.5, 0.85)
    grows = {"growing": 1.0, "steady": 0.6}.get(e.trend or "", 0.4)
    return _MOST * ramp(e.in_ratio, 1.2, 2) * as_ever * grows


def _catches_up(e: Evidence) -> float:
    if not e.records_in_per_s or e.records_out_per_s is None:
        return 0.5
    return ramp(e.records_out_per_s / e.records_in_per_s, 1, 1.3)


def _reads_nothing(e: Evidence, consumed_bytes: int | None) -> bool:
    """Members have the partitions, and the log shows that they read none of the topic.

    Who polls seldom reads nothing for minutes: bytes of how long count is for the caller to say.
    """
    is_assigned = (e.unassigned_lag_share or 0) < 0.5 and bool(e.members)  # noqa: PLR2004  half
    return is_assigned and consumed_bytes == 0 and _stalled_share(e) > 0.9  # noqa: PLR2004


def _stalled_share(e: Evidence) -> float:
    """Where offsets are known seldom, the log shows sooner that nobody reads and commits."""
    return 1.0 if e.consumed_bytes == 0 and not e.commits else e.stalled_lag_share or 0.0


def _open_transaction(e: Evidence) -> float:
    if not e.blocked_records:
        return 0.0
    return _MOST * ramp(e.open_transaction_s, 0, 60)


def _fenced_instance(e: Evidence) -> float:
    sure = _MOST if (e.instance_claimants or 0) > 1 else 0.6
    return sure * ramp(e.fenced_answers, 0, 10)


def _not_subscribed(e: Evidence) -> float:
    has_others = bool(e.members) and e.assigned_partitions == 0
    # Its commits are of other topics: where it committed here, the offset moves.
    if not has_others or e.group_state in _REBALANCING_STATES:
        return 0.0
    return 0.9 * ramp(_stalled_share(e), 0.5, 0.9)


def _never_committed(e: Evidence) -> float:
    if not e.uncommitted_partitions:
        return 0.0
    # One of many is a partition without a batch yet, or of a member that stopped at once.
    share = e.uncommitted_partitions / (e.assigned_partitions or e.uncommitted_partitions)
    return 0.9 * min(1.0, share)


def _stuck_partition(e: Evidence) -> float:
    return 0.9 * ramp(e.stuck_lag_share, 0.3, 0.8)


_SCORES: dict[str, Callable[[Evidence], float]] = {
    THROTTLED: _throttled,
    FETCH_LIMITED: _fetch_limited,
    FAR_REPLICA: _far_replica,
    OUT_OF_RANGE: _out_of_range,
    REBALANCING: _rebalancing,
    NOT_POLLING: _not_polling,
    SLOW_PROCESSING: _slow_processing,
    SKEWED_PARTITIONS: _skewed,
    SLOW_BROKER: _slow_broker,
    PRODUCERS_FASTER: _producers_faster,
    NO_MEMBERS: _no_members,
    PAUSED: _paused,
    OPEN_TRANSACTION: _open_transaction,
    FENCED_INSTANCE: _fenced_instance,
    NOT_SUBSCRIBED: _not_subscribed,
    NEVER_COMMITTED: _never_committed,
    STUCK_PARTITION: _stuck_partition,
}

SIGNALS: dict[str, tuple[str, ...]] = {
    THROTTLED: ("throttle_time_share", "quota"),
    FETCH_LIMITED: ("limit_share", "limit_bytes", "fetches_per_s", "poll_idle_ratio"),
    FAR_REPLICA: ("network_time_share", "network_ms", "cross_rack_share"),
    OUT_OF_RANGE: ("out_of_range_answers", "beyond_end_partitions", "reread_lag_share"),
    REBALANCING: ("rebalance_time_share", "rebalances", "members"),
    NOT_POLLING: ("last_poll_s", "poll_timeouts", "stalled_lag_share", "consumed_bytes"),
    SLOW_PROCESSING: (
        *("poll_idle_ratio", "time_between_polls_ms"),
        *("fetches", "consumed_bytes", "acquired_records"),
    ),
    SKEWED_PARTITIONS: ("hot_in_ratio", "hot_lag_share"),
    SLOW_BROKER: ("broker_time_share", "broker_ms", "other_brokers_ms"),
    PRODUCERS_FASTER: ("in_ratio", "out_ratio"),
    NO_MEMBERS: ("unassigned_lag_share", "members"),
    PAUSED: ("last_poll_s", "stalled_lag_share", "recent_bytes", "consumed_bytes"),
    OPEN_TRANSACTION: (
        *("open_transaction_s", "blocked_records"),
        *("producer_id", "open_partition", "start_offset"),
    ),
    FENCED_INSTANCE: ("fenced_answers", "instance_claimants"),
    NOT_SUBSCRIBED: ("members", "assigned_partitions", "unassigned_lag_share"),
    NEVER_COMMITTED: ("uncommitted_partitions", "members"),
    STUCK_PARTITION: ("stuck_lag_share", "stuck_partition", "stalled_lag_share"),
    UNKNOWN: ("partitions", "stalled_lag_share", "members", "fetches", "poll_idle_ratio"),
}
"""The numbers that each cause rests on."""

_DETAILS = {
    THROTTLED: "throttled_by",
    FETCH_LIMITED: "limited_by",
    REBALANCING: "rebalance_trigger",
    SKEWED_PARTITIONS: "hot_partition",
    SLOW_BROKER: "broker_id",
    NO_MEMBERS: "group_state",
    OPEN_TRANSACTION: "transaction_of",
    FENCED_INSTANCE: "group_instance_id",
    STUCK_PARTITION: "stuck_partition",
}


def _measured(evidence: Evidence, cause: str) -> tuple[str, ...]:
    return tuple(name for name in SIGNALS[cause] if getattr(evidence, name) is not None)


def _detail(evidence: Evidence, cause: str) -> str | None:
    value = getattr(evidence, _DETAILS[cause]) if cause in _DETAILS else None
    return None if value is None else str(value)
