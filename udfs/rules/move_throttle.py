"""What moving replicas asks of each broker, before it begins, and which throttle fits (KIP-73).

Followers that are added read all of a partition from its leader, beside what is written meanwhile.
A throttle holds per broker and side; kafka-reassign-partitions sets one rate for all.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from quotaflow.udfs.rules.throttle_rate import Demand, RateAdvice, RatePolicy, advise

LEADER, FOLLOWER = "leader", "follower"
SIDES = (LEADER, FOLLOWER)


@dataclass(frozen=True, slots=True)
class PartitionMove:
    """A partition that is to move: node ids of its replicas now and then, the leader's, and bytes.

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
        """Replicas it does not have yet, which are filled from the leader."""
        return tuple(node for node in self.target if node not in self.replicas)

    @property
    def next_leaders(self) -> frozenset[int]:
        """Who may lead it afterwards: the first that is to, and who does now if that one stays.

        Brokers hand over to the first in their own time (auto.leader.rebalance.enable).
        """
        return frozenset({self.target[0], self.leader} & {*self.target})


@dataclass(frozen=True, slots=True)
class BrokerLoad:
    """Bytes/s of a broker by side: what it sends (leader) and takes (follower), and what it can.

    `traffic` is all but what a throttle holds; a capacity of None is not known.
    """

    capacity: Mapping[str, float | None] = field(default_factory=dict)
    traffic: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SideDemand:
    """What a move asks of one side of one broker, in bytes and bytes/s, and the rate that fits."""

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

    `least` is what it must exceed to end at all, `most` what the busiest side has left; no rate
    fits where `most` is None or below `least`. The lists are those of topics, in Kafka's own form.
    """

    sides: tuple[SideDemand, ...]
    min_rate: float
    max_rate: float | None
    leader_replicas: Mapping[str, str]
    follower_replicas: Mapping[str, str]

    @property
    def fits(self) -> bool:
        """Whether there is a rate at which the move ends and clients do not feel it."""
        return self.max_rate is not None and self.max_rate > self.min_rate

    def seconds(self, rate: float) -> float | None:
        """How long the slowest side takes at a rate; None: it never ends."""
        spans = [side.seconds(rate) for side in self.sides]
        known = [span for span in spans if span is not None]
        return max(known, default=0.0) if len(known) == len(spans) else None


def move_throttle(
    partitions: Iterable[PartitionMove], brokers: Mapping[int, BrokerLoad], bounds: RatePolicy
) -> MoveThrottle:
    """What the partitions ask of the brokers; of one that is not in `brokers` nothing is known."""
    moving = [partition for partition in partitions if partition.added]
    sizes, floors = _extra_load(moving)
    after = _shifted(moving)
    demands = {key: _demand(brokers, key, floors[key], after[key]) for key in sorted(sizes)}
    sides = tuple(
        SideDemand(*key, sizes[key], demand.floor, demand.other, advise(demand, None, bounds))
        for key, demand in demands.items()
    )
    rates = [side.advised.rate for side in sides]
    known = [rate for rate in rates if rate is not None]
    return MoveThrottle(
        sides=sides,
        min_rate=max((side.floor for side in sides), default=0.0),
        max_rate=min(known) if known and len(known) == len(rates) else None,
        leader_replicas=_listed(moving, LEADER),
        follower_replicas=_listed(moving, FOLLOWER),
    )


_Sides = Mapping[tuple[int, str], float]


def _extra_load(moving: Iterable[PartitionMove]) -> tuple[Counter[tuple[int, str]], _Sides]:
    """Bytes to move, and bytes/s that are charged meanwhile for what is written, by side."""
    sizes: Counter[tuple[int, str]] = Counter()
    floors: defaultdict[tuple[int, str], float] = defaultdict(float)
    for of in moving:
        sizes[of.leader, LEADER] += of.size_bytes * len(of.added)
        # Followers in sync are not held back, and what they read is charged all the same.
        floors[of.leader, LEADER] += of.written * (len(of.replicas) - 1 + len(of.added))
        for node in of.added:
            sizes[node, FOLLOWER] += of.size_bytes
            floors[node, FOLLOWER] += of.written
    return sizes, floors


def _shifted(moving: Iterable[PartitionMove]) -> _Sides:
    """How much more, or less, each side carries of clients and replication once all has moved."""
    more: defaultdict[tuple[int, str], float] = defaultdict(float)
    for of in moving:
        for sign, leaders, replicas in (
            (-1, {of.leader}, of.replicas),
            (+1, of.next_leaders, of.target),
        ):
            for leader in leaders:
                more[leader, LEADER] += sign * (of.read + of.written * (len(replicas) - 1))
            for node in replicas:
                more[node, FOLLOWER] += sign * of.written
    return more


def _demand(
    brokers: Mapping[int, BrokerLoad], key: tuple[int, str], floor: float, shifted: float
) -> Demand:
    broker_id, side = key
    carried = brokers.get(broker_id, BrokerLoad())
    now = carried.traffic.get(side, 0.0)
    return Demand(carried.capacity.get(side), max(now, now + shifted), floor)


def _listed(moving: Iterable[PartitionMove], side: str) -> dict[str, str]:
    """Topic -> its throttled replicas: as the leader any replica of now, as followers the added."""
    listed: defaultdict[str, list[str]] = defaultdict(list)
    for of in moving:
        nodes = of.replicas if side == LEADER else of.added
        listed[of.topic] += [f"{of.partition}:{node}" for node in nodes]
    return {topic: ",".join(entries) for topic, entries in listed.items()}
