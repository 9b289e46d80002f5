"""The rate that a replication throttle begins with (KIP-73), and the bounds of its steps.

Per broker and side: the rest of its capacity, never less than the write rate of the throttled
partitions (or replication would fall behind without end). The rates after it are decided by
`schemas/views/marts/replication/replication_rate_advice.sql`; `tests/oracle/rules/throttle_rate.py`
compares.
"""

from dataclasses import dataclass

MIN_RATE = 1_000_000.0
"""Bytes/s below which brokers measure badly (QuotaConfig: "for accurate behaviour")."""

HEADROOM = "headroom"
"""The rest of the capacity, less a margin."""
FLOOR = "floor"
"""Little is left: the rate at which throttled partitions do not fall behind. Or less was set."""
CAPACITY_UNKNOWN = "capacity_unknown"
"""No capacity in conf, and so no advice."""
FLOOR_EXCEEDS_CAPACITY = "floor_exceeds_capacity"
"""The partitions need more than is left: no rate is right, and fewer must move at once."""


@dataclass(frozen=True, slots=True)
class Demand:
    """One side of one broker, in bytes/s.

    `capacity`: the value of conf, or the lowest traffic at which clients recently suffered, if that
    is lower; None: conf has none. What a broker carried so far says only that it is no less.
    `other`: traffic that the throttle does not limit, in the busiest of
    the last minutes so that noise changes nothing, and after the move if that is more. `floor`: for
    a leader the sum over its throttled partitions of write rate x followers (those in sync are
    charged too), for a follower the sum of their write rates.
    """

    capacity: float | None
    other: float
    floor: float


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


def first_rate(demand: Demand, bounds: RatePolicy) -> RateAdvice:
    """The rate to begin with, where none is set."""
    if demand.capacity is None:
        return RateAdvice(None, CAPACITY_UNKNOWN)
    floor = max(demand.floor, MIN_RATE)
    if floor > demand.capacity - demand.other:
        return RateAdvice(None, FLOOR_EXCEEDS_CAPACITY)
    most = bounds.share * (demand.capacity - demand.other)
    return RateAdvice(most, HEADROOM) if most > floor else RateAdvice(floor, FLOOR)
