"""Reference for `replication_rate_advice.sql`: the rate a throttle should have (KIP-73).

Per broker and side: the rest of its capacity, never less than the write rate of the throttled
partitions (or replication would fall behind without end), in steps that cannot oscillate. The
first rate is that of `udfs/rules/throttle_rate.py`.
"""

from dataclasses import dataclass

from quotaflow.udfs.rules import throttle_rate
from quotaflow.udfs.rules.throttle_rate import (
    CAPACITY_UNKNOWN,
    FLOOR,
    MIN_RATE,
    RateAdvice,
    RatePolicy,
    first_rate,
)

STEP_BOUND = "step_bound"
"""On the way to the target: a step at most doubles or halves a rate."""
UNCHANGED = "unchanged"
"""So close to the current rate that a change is not worth it."""
COOLDOWN = "cooldown"
"""Changed so recently that the effect does not show yet."""
CLIENTS_DEGRADED = "clients_degraded"
"""Clients wait longer, or partitions are at min.insync.replicas: a lower rate."""
OVERLOADED = "floor_exceeds_capacity_and_clients_degraded"
"""The same, and clients already suffer: it cannot wait."""


@dataclass(frozen=True, slots=True)
class CurrentRate:
    """The rate that is set, in bytes/s, and for how long."""

    rate: float
    rate_age_s: float


@dataclass(frozen=True, slots=True)
class Demand(throttle_rate.Demand):
    """The same, and whether clients were healthy since the current rate was set."""

    are_clients_healthy: bool = True


def advise(demand: Demand, current: CurrentRate | None, bounds: RatePolicy) -> RateAdvice:
    """The rate to set now; without a `current` rate, the first one."""
    first = first_rate(demand, bounds)
    floor = max(demand.floor, MIN_RATE)
    if demand.capacity is None:
        return _without_capacity(floor, demand, current, bounds)
    if first.rate is None:
        return first if demand.are_clients_healthy else RateAdvice(None, OVERLOADED)
    if current is None:
        return first
    most = bounds.share * (demand.capacity - demand.other)
    if current.rate < floor:  # replication falls behind: no step bound or cooldown applies
        # At the floor it would keep up, but never catch up.
        nearer = min(max(most, floor), floor * bounds.max_step_factor)
        return RateAdvice(nearer if demand.are_clients_healthy else floor, FLOOR)
    if not demand.are_clients_healthy:
        return _relief(most, floor, current, bounds)
    return _step(first, floor, current, bounds)


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
