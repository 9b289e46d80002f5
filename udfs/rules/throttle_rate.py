"""The rate a replication throttle should have (KIP-73): as fast as clients do not feel.

Per broker and side: what is left of its capacity, never under what the throttled partitions are
written at (replication would fall ever further behind), and in steps that cannot swing.
"""

from dataclasses import dataclass

MIN_RATE = 1_000_000.0
"""Bytes/s under which brokers do not measure well (QuotaConfig: "for accurate behaviour")."""

HEADROOM = "headroom"
"""What is left of the capacity, less a margin."""
FLOOR = "floor"
"""Little is left: as much as the throttled partitions need not to fall behind. Or less was set."""
STEP_BOUND = "step_bound"
"""On the way to what is left: no step more than doubles or halves a rate."""
KEPT = "kept"
"""So near what is set that changing it is not worth a change."""
HELD = "held"
"""Changed so short a time ago that what that did is not seen yet."""
CLIENTS_SUFFER = "clients_suffer"
"""Clients wait longer, or partitions are at their least number of in-sync replicas: less."""
CAPACITY_UNKNOWN = "capacity_unknown"
"""No capacity in conf, and none learned: no advice."""
FLOOR_EXCEEDS_CAPACITY = "floor_exceeds_capacity"
"""What the partitions need is more than what is left: no rate is right, fewer must move at once."""
OVERLOADED = "floor_exceeds_capacity_and_clients_suffer"
"""The same, and clients feel it already: it cannot wait."""


@dataclass(frozen=True, slots=True)
class Demand:
    """One side of one broker, in bytes/s.

    `capacity`: what conf says, or the least it carried of late when clients suffered, if that is
    less; None: not known. `other`: its traffic but what the throttle holds, in the busiest of the
    last minutes so that noise moves nothing, and after the move if that is more. `floor`: for a
    leader the sum over its throttled partitions of write rate x followers (those in sync are
    charged too), for a follower the sum of their write rates. `are_clients_healthy`: of late, since
    the rate stands.
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
    """The rate to set now; without a `standing` one, to begin with."""
    if demand.capacity is None:
        return RateAdvice(None, CAPACITY_UNKNOWN)
    floor = max(demand.floor, MIN_RATE)
    most = bounds.share * (demand.capacity - demand.other)
    if floor > demand.capacity - demand.other:
        return RateAdvice(
            None, FLOOR_EXCEEDS_CAPACITY if demand.are_clients_healthy else OVERLOADED
        )
    wanted = RateAdvice(most, HEADROOM) if most > floor else RateAdvice(floor, FLOOR)
    if current is None:
        return wanted
    if current.rate < floor:  # replication falls behind: neither a step nor a hold keeps it there
        # At the floor it would keep up and never come nearer.
        nearer = min(max(most, floor), floor * bounds.max_step_factor)
        return RateAdvice(nearer if demand.are_clients_healthy else floor, FLOOR)
    if not demand.are_clients_healthy:
        return _relief(most, floor, current, bounds)
    return _step(wanted, floor, current, bounds)


def _relief(target: float, floor: float, standing: CurrentRate, bounds: RatePolicy) -> RateAdvice:
    # Where what is left says how much less, no more than that: clients are well again sooner, and
    # the rate need not come back up.
    least = max(floor, standing.rate / bounds.max_step_factor)
    lower = max(target, least) if target < standing.rate else least
    return (
        RateAdvice(lower, CLIENTS_SUFFER)
        if lower < standing.rate
        else RateAdvice(standing.rate, KEPT)
    )


def _step(
    wanted: RateAdvice, floor: float, standing: CurrentRate, bounds: RatePolicy
) -> RateAdvice:
    assert wanted.rate is not None
    now, target, reason = standing.rate, wanted.rate, wanted.reason
    if standing.rate_age_s < bounds.cooldown_s:
        return RateAdvice(now, HELD)
    if abs(target - now) < bounds.hysteresis * now:
        return RateAdvice(now, KEPT)
    bounded = min(max(target, now / bounds.max_step_factor, floor), now * bounds.max_step_factor)
    return RateAdvice(bounded, reason if bounded == target else STEP_BOUND)
