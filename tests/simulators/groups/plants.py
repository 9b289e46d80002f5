"""What makes a group fall behind, planted into one that keeps up."""

from collections.abc import Callable
from typing import NamedTuple

from quotaflow.udfs.rules import lag_cause as causes

from .world import BROKERS, MIB, World, made

Plant = Callable[[World, float], None]


_OF_CONSUMERS = ("classic", "consumer")


def _scale(world: World, factor: float) -> None:
    """Let records come, and be worked on, so many times as fast, at any time."""
    for state in (world.usual, world.now):
        state.in_per_s = {p: rate * factor for p, rate in state.in_per_s.items()}
        state.work_per_s = {m: rate * factor for m, rate in state.work_per_s.items()}


def _busiest(world: World) -> float:
    """Bytes in a second of the busiest pair of member and broker."""
    return max(
        sum(world.now.in_per_s[p] for p in m.partitions if world.leader(p) == broker)
        for m in world.members
        for broker in BROKERS
    ) * float(world.record_bytes)


def _throttled(world: World, part: float) -> None:
    for member in world.members:  # each has a bucket of its own
        member.client_id = f"app-{member.number}"
    world.now.quota = _busiest(world) * part


def _fetch_limited(world: World, part: float) -> None:
    dice, state = world.dice, world.now
    takes_ms = state.network_ms + max(state.broker_ms.values())
    state.network_ms += max(0.0, dice.uniform(4, 25) - takes_ms)
    takes_s = (state.network_ms + max(state.broker_ms.values())) / 1e3
    if dice.random() < 0.5:
        limit = dice.choice([16, 32, 64, 128]) << 10
        state.partition_max_bytes = limit
        _scale(world, limit / takes_s / part / (min(state.in_per_s.values()) * world.record_bytes))
        return
    limit = dice.choice([32, 64, 128, 256]) << 10
    state.max_bytes = limit
    _scale(world, limit / takes_s / part / _busiest(world))


def _far_replica(world: World, part: float) -> None:
    dice, state = world.dice, world.now
    state.network_ms = dice.uniform(60, 250)
    state.bytes_per_ms = dice.uniform(1_000, 8_000)
    for member in world.members:
        member.rack = "far-away"
    whole = min(state.partition_max_bytes, MIB)
    takes_s = (state.network_ms + whole / state.bytes_per_ms) / 1e3
    least = min(state.in_per_s.values()) * world.record_bytes
    _scale(world, whole / takes_s / part / least)


def _slow_broker(world: World, part: float) -> None:
    state, broker = world.now, world.leader(world.dice.choice(world.partitions))
    state.broker_ms[broker] = world.dice.uniform(80, 500)
    whole = min(state.partition_max_bytes, MIB)
    takes_s = (state.broker_ms[broker] + state.network_ms + whole / state.bytes_per_ms) / 1e3
    least = min(state.in_per_s[p] for p in world.partitions if world.leader(p) == broker)
    _scale(world, whole / takes_s / part / (least * world.record_bytes))


def _out_of_range(world: World, part: float) -> None:
    kind = world.dice.choice(["spin", "back", "beyond"])
    if kind == "spin":
        world.now.spinning = True
    elif kind == "beyond":
        world.beyond_end = True
    else:
        _back(world, part)


def _back(world: World, _: float) -> None:
    world.reread = world.dice.uniform(4, 12) * 3_600


def _rebalancing(world: World, part: float) -> None:
    world.group_type = "classic"
    world.now.rebalance_every_s = world.dice.choice([20.0, 30.0, 60.0])
    world.now.stop_share = world.dice.uniform(0.35, 0.7)
    for number, rate in world.now.work_per_s.items():
        member = world.members[number]
        came = sum(world.now.in_per_s[p] for p in member.partitions)
        # While it may read it does no more than it has to, so what is lost is lost.
        world.now.work_per_s[number] = min(rate, came * world.dice.uniform(1.05, 1.3))
    del part


def _not_polling(world: World, _: float) -> None:
    everyone = {member.number for member in world.members}
    if world.dice.random() < 0.35 and world.group_type in _OF_CONSUMERS:
        world.poll_timeout, world.group_type = True, "classic"
        world.now.absent = everyone
        world.members[0].library = "apache-kafka-java"
        return
    world.has_telemetry = world.has_all_metrics = True
    world.now.silent = everyone if world.dice.random() < 0.6 else {0}


def _slow_processing(world: World, part: float) -> None:
    for member in world.members:
        came = sum(world.now.in_per_s[p] for p in member.partitions)
        world.now.work_per_s[member.number] = came * part * world.dice.uniform(0.9, 1.1)


def _skewed(world: World, part: float) -> None:
    hot = world.dice.choice(world.partitions)
    world.now.in_per_s[hot] *= world.dice.uniform(5, 20)
    (member,) = (m for m in world.members if hot in m.partitions)
    others = sum(world.now.in_per_s[p] for p in member.partitions if p != hot)
    world.now.work_per_s[member.number] = others + world.now.in_per_s[hot] * part


