"""What a move of replicas will demand of each broker, and which throttle fits (KIP-73).

Added followers read all of a partition from its leader, and what is written meanwhile. A throttle
applies per broker and side; kafka-reassign-partitions sets one rate for all.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from quotaflow.udfs.rules.throttle_rate import (
    CAPACITY_UNKNOWN,
    Demand,
    RateAdvice,
    RatePolicy,
    first_rate,
)

LEADER, FOLLOWER = "leader", "follower"
SIDES = (LEADER, FOLLOWER)


@dataclass(frozen=True, slots=True)
class PartitionMove:
    """A partition to move: node ids of its leader and of its replicas before and after, and bytes.

    `written` and `read` are bytes/s that producers write and consumers read at its leader.
    """

    topic: str
    partition: int
    leader: int
    replicas: tuple[int, ...]
    target: tuple[int, ...]
    size_bytes: int
    written: float
    read: float

    @property
    def added(self) -> tuple[int, ...]:
        """Replicas that it does not have yet, which are filled from the leader."""
        return tuple(node for node in self.target if node not in self.replicas)

    @property
    def next_leaders(self) -> frozenset[int]:
        """Nodes that may lead it afterwards: the first target, and the leader now if it stays.

        Brokers hand over to the first in their own time (auto.leader.rebalance.enable).
        """
        return frozenset({self.target[0], self.leader} & {*self.target})


@dataclass(frozen=True, slots=True)
class BrokerLoad:
    """Bytes/s of a broker by side, sent (leader) and received (follower), and its capacity.

    `traffic` is all that no throttle limits; a capacity of None is unknown.
    """

    capacity: Mapping[str, float | None] = field(default_factory=dict)
    traffic: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SideDemand:
    """What a move demands of one side of a broker, in bytes and bytes/s, and the rate that fits."""

    broker_id: int
    side: str
    size_bytes: int
    floor: float
    other: float
    advised: RateAdvice

    def seconds(self, rate: float) -> float | None:
        """How long it takes at a rate; None: at that rate it never ends."""
        spare = rate - self.floor
        return self.size_bytes / spare if spare > 0 else None


@dataclass(frozen=True, slots=True)
class MoveThrottle:
    """The sides a move takes part in, and one rate for all of them.

    The rate must exceed `min_rate`, or the move never ends, and `max_rate` is what the busiest side
    has left; None: that is not known of all sides, or one has too little. No rate fits if a side is
    `short`. The lists are those of topics, in Kafka's own form.
    """

    sides: tuple[SideDemand, ...]
    min_rate: float
    max_rate: float | None
    leader_replicas: Mapping[str, str]
    follower_replicas: Mapping[str, str]

    @property
    def unknown(self) -> tuple[SideDemand, ...]:
        """Sides of brokers whose capacity is not known."""
        return tuple(side for side in self.sides if side.advised.reason == CAPACITY_UNKNOWN)

    @property
    def short(self) -> tuple[SideDemand, ...]:
        """Sides that have less left than is written into what moves."""
        return tuple(
            side
            for side in self.sides
            if side not in self.unknown
            and (side.advised.rate is None or side.advised.rate <= side.floor)
        )

    @property
    def fits(self) -> bool:
        """Whether a rate exists at which the move ends and clients do not notice it."""
        return self.max_rate is not None and self.max_rate > self.min_rate

    def seconds(self, rate: float) -> float | None:
        """How long the slowest side takes at a rate; None: it never ends."""
        durations = [side.seconds(rate) for side in self.sides]
        finite = [duration for duration in durations if duration is not None]
        return max(finite, default=0.0) if len(finite) == len(durations) else None


def move_throttle(
    partitions: Iterable[PartitionMove], brokers: Mapping[int, BrokerLoad], bounds: RatePolicy
) -> MoveThrottle:
    """What the partitions demand of the brokers; a broker not in `brokers` is unknown."""
    moving = [partition for partition in partitions if partition.added]
    sizes, floors = _extra_load(moving)
    after = _shifted(moving)
    demands = {key: _demand(brokers, key, floors[key], after[key]) for key in sorted(sizes)}
    sides = tuple(
        SideDemand(*key, sizes[key], demand.floor, demand.other, first_rate(demand, bounds))
        for key, demand in demands.items()
    )
    rates = [side.advised.rate for side in sides]
    advised = [rate for rate in rates if rate is not None]
    return MoveThrottle(
        sides=sides,
        min_rate=max((side.floor for side in sides), default=0.0),
        max_rate=min(advised) if advised and len(advised) == len(rates) else None,
        leader_replicas=_listed(moving, LEADER),
        follower_replicas=_listed(moving, FOLLOWER),
    )


_Sides = Mapping[tuple[int, str], float]


def _extra_load(moving: Iterable[PartitionMove]) -> tuple[Counter[tuple[int, str]], _Sides]:
    """Bytes to move, and bytes/s charged meanwhile for writes, by side."""
    sizes: Counter[tuple[int, str]] = Counter()
    floors: defaultdict[tuple[int, str], float] = defaultdict(float)
    for move in moving:
        sizes[move.leader, LEADER] += move.size_bytes * len(move.added)
        # Followers in sync are not throttled, but their reads are charged too.
        floors[move.leader, LEADER] += move.written * (len(move.replicas) - 1 + len(move.added))
        for node in move.added:
            sizes[node, FOLLOWER] += move.size_bytes
            floors[node, FOLLOWER] += move.written
    return sizes, floors


def _shifted(moving: Iterable[PartitionMove]) -> _Sides:
    """By how much the traffic of each side changes once all has moved: clients and replication."""
    more: defaultdict[tuple[int, str], float] = defaultdict(float)
    for move in moving:
        for sign, leaders, replicas in (
            (-1, {move.leader}, move.replicas),
            (+1, move.next_leaders, move.target),
        ):
            for leader in leaders:
                more[leader, LEADER] += sign * (move.read + move.written * (len(replicas) - 1))
            for node in replicas:
                more[node, FOLLOWER] += sign * move.written
    return more


def _demand(
    brokers: Mapping[int, BrokerLoad], key: tuple[int, str], floor: float, shifted: float
) -> Demand:
    broker_id, side = key
    carried = brokers.get(broker_id, BrokerLoad())
    now = carried.traffic.get(side, 0.0)
    return Demand(carried.capacity.get(side), max(now, now + shifted), floor)


def _listed(moving: Iterable[PartitionMove], side: str) -> dict[str, str]:
    """Topic -> throttled replicas: on the leader side all current ones, on the other the added."""
    listed: defaultdict[str, list[str]] = defaultdict(list)
    for move in moving:
        nodes = move.replicas if side == LEADER else move.added
        listed[move.topic] += [f"{move.partition}:{node}" for node in nodes]
    return {topic: ",".join(entries) for topic, entries in listed.items()}
