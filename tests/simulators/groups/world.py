"""A topic, a group that reads it and what slows the group down, second by second.

A member has one fetch in flight at each broker. A fetch takes the broker's time and the network's,
brings at most what its limits allow, and waits where a quota is used up. The application then works
on the records. The slowest of these is how fast the group reads. All magnitudes are drawn.
"""

import copy
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from ...delta_tables import NOON

STEP_S = 10
HOUR_S, WINDOW_S = 3_600, 600
MIB = 1 << 20
BROKERS = (1, 2, 3)
RACKS = {1: "az-a", 2: "az-b", 3: "az-c"}
Positions = dict[int, float]


@dataclass
class Member:
    """A member of the group, a client id of its own."""

    number: int
    partitions: list[int]
    rack: str
    library: str
    client_id: str

    @property
    def member_id(self) -> str:
        return f"app-0b8c1f5e-{self.number}"


@dataclass
class State:
    """What holds at a time, until a plant changes it."""

    in_per_s: dict[int, float]
    """Records written to each partition in a second."""
    work_per_s: dict[int, float]
    """Records that each member's application can work on in a second."""
    broker_ms: dict[int, float]
    network_ms: float
    bytes_per_ms: float = 200_000.0
    partition_max_bytes: int = MIB
    max_bytes: int = 50 * MIB
    quota: float | None = None
    """consumer_byte_rate of each client at each broker."""
    silent: set[int] = field(default_factory=set)
    """Members that do not poll."""
    paused: set[int] = field(default_factory=set)
    absent: set[int] = field(default_factory=set)
    """Members that left; with all of them the group is empty."""
    spinning: bool = False
    """Fetches ask for an offset that the partitions do not have, again and again."""
    stop_share: float = 0.0
    """Part of the time in which members may not read, since they rebalance."""
    rebalance_every_s: float = 60.0
    is_blocked: bool = False
    """A transaction is open in each partition, and the group reads committed records alone."""
    stuck: set[int] = field(default_factory=set)
    """Partitions that rest, while their members go on with others."""
    fenced: bool = False
    """Members have one group.instance.id, and fence each other off."""
    elsewhere: bool = False
    """Members have partitions of another topic alone."""


@dataclass(frozen=True)
class Loop:
    """Fetches of one member from one broker, at one time."""

    rate: float
    """Bytes in a second."""
    answer: Mapping[int, float]
    """Bytes of one answer, by partition."""
    cycle_s: float
    network_ms: float
    throttle_ms: float


@dataclass
class Step:
    """What happened in the seconds before `second`."""

    second: int
    state: State
    loops: dict[tuple[int, int], Loop]
    busy: dict[int, float]
    """Part of its time that each member's application works."""
    positions: Positions
    ends: Positions


