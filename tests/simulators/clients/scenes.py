"""Faults planted into minutes of a made-up cluster, among clients that are well."""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...rows import Row, at, behind, limited, moved, reassigned, row, times, used

MINUTES = 40
TARGET = {"principal": "User:target", "client_id": "target"}
PARTS = ("request_queue", "local", "remote", "response_queue", "send", "throttle")
RATE = "producer_byte_rate"
BROKER, GROUP, TOPIC = "broker 1", "readers", "stock"
LATE = "consumer poll timeout has expired."


@dataclass
class World:
    """One cluster: clients with their usual times, and what goes wrong from `begins` on."""

    chance: random.Random
    begins: int = 0
    lasts: int = 0
    ms: float = 0.0
    """The time that the fault adds."""
    tables: dict[str, list[Row]] = field(default_factory=dict)
    faults: dict[str, Row] = field(default_factory=dict)
    """By client, the mean time of each part while the fault lasts."""
    others: dict[str, Row] = field(default_factory=dict)
    """By client, other columns while the fault lasts."""
    requests: dict[str, int] = field(default_factory=dict)
    """By client, requests of a minute while the fault lasts."""
    api: str = "PRODUCE"
    usual_requests: int = 20

    def __post_init__(self) -> None:
        self.begins = self.chance.randrange(22, 30)
        self.lasts = self.chance.randrange(2, 8)
        self.ms = self.chance.uniform(150, 1_500)
        self.peers = [f"peer-{n}" for n in range(self.chance.randrange(5, 10))]

    @property
    def during(self) -> range:
        return range(self.begins, self.begins + self.lasts)

    def add(self, table: str, *rows: Row) -> None:
        self.tables.setdefault(table, []).extend(rows)

    def filled(self) -> Mapping[str, list[Row]]:
        """The rows of all tables."""
        for name in ("target", *self.peers, *(self.requests.keys() - {"target", *self.peers})):
            base = {part: self.chance.uniform(0.2, 4) for part in PARTS[:2] + PARTS[3:5]}
            if self.api == "FETCH":
                base["remote"] = 400.0
            for n in range(MINUTES):
                self.add("request_times", self._minute(name, n, base))
        return self.tables

    def _minute(self, name: str, n: int, base: Row) -> Row:
        noisy = {part: ms * self.chance.lognormvariate(0, 0.3) for part, ms in base.items()}
        given = {"principal": f"User:{name}", "client_id": name}
        count = self.usual_requests
        if n in self.during:
            for part, ms in self.faults.get(name, {}).items():
                noisy[part] = noisy.get(part, 0.0) + ms * self.chance.lognormvariate(0, 0.15)
            given |= self.others.get(name, {})
            count = self.requests.get(name, count)
        return times(60 * n, self.api, count, each=noisy, **given)


def _waits(part: str, **others: Any) -> Callable[[World], None]:
    def plant(world: World) -> None:
        world.faults["target"] = {part: world.ms}
        world.others["target"] = others

    return plant


def _fails(code: int) -> Callable[[World], None]:
    def plant(world: World) -> None:
        world.others["target"] = {"errors": [{"error_code": code, "requests": 15}]}

    return plant


def _quota(level: int, user: str | None, kind: str = RATE) -> Callable[[World], None]:
    def plant(world: World) -> None:
        if kind == "consumer_byte_rate":
            world.api = "FETCH"
        world.faults["target"] = {"throttle": world.ms}
        of_api = "consumer_byte_rate" if world.api == "FETCH" else RATE
        bucket = {"quota_level": level, "quota_bucket_user": user, "amount": 9}
        throttled = {"throttled_by": kind, "throttle_time_ms": 9_000.0, "throttled_requests": 9}
        for n in world.during:
            world.add("quota_usage", used(60 * n, of_api, 2_000.0, **TARGET, **bucket, **throttled))
            if kind != of_api:
                world.add("quota_usage", used(60 * n, kind, 2_000.0, **TARGET, **bucket))
        world.add(
            "config_alterations", limited(60 * world.begins, kind, "1", entity_name=user or "")
        )

    return plant


def _small_waits(world: World) -> None:
    world.faults["target"] = {"throttle": 18.0}
    world.requests["target"] = 1_200


def _neighbour(world: World) -> None:
    world.faults["target"] = {"request_queue": world.ms}
    world.faults["noisy"] = {"local": 20.0}
    world.requests["noisy"] = 5_000


def _busy_threads(world: World) -> None:
    world.faults["target"] = {"request_queue": world.ms}
    for name in world.peers:
        world.faults[name] = {"local": 8.0}
        world.requests[name] = 400


def _own_load(world: World) -> None:
    world.faults["target"] = {"request_queue": world.ms, "local": 5.0}
    world.requests["target"] = 4_000


def _slow_broker(world: World) -> None:
    for name in ("target", *world.peers):
        world.faults[name] = {"local": world.ms}


def _all_wait(part: str, *, noisy: bool = False) -> Callable[[World], None]:
    """All clients of the broker wait for the same."""

    def plant(world: World) -> None:
        for name in ("target", *world.peers):
            world.faults[name] = {part: world.ms}
        if noisy:
            world.faults["noisy"] = {"local": 20.0}
            world.requests["noisy"] = 5_000

    return plant


