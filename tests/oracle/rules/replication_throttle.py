"""Reference for `throttle_reason` of `results/shared/macros.sql`: does a throttle limit?

What ReplicaManager.shouldLeaderThrottle and ReplicaFetcherThread.shouldFollowerThrottle decide
(KIP-73), from what the request log and snapshots show. None: neither shows it.
"""

from dataclasses import dataclass

LEADER, FOLLOWER = "leader", "follower"
"""The sides: the broker that is read from, and the one that reads."""

DYNAMIC_BROKER, DYNAMIC_DEFAULT, STATIC, UNSET = (
    "dynamic_broker",
    "dynamic_default",
    "static",
    "unset",
)
"""Where a rate comes from: brokers ignore one in their properties file."""

NO_THROTTLE = "no_throttle"
RATE_WITHOUT_LIST = "rate_without_list"
LIST_WITHOUT_RATE = "list_without_rate"
STATIC_RATE_IGNORED = "static_rate_ignored"
BROKER_REMOVED = "broker_gone"
NOT_LEADER = "not_leader"
NOT_REPLICATING = "not_replicating"
IN_ISR = "in_isr"
FOLLOWER_CAUGHT_UP = "follower_caught_up"
UNDER_RATE = "under_rate"
NO_STALLED_FETCHES = "no_stalled_fetches"
LIST_UNKNOWN, RATE_UNKNOWN, ISR_UNKNOWN, LAG_UNKNOWN = (
    "list_unknown",
    "rate_unknown",
    "isr_unknown",
    "lag_unknown",
)

NEAR = 0.9
"""Share of its rate from which a throttle counts as reached: rates in tables are of aligned
seconds, and can be one sample off the broker's."""


@dataclass(frozen=True, slots=True)
class ReplicationSide:
    """What is known of one side of a partition's replication between two brokers.

    `is_replicating`: the follower fetched the partition from the leader; `has_other_leader`: it was
    fetched, but not from the broker that is listed. `peak_rate` is that of all the broker's
    throttled bytes; `held_back`: fetches of the partition that brought nothing though there was
    more (leader), or left it out (follower).
    """

    side: str
    is_listed: bool | None
    rate: float | None
    rate_source: str | None
    is_broker_removed: bool = False
    is_replicating: bool = True
    has_other_leader: bool = False
    is_in_sync: bool | None = None
    is_lagging: bool | None = None
    peak_rate: float = 0.0
    stalled_fetches: int = 0


@dataclass(frozen=True, slots=True)
class ThrottleState:
    """Whether a throttle would hold back once its rate is reached, whether it does, and why not."""

    is_effective: bool | None
    is_biting: bool | None
    reason: str | None = None


def state(replication: ReplicationSide) -> ThrottleState:
    """What a throttle does to one side of a replication."""
    reason = (
        _why_not_set(replication) or _why_not_there(replication) or _why_not_needed(replication)
    )
    if reason is not None:
        is_throttled = None if reason.endswith("_unknown") else False
        return ThrottleState(is_throttled, is_throttled, reason)
    if replication.peak_rate < NEAR * (replication.rate or 0.0):
        return ThrottleState(True, False, UNDER_RATE)
    if replication.stalled_fetches == 0:
        return ThrottleState(True, False, NO_STALLED_FETCHES)
    return ThrottleState(True, True)


def _why_not_set(side: ReplicationSide) -> str | None:
    is_rated = side.rate_source in (DYNAMIC_BROKER, DYNAMIC_DEFAULT)
    if side.is_listed is None:
        return LIST_UNKNOWN
    if not side.is_listed:
        return RATE_WITHOUT_LIST if is_rated else NO_THROTTLE
    if side.rate_source is None:
        return RATE_UNKNOWN
    if side.rate_source == STATIC:
        return STATIC_RATE_IGNORED
    return None if is_rated else LIST_WITHOUT_RATE


def _why_not_there(side: ReplicationSide) -> str | None:
    if side.is_broker_removed:
        return BROKER_REMOVED
    if side.is_replicating:
        return None
    return NOT_LEADER if side.side == LEADER and side.has_other_leader else NOT_REPLICATING


def _why_not_needed(side: ReplicationSide) -> str | None:
    if side.side == LEADER:
        return {True: IN_ISR, False: None, None: ISR_UNKNOWN}[side.is_in_sync]
    return {True: None, False: FOLLOWER_CAUGHT_UP, None: LAG_UNKNOWN}[side.is_lagging]