def _producers_faster(world: World, part: float) -> None:
    world.onset = -world.dice.randint(50, 110) * 10
    times = world.dice.uniform(2.5, 6)
    for member in world.members:
        came = sum(world.now.in_per_s[p] for p in member.partitions)
        world.now.work_per_s[member.number] = came * world.dice.uniform(1.05, 1.6)
    world.now.in_per_s = {p: rate * times for p, rate in world.now.in_per_s.items()}
    del part


def _no_members(world: World, _: float) -> None:
    if world.group_type in _OF_CONSUMERS:
        world.group_type = "classic"
    world.now.absent = {member.number for member in world.members}


def _paused(world: World, _: float) -> None:
    # Nothing but telemetry shows that a member that reads nothing polls.
    world.has_telemetry = world.has_all_metrics = True
    world.now.paused = {member.number for member in world.members}


def _open_transaction(world: World, _: float) -> None:
    # Longer than a transaction may take by Kafka's own transaction.timeout.ms, and seen twice.
    world.onset = -world.dice.randint(100, 170) * 10
    world.now.is_blocked = True


def _fenced_instance(world: World, _: float) -> None:
    world.group_type, world.has_telemetry = "classic", False
    world.now.fenced = True


def _not_subscribed(world: World, _: float) -> None:
    world.now.elsewhere = True


def _never_committed(world: World, _: float) -> None:
    world.never_committed, world.has_telemetry = True, False
    for state in (world.usual, world.now):
        state.silent = {member.number for member in world.members}


def _stuck_partition(world: World, _: float) -> None:
    (member, *_others) = sorted(world.members, key=lambda m: -len(m.partitions))
    world.now.stuck = {world.dice.choice(member.partitions)}


def _unseen(world: World, part: float) -> None:
    _slow_processing(world, part)
    world.has_log = world.has_telemetry = False


PLANTS: dict[str, Plant] = {
    causes.THROTTLED: _throttled,
    causes.FETCH_LIMITED: _fetch_limited,
    causes.FAR_REPLICA: _far_replica,
    causes.OUT_OF_RANGE: _out_of_range,
    causes.REBALANCING: _rebalancing,
    causes.NOT_POLLING: _not_polling,
    causes.SLOW_PROCESSING: _slow_processing,
    causes.SKEWED_PARTITIONS: _skewed,
    causes.SLOW_BROKER: _slow_broker,
    causes.PRODUCERS_FASTER: _producers_faster,
    causes.NO_MEMBERS: _no_members,
    causes.PAUSED: _paused,
    causes.OPEN_TRANSACTION: _open_transaction,
    causes.FENCED_INSTANCE: _fenced_instance,
    causes.NOT_SUBSCRIBED: _not_subscribed,
    causes.NEVER_COMMITTED: _never_committed,
    causes.STUCK_PARTITION: _stuck_partition,
    causes.UNKNOWN: _unseen,
}
"""By cause; unknown: a slow application that neither a request log nor telemetry shows."""

PAIRS: tuple[tuple[str, str], ...] = (
    (causes.FETCH_LIMITED, causes.FAR_REPLICA),
    (causes.REBALANCING, causes.SLOW_PROCESSING),
    (causes.THROTTLED, causes.PRODUCERS_FASTER),
    (causes.THROTTLED, causes.OUT_OF_RANGE),
    (causes.SLOW_PROCESSING, causes.OUT_OF_RANGE),
    (causes.REBALANCING, causes.SKEWED_PARTITIONS),
)
"""Two at once that both slow a group down. Out of range goes back then: spinning stops all else."""


class Scene(NamedTuple):
    """What is planted: nothing, one cause, or two. Without a plant a group does not lag."""

    plants: tuple[str, ...] = ()
    group_type: str = ""
    """share or streams; else the group is of consumers, of a type that is drawn."""

    @property
    def name(self) -> str:
        kind = f"{self.group_type} group: " if self.group_type else ""
        return kind + (" and ".join(self.plants) or "nothing")


_ALONE = (causes.THROTTLED, causes.NOT_POLLING, causes.SLOW_PROCESSING, causes.NO_MEMBERS)
_ALONE += (causes.SKEWED_PARTITIONS,)

SCENES: tuple[Scene, ...] = (
    Scene(),
    *(Scene((name,)) for name in PLANTS),
    *map(Scene, PAIRS),
    *(Scene((), kind) for kind in ("share", "streams")),
    *(Scene((name,), kind) for kind in ("share", "streams") for name in _ALONE),
    Scene((causes.FETCH_LIMITED,), "streams"),
)


def planted(seed: int) -> World:
    """A world by its seed: one of SCENES in turn."""
    world, scene = made(seed), SCENES[seed % len(SCENES)]
    world.group_type = scene.group_type or world.group_type
    names = scene.plants
    for name in names:
        plant = _back if name == causes.OUT_OF_RANGE and len(names) > 1 else PLANTS[name]
        plant(world, world.dice.uniform(0.25, 0.9))
    world.plants = names
    return world