def _rebalances(
    trigger: str, *, members: int = 2, stopped_ms: int | None = 40_000, reason: str | None = None
) -> Callable[[World], None]:
    """A group that rebalances six to ten times, with members that stop each time."""

    def plant(world: World) -> None:
        given = {"group_id": GROUP, "group_type": "classic", "members": members, "reason": reason}
        given |= {"trigger": trigger, "trigger_client_id": "app-1", "stopped_ms": stopped_ms}
        second = 60.0 * world.begins
        for n in range(world.chance.randrange(6, 11)):
            times_of = {"started_at": at(second), "ended_at": at(second + 41), "group_epoch": n}
            world.add("rebalances", row("rebalances", second, given | times_of))
            second += world.chance.uniform(60, 300)

    return plant


def _replicas(
    *, cause: str, is_healed: bool = False, is_added: bool = False
) -> Callable[[World], None]:
    """Some partitions of a topic whose replica on broker 3 is not in sync."""

    def plant(world: World) -> None:
        up = (1, 2) if cause == "broker_down" else (1, 2, 3)
        broker = {"host": "h", "port": 1, "is_fenced": False, "is_removed": False}
        world.add("brokers", *(row("brokers", 0, broker | {"broker_id": n}) for n in up))
        for partition in range(world.chance.randrange(1, 5)):
            of_partition = {"topic": TOPIC, "partition": partition}
            given = of_partition | {"topic_id": "t", "is_removed": False, "is_offline": False}
            for n in (1, 2, 3):
                state = {"broker_id": n, "is_in_sync": n < 3, "is_leader": n == 1}
                if n == 3:
                    state["is_offline"] = cause == "log_dir_down"
                world.add("replicas", row("replicas", 0, given | state))
            if is_healed:
                back = {"replica_id": 3, "change": "in_sync", "error_code": 0, "topic_id": "t"}
                world.add(
                    "reassignment_changes", row("reassignment_changes", 9, of_partition | back)
                )
            if is_added:
                moving = {"broker_id": 3, "role": "adding", "is_removed": False}
                world.add("moving_replicas", row("moving_replicas", 0, of_partition | moving))

    return plant


def _behind(*, moves: bool = False, per_step: int = 20) -> Callable[[World], None]:
    """A follower of the target's topic is behind; each ten seconds it comes nearer by so much."""

    def plant(world: World) -> None:
        world.faults["target"] = {"remote": world.ms}
        start = 60 * world.begins
        if moves:
            world.add("topics", row("topics", -600, {}, topic="orders"))
            for n in (2, 3):
                world.add("reassignment_changes", reassigned(start, "requested", n, place=n - 2))
        for n in range(6 * world.lasts):
            lag = 1_000 - per_step * n
            world.add("replica_lag", behind(start + 10 * n, 3, lag, 1_000 - lag, 100))
            world.add("traffic", moved(start + 10 * n, 100, **TARGET))

    return plant


def _slow_to_read(world: World) -> None:
    world.api = "FETCH"
    world.faults["target"] = {"send": world.ms}


def _quota_beside_a_slow_broker(world: World) -> None:
    _quota(3, "target")(world)
    for name in ("target", *world.peers):
        world.faults[name] = world.faults.get(name, {}) | {"local": world.ms / 4}


