"""The rate a replication throttle should have (KIP-73): as fast as clients do not notice.

Per broker and side: the rest of its capacity, never less than the write rate of the throttled
partitions (or replication would fall behind without end), in steps that cannot oscillate.
"""

from dataclasses import dataclass

MIN_RATE = 1_000_000.0
"""Bytes/s below which brokers measure badly (QuotaConfig: "for accurate behaviour")."""

HEADROOM = "headroom"
"""The rest of the capacity, less a margin."""
FLOOR = "floor"
"""Little is left: the rate at which throttled partitions do not fall behind. Or less was set."""
STEP_BOUND = "step_bound"
"""On the way to the target: a step at most doubles or halves a rate."""
UNCHANGED = "unchanged"
"""So close to the current rate that a change is not worth it."""
COOLDOWN = "cooldown"
"""Changed so recently that the effect does not show yet."""
CLIENTS_DEGRADED = "clients_degraded"
"""Clients wait longer, or partitions are at min.insync.replicas: a lower rate."""
CAPACITY_UNKNOWN = "capacity_unknown"
"""No capacity in conf: no advice but what needs none (FLOOR, CLIENTS_DEGRADED)."""
FLOOR_EXCEEDS_CAPACITY = "floor_exceeds_capacity"
"""The partitions need more than is left: no rate is right, and fewer must move at once."""
OVERLOADED = "floor_exceeds_capacity_and_clients_degraded"
"""The same, and clients already suffer: it cannot wait."""


@dataclass(frozen=True, slots=True)
class Demand:
    """One side of one broker, in bytes/s.

    `capacity`: the value of conf, or the lowest traffic at which clients recently suffered, if that
    is lower; None: conf has none. What a broker carried so far says only that it is no less.
    `other`: traffic that the throttle does not limit, in the busiest of
    the last minutes so that noise changes nothing, and after the move if that is more. `floor`: for
    a leader the sum over its throttled partitions of write rate x followers (those in sync are
    charged too), for a follower the sum of their write rates. `are_clients_healthy`:
    since the current rate was set.
    """

    capacity: float | None
    other: float
    floor: float
    are_clients_healthy: bool = True


@dataclass(frozen=True, slots=True)
class CurrentRate:
    """The rate that is set, in bytes/s, and for how long."""

    rate: float
    rate_age_s: float


@dataclass(frozen=True, slots=True)
class RatePolicy:
    """How near the capacity, how large a step, and how often (conf)."""

    share: float = 0.9
    hysteresis: float = 0.1
    max_step_factor: float = 2.0
    cooldown_s: float = 180.0


@dataclass(frozen=True, slots=True)
class RateAdvice:
    """A rate in bytes/s and why; None: none can be advised."""

    rate: float | None
    reason: str


def advise(demand: Demand, current: CurrentRate | None, bounds: RatePolicy) -> RateAdvice:
    """The rate to set now; without a `current` rate, the first one."""
    floor = max(demand.floor, MIN_RATE)
    if demand.capacity is None:
        return _without_capacity(floor, demand, current, bounds)
    most = bounds.share * (demand.capacity - demand.other)
    if floor > demand.capacity - demand.other:
        return RateAdvice(
            None, FLOOR_EXCEEDS_CAPACITY if demand.are_clients_healthy else OVERLOADED
        )
    target = RateAdvice(most, HEADROOM) if most > floor else RateAdvice(floor, FLOOR)
    if current is None:
        return target
    if current.rate < floor:  # replication falls behind: no step bound or cooldown applies
        # At the floor it would keep up, but never catch up.
        nearer = min(max(most, floor), floor * bounds.max_step_factor)
        return RateAdvice(nearer if demand.are_clients_healthy else floor, FLOOR)
    if not demand.are_clients_healthy:
        return _relief(most, floor, current, bounds)
    return _step(target, floor, current, bounds)


def _without_capacity(
    floor: float, demand: Demand, current: CurrentRate | None, bounds: RatePolicy
) -> RateAdvice:
    if current is not None and current.rate < floor:
        return RateAdvice(floor, FLOOR)
    if current is not None and not demand.are_clients_healthy:
        return _relief(floor, floor, current, bounds)
    return RateAdvice(None, CAPACITY_UNKNOWN)


def _relief(target: float, floor: float, current: CurrentRate, bounds: RatePolicy) -> RateAdvice:
    # If the rest of the capacity says how much lower, go no lower: clients recover sooner, and the
    # rate does not have to rise again.
    least = max(floor, current.rate / bounds.max_step_factor)
    lower = max(target, least) if target < current.rate else least
    return (
        RateAdvice(lower, CLIENTS_DEGRADED)
        if lower < current.rate
        else RateAdvice(current.rate, UNCHANGED)
    )


def _step(
    advised: RateAdvice, floor: float, current: CurrentRate, bounds: RatePolicy
) -> RateAdvice:
    assert advised.rate is not None
    now, target, reason = current.rate, advised.rate, advised.reason
    if current.rate_age_s < bounds.cooldown_s:
        return RateAdvice(now, COOLDOWN)
    if abs(target - now) < bounds.hysteresis * now:
        return RateAdvice(now, UNCHANGED)
    bounded = min(max(target, now / bounds.max_step_factor, floor), now * bounds.max_step_factor)
    return RateAdvice(bounded, reason if bounded == target else STEP_BOUND)