@dataclass
class World:
    """One group and what is known of it."""

    cluster_id: str
    dice: random.Random
    record_bytes: int
    members: list[Member]
    usual: State
    now: State
    onset: int = -1_800
    """From when on the plant is there."""
    reread: float = 0.0
    """Records of each partition that the group went back at the onset, in seconds of writing."""
    beyond_end: bool = False
    never_committed: bool = False
    opened: Positions = field(default_factory=dict)
    """Where the open transactions begin."""
    has_log: bool = True
    has_telemetry: bool = True
    group_type: str = "classic"
    """Or consumer, share, streams: KIP-848, KIP-932, KIP-1071."""
    by_topic_id: bool = False
    """Fetches name topics by id (KIP-516), as those of newer clients."""
    has_all_metrics: bool = True
    """Not only those that KIP-714 requires of every client."""
    poll_timeout: bool = False
    """Members that do not poll have left, and said so."""
    deploy_at: int | None = None
    """When members rebalanced once, for a second or two."""
    plants: tuple[str, ...] = ()

    @property
    def is_classic(self) -> bool:
        return self.group_type == "classic"

    @property
    def is_share(self) -> bool:
        return self.group_type == "share"

    @property
    def partitions(self) -> list[int]:
        return sorted(self.usual.in_per_s)

    def leader(self, partition: int) -> int:
        return BROKERS[partition % len(BROKERS)]

    def state(self, second: float) -> State:
        return self.usual if second < self.onset else self.now

    def steps(self) -> Iterator[Step]:
        """An hour, up to noon."""
        ends = {p: 1e9 + 1e6 * p for p in self.partitions}
        positions = {p: end - 2 * self.usual.in_per_s[p] for p, end in ends.items()}
        for second in range(-HOUR_S, 1, STEP_S):
            state = self.state(second)
            for p in self.partitions:
                noise = self.dice.lognormvariate(0, 0.15)
                ends[p] += state.in_per_s[p] * noise * STEP_S
            if self.reread and second - STEP_S < self.onset <= second:
                for p in self.partitions:
                    positions[p] -= self.reread * self.usual.in_per_s[p]
            if state.is_blocked and not self.opened:
                self.opened = dict(ends)
            loops, busy = self._read(state, positions, ends)
            yield Step(second, state, loops, busy, dict(positions), dict(ends))

    def _read(
        self, state: State, positions: Positions, ends: Positions
    ) -> tuple[dict[tuple[int, int], Loop], dict[int, float]]:
        loops, busy = {}, {}
        for member in self.members:
            off = state.silent | state.paused | state.absent
            stops = state.spinning or state.fenced or state.elsewhere or self._is_beyond(state)
            if member.number in off or stops:
                busy[member.number] = 0.0
                continue
            of_member = self._loops(state, member, positions, ends)
            for broker, loop in of_member.items():
                loops[member.number, broker] = loop
                whole = sum(loop.answer.values())
                for p, size in loop.answer.items():
                    read = loop.rate * (1 - state.stop_share) * STEP_S / self.record_bytes
                    positions[p] = min(ends[p], positions[p] + read * size / whole)
            worked = sum(loop.rate for loop in of_member.values()) / self.record_bytes
            busy[member.number] = min(1.0, worked / state.work_per_s[member.number])
        return loops, busy

    def _is_beyond(self, state: State) -> bool:
        return self.beyond_end and state is self.now

    def _loops(
        self, state: State, member: Member, positions: Positions, ends: Positions
    ) -> dict[int, Loop]:
        """Loops of one member: what its brokers can give, cut to what the application takes."""
        drafts = {}
        for broker in BROKERS:
            until = ends | self.opened
            left = {
                p: (until[p] - positions[p]) * self.record_bytes
                for p in member.partitions
                if self.leader(p) == broker
                and until[p] - positions[p] >= 1
                and p not in state.stuck
            }
            if left:
                drafts[broker] = self._draft(state, broker, left)
        needed = sum(draft.rate for draft in drafts.values())
        can = state.work_per_s[member.number] * self.record_bytes
        part = min(1.0, can / needed) if needed else 1.0
        return {broker: _slowed(draft, part) for broker, draft in drafts.items()}

    def _draft(self, state: State, broker: int, left: Mapping[int, float]) -> Loop:
        answer = {p: min(size, state.partition_max_bytes) for p, size in left.items()}
        whole = sum(answer.values())
        if whole > state.max_bytes:
            answer = {p: size * state.max_bytes / whole for p, size in answer.items()}
            whole = state.max_bytes
        network_ms = state.network_ms + whole / state.bytes_per_ms
        takes_s = (state.broker_ms[broker] + network_ms) / 1e3
        rate = min(whole / takes_s, sum(left.values()) / STEP_S)
        throttle_ms = 0.0
        if state.quota is not None and rate > state.quota:
            rate = state.quota
            throttle_ms = max(0.0, whole / rate - takes_s) * 1e3
        return Loop(rate, answer, max(takes_s, whole / rate), network_ms, throttle_ms)


def _slowed(loop: Loop, part: float) -> Loop:
    rate = loop.rate * part
    cycle_s = sum(loop.answer.values()) / rate
    throttle_ms = max(0.0, loop.throttle_ms - (cycle_s - loop.cycle_s) * 1e3)
    return Loop(rate, loop.answer, max(loop.cycle_s, cycle_s), loop.network_ms, throttle_ms)


def time_of(second: float) -> datetime:
    """A second of the hour before noon; 0 is noon."""
    return datetime.fromtimestamp(NOON.timestamp() + second, NOON.tzinfo)


def _disturb(world: World) -> None:
    """What is there in any cluster, and slows nobody down by itself."""
    dice, state = world.dice, world.now
    drift = dice.uniform(0.85, 1.15)
    state.in_per_s = {p: rate * drift for p, rate in state.in_per_s.items()}
    if dice.random() < 0.3:
        state.in_per_s[dice.choice(world.partitions)] *= dice.uniform(1.1, 1.5)
    if dice.random() < 0.3:
        state.broker_ms[dice.choice(BROKERS)] *= dice.uniform(1, 4)
    world.deploy_at = dice.choice([None, None, -dice.randint(60, 500)])


def made(seed: int) -> World:
    """A group that keeps up, with drawn magnitudes."""
    dice = random.Random(seed)
    partitions, count = dice.randint(4, 10), dice.randint(2, 4)
    rate = 10 ** dice.uniform(1.3, 2.5)
    in_per_s = {p: rate * dice.uniform(0.8, 1.2) for p in range(partitions)}
    library = dice.choice(["apache-kafka-java", "librdkafka"])
    # librdkafka's own client.id is the same for all.
    is_shared = library == "librdkafka" and dice.random() < 0.5
    members = [
        Member(
            n,
            list(range(n, partitions, count)),
            dice.choice(list(RACKS.values())),
            library,
            "rdkafka" if is_shared else f"app-{n}",
        )
        for n in range(count)
    ]
    state = State(
        in_per_s,
        {
            m.number: sum(in_per_s[p] for p in m.partitions) * dice.uniform(1.8, 4.0)
            for m in members
        },
        {broker: dice.uniform(0.3, 2.5) for broker in BROKERS},
        dice.uniform(0.3, 2.0),
    )
    world = World(f"c{seed}", dice, dice.randint(200, 3_000), members, state, copy.deepcopy(state))
    _disturb(world)
    world.onset = -dice.randint(90, 270) * 10
    world.has_telemetry = dice.random() < 0.7
    world.has_all_metrics = dice.random() < 0.6
    world.group_type = "classic" if dice.random() < 0.6 else "consumer"
    world.by_topic_id = dice.random() < 0.7
    return world