ALSO = {"a quota beside a slow broker": "slow_broker"}
"""A second cause that is planted too."""
PLANTED: dict[str, tuple[str, Callable[[World], None]]] = {
    "quota of the user": ("quota", _quota(3, "target")),
    "quota of the user and client id": ("quota", _quota(1, "target")),
    "default quota of users": ("quota", _quota(6, None)),
    "quota of reads": ("quota", _quota(3, "target", "consumer_byte_rate")),
    "quota of request time": ("quota", _quota(3, "target", "request_percentage")),
    "many small waits for a quota": ("quota", _small_waits),
    "throttled, no snapshot": ("quota", _waits("throttle")),
    "a busy neighbour": ("noisy_neighbour", _neighbour),
    "its own flood": ("own_load", _own_load),
    "busy handler threads": ("busy_broker", _busy_threads),
    "a broker that pauses": ("stalled_broker", _waits("request_queue")),
    "a slow disk": ("slow_broker", _slow_broker),
    "huge batches": ("large_requests", _waits("local", bytes=40_000_000)),
    "recompression": ("slow_appends", _waits("local")),
    "a slow follower beside a move": ("slow_replicas", _behind(moves=True)),
    "a slow follower beside a move that never ends": (
        "slow_replicas",
        _behind(moves=True, per_step=-20),
    ),
    "a slow follower": ("slow_follower", _behind()),
    "a follower that falls behind": ("slow_follower", _behind(per_step=-20)),
    "acks=all, no follower seen": ("slow_replicas", _waits("remote")),
    "busy network threads": ("busy_network", _waits("response_queue")),
    "a reader that stops": ("slow_reader", _slow_to_read),
    "a slow network": ("slow_reader", _waits("send")),
    "a quota beside a slow broker": ("quota", _quota_beside_a_slow_broker),
    "no right to the topic": ("not_authorized", _fails(29)),
    "no right to the transactional id": ("not_authorized", _fails(53)),
    "an unknown topic": ("unknown_topic", _fails(3)),
    "an unknown topic id": ("unknown_topic", _fails(100)),
    "records too large": ("too_large", _fails(10)),
    "too few replicas": ("not_enough_replicas", _fails(19)),
    "leaders that move": ("leader_changes", _fails(6)),
    "a coordinator that moves": ("coordinator_changes", _fails(16)),
    "timeouts in the broker": ("timed_out", _fails(7)),
    "a fenced producer": ("fenced", _fails(90)),
    "a zombie producer": ("fenced", _fails(47)),
    "a policy": ("refused_by_quota", _fails(44)),
    "offsets out of range": ("out_of_range", _fails(1)),
    "a producer out of order": ("lost_sequence", _fails(45)),
    "a producer id that expired": ("unknown_producer", _fails(59)),
    "a member that was removed": ("left_group", _fails(25)),
    "a transaction in another state": ("transaction_state", _fails(48)),
    "records that are not valid": ("invalid_records", _fails(87)),
    "a version that brokers do not have": ("unsupported", _fails(35)),
    "a value outside its limits": ("outside_limits", _fails(38)),
    "a log directory that fails": ("storage_error", _fails(56)),
    "a broker that does not know why": ("server_error", _fails(-1)),
    "an error of no kind": ("other_errors", _fails(61)),
    "a broker with a slow disk": ("slow_broker", _slow_broker),
    "a broker with few network threads": ("busy_network", _all_wait("response_queue")),
    "a broker that pauses for all": ("stalled_broker", _all_wait("request_queue")),
    "a broker with a loud client": ("noisy_neighbour", _all_wait("request_queue", noisy=True)),
    "members that do not come back": ("missed_heartbeats", _rebalances("missed_heartbeats")),
    "members that start again and again": ("member_joined", _rebalances("member_joined")),
    "members that poll late": ("poll_interval", _rebalances("member_left", reason=LATE)),
    "a broker that is down": ("broker_down", _replicas(cause="broker_down")),
    "a disk that is down": ("log_dir_down", _replicas(cause="log_dir_down")),
    "a follower that is out of sync": ("follower_behind", _replicas(cause="follower_behind")),
}
"""Planted causes by the name of their scene."""


def _rises(world: World) -> None:
    world.faults["target"] = {"local": 4.0}
    world.requests["target"] = 200


def _long_poll(world: World) -> None:
    world.api = "FETCH"
    world.faults["target"] = {"remote": 30_000.0}


def _few(world: World) -> None:
    world.faults["target"] = {"local": 900.0}
    world.requests["target"] = 3


def _loud_and_harmless(world: World) -> None:
    world.faults["noisy"] = {"local": 20.0}
    world.requests["noisy"] = 5_000


def _shares_a_quota_in_peace(world: World) -> None:
    for n in world.during:
        world.add("quota_usage", used(60 * n, RATE, 990.0, **TARGET, amount=9))


WELL: dict[str, Callable[[World], None]] = {
    "nothing happens": lambda _world: None,
    "ten times the requests": _rises,
    "a long poll without records": _long_poll,
    "three slow requests a minute": _few,
    "a loud neighbour whom nobody notices": _loud_and_harmless,
    "a full quota that throttles nobody": _shares_a_quota_in_peace,
    "rebalances": _fails(27),
    "transactions in a row": _fails(51),
    "a new fetch session": _fails(70),
    "a new member": _fails(79),
    "a new subscription": _fails(117),
    "a broker with one slow reader": _waits("send"),
    "a broker with one client that waits": _waits("response_queue"),
    "a restart of all members": _rebalances("member_left", members=5),
    "members that keep on reading": _rebalances("member_joined", stopped_ms=None),
    "members that stop for a second": _rebalances("missed_heartbeats", stopped_ms=1_000),
    "a replica that is added": _replicas(cause="follower_behind", is_added=True),
    "a replica that came back": _replicas(cause="follower_behind", is_healed=True),
}
"""Harmless twins."""
TARGETS = (
    {name: BROKER for name in (*PLANTED, *WELL) if name.startswith("a broker with")}
    | {"a broker that pauses for all": BROKER}
    | {name: GROUP for name in (*PLANTED, *WELL) if "members" in name}
    | dict.fromkeys(
        (
            *("a broker that is down", "a disk that is down", "a follower that is out of sync"),
            *("a replica that is added", "a replica that came back"),
        ),
        TOPIC,
    )
)
"""Whom a scene is about, where it is no client."""


def world_of(name: str, seed: int) -> Mapping[str, list[Row]]:
    """The tables of a scene."""
    world = World(random.Random(f"{name} {seed}"))
    plant = PLANTED[name][1] if name in PLANTED else WELL[name]
    plant(world)
    world.add("request_times", times(0, "METADATA", 1, each={}, principal="User:a", client_id="a"))
    return world.filled()
