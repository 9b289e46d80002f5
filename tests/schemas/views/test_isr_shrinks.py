"""When partitions had fewer replicas in sync, and whose clients suffer at the least number."""

from ...cases import cases
from ...rows import Row, at, reassigned, replicated, throttled
from .rate_rows import CAPACITY, MOVES, NOW, demand, sent
from .view_tables import Picked, Tables, assert_shown, picked, view

DAY_AGO = NOW - 86_400
TOPIC = {"cluster_id": "c1", "event_time": at(DAY_AGO - 600), "topic_id": "t1", "topic": "orders"}
TOPIC |= {"is_removed": False}
LEAST = {"cluster_id": "c1", "event_time": at(0), "is_removed": False, "entity_type": "topic"}
LEAST |= {"entity_name": "orders", "config_key": "min.insync.replicas", "config_value": "2"}
NAMED: Tables = {"topics": [TOPIC], "configs": [LEAST]}


def in_sync(second: float, *replicas: int) -> list[Row]:
    """What the leader of partition 0 of orders asked to be in sync."""
    entity = {"topic_id": "t1", "topic": None}
    return [reassigned(second, "in_sync", n, **entity) for n in replicas]


def requested(second: float, *replicas: int) -> list[Row]:
    return [reassigned(second, "requested", n, place=i) for i, n in enumerate(replicas)]


def seen(second: float, *replicas: int, **others: bool) -> list[Row]:
    """What a snapshot found of replicas of partition 0 of orders."""
    row = TOPIC | {"event_time": at(second), "partition": 0, "is_in_sync": True} | others
    return [row | {"broker_id": n} for n in replicas]


HERE = in_sync(DAY_AGO, 1, 2, 3)
MOVED = [*HERE, *requested(DAY_AGO + 300, 4, 5, 6), *in_sync(DAY_AGO + 500, 4, 5, 6)]
# The leader asks for all, whereupon its controller takes away those that are no longer to be.
JUST_MOVED = [*HERE, *requested(NOW - 300, 4, 5, 6), *in_sync(NOW - 200, 1, 2, 3, 4, 5, 6)]
SEEN = seen(DAY_AGO, 1, 2, 3)
AT_OLD, AT_NEW = in_sync(NOW - 50, 1, 2), in_sync(NOW - 50, 4, 5)
OF_BROKERS: dict[str, tuple[list[Row], list[Row], set[int]]] = {
    "those in sync before": ([*HERE, *AT_OLD], [], {1, 2, 3}),
    "it moved a day ago": ([*MOVED, *AT_NEW], [], {4, 5, 6}),
    "as snapshots saw too": (
        [*MOVED, *AT_NEW],
        [*SEEN, *seen(DAY_AGO + 600, 1, 2, 3, is_removed=True), *seen(DAY_AGO + 600, 4, 5, 6)],
        {4, 5, 6},
    ),
    "it moved just now": ([*JUST_MOVED, *AT_NEW], [], {4, 5, 6}),
    "since the last snapshot": ([*JUST_MOVED, *AT_NEW], SEEN, {4, 5, 6}),
    "since a snapshot amid the move": (
        [*JUST_MOVED, *AT_NEW],
        [*SEEN, *seen(NOW - 250, 4, 5, 6, is_in_sync=False)],
        {4, 5, 6},
    ),
    "it moves, and is not there yet": (
        [*HERE, *requested(NOW - 300, 3, 4), *AT_OLD[:1]],
        SEEN,
        {1, 2, 3, 4},
    ),
    "a move asked for later": ([*HERE, *AT_OLD, *requested(NOW - 10, 3, 4, 5)], [], {1, 2, 3}),
    "its move was called off": (
        [*HERE, *requested(NOW - 300, 4, 5, 6), reassigned(NOW - 200, "cancelled", None), *AT_OLD],
        [],
        {1, 2, 3},
    ),
    "one out of sync before": (
        AT_OLD[:1],
        [*SEEN[:2], *seen(DAY_AGO, 3, is_in_sync=False)],
        {1, 2, 3},
    ),
    "one out of sync since it moved": (
        [*MOVED, *in_sync(NOW - 900, 4, 5), *AT_NEW[:1]],
        [],
        {4, 5, 6},
    ),
    "one that snapshots saw go": (
        AT_OLD[:1],
        [*SEEN, *seen(NOW - 900, 3, is_removed=True)],
        {1, 2},
    ),
    "one that snapshots saw come later": (
        [*HERE, *AT_OLD],
        [*seen(NOW - 10, 1, 2), *seen(NOW - 10, 3, 4, is_in_sync=False)],
        {1, 2, 3},
    ),
    "moved again, and only snapshots saw it": (
        [*MOVED, *in_sync(NOW - 50, 7, 8)],
        seen(DAY_AGO + 900, 7, 8, 9),
        {7, 8, 9},
    ),
}


def test_whose_clients_suffer_as_a_partition_shrinks() -> None:
    cases: dict[str, tuple[Tables, Picked]] = {
        case: (
            NAMED | {"reassignment_changes": changes, "replicas": replicas},
            [(broker_id,) for broker_id in sorted(brokers)],
        )
        for case, (changes, replicas, brokers) in OF_BROKERS.items()
    }
    last = f"event_time = TIMESTAMP '{at(NOW - 50).isoformat()}'"
    assert_shown(cases, f"isr_shrinks WHERE {last} ORDER BY broker_id", "broker_id")


def test_clients_of_a_broker_suffer_no_more_from_what_moved_away() -> None:
    minutes = [NOW - 60 * n for n in range(5)]
    entity = {"topic": "other", "topic_id": "t9", "bytes": 600, "leader_throttled_bytes": 600}
    actual = demand(
        **NAMED,
        reassignment_changes=[*MOVED, *in_sync(NOW - 50, 4, 5)],
        replication_throttles=[throttled(NOW, topic="other", broker_id=1, peer_broker_id=2)],
        settings=[CAPACITY],
        rack_traffic=[sent(minute, 1_000_000) for minute in minutes],
        replication_traffic=[replicated(minute, 1, 2, **entity) for minute in minutes],
    )[1, "leader"]
    assert (actual["are_clients_healthy"], actual["capacity_source"]) == (None, "conf")


def test_a_partition_that_shrinks_again_and_again_is_one() -> None:
    flaps = [row for n in (-55, -45, -35) for row in in_sync(NOW + n, 1, 2)]
    flaps += [row for n in (-900, -50, -40) for row in in_sync(NOW + n, 1, 2, 3)]
    others = [row | {"partition": 1} for row in flaps] + [row | {"topic_id": "t2"} for row in flaps]
    other = {"topics": [TOPIC, TOPIC | {"topic_id": "t2", "topic": "payments"}]}
    other |= {"configs": [LEAST, LEAST | {"entity_name": "payments"}]}
    other |= {"replication_throttles": MOVES, "reassignment_changes": [*flaps, *others]}
    shrinks = view("broker_degradation", other)
    assert sorted(picked(shrinks, "broker_id", "shrunk_partitions")) == [(n, 3) for n in (1, 2, 3)]


SHRUNK = [*in_sync(NOW - 50.13, 1, 2), *in_sync(NOW - 50, 1, 2, 3)]


@cases(
    ("changes", "least", "expected"),
    ("with one to spare", SHRUNK, "1", [(3, 2, 1, at(NOW - 50))]),
    ("to the least", SHRUNK, "2", [(3, 2, 2, at(NOW - 50))]),
    ("not back yet", SHRUNK[:2], "1", [(3, 2, 1, None)]),
    ("it only grew", SHRUNK[2:], "1", []),
)
def test_a_shrink_that_lasts_an_instant_is_seen(
    changes: list[Row], least: str, expected: Picked
) -> None:
    content = {"topics": [TOPIC], "replicas": SEEN, "configs": [LEAST | {"config_value": least}]}
    content |= {"reassignment_changes": changes}
    shrinks = view("isr_shrinks ORDER BY broker_id", content)
    assert {row["broker_id"] for row in shrinks} == ({1, 2, 3} if expected else set())
    names = ("in_sync_before", "in_sync", "min_in_sync", "ended_at")
    assert picked(shrinks, *names) == expected * 3
    degraded = view("broker_degradation", content | {"replication_throttles": MOVES})
    is_least = any(in_sync <= min_in_sync for _, in_sync, min_in_sync, _ in expected)
    assert bool(degraded) == is_least
