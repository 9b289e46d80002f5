"""Since when a replica is in sync or not, by the request log, and what a move does with it."""

from typing import Any

from ...rows import Row, at, reassigned, row
from .view_tables import Tables, assert_shown

BEFORE, SHOT = 0, 500


def in_sync(second: float, *replicas: int) -> list[Row]:
    """What the leader of partition 0 of orders asked to be in sync."""
    return [reassigned(second, "in_sync", n, topic_id="t1", topic=None) for n in replicas]


def requested(second: float, *replicas: int) -> list[Row]:
    return [reassigned(second, "requested", n, place=i) for i, n in enumerate(replicas)]


def replica(second: float, broker_id: int, **others: Any) -> Row:
    """What a snapshot found of a replica of partition 0 of orders."""
    given = {"broker_id": broker_id, "is_in_sync": True, "is_leader": broker_id == 1}
    return row("replicas", second, given, topic="orders", topic_id="t1") | others


def moving(second: float, broker_id: int, role: str = "adding") -> Row:
    return row("moving_replicas", second, {"broker_id": broker_id, "role": role}, topic="orders")


def tables(changes: list[Row], *replicas: Row, moves: tuple[Row, ...] = ()) -> Tables:
    return {
        "reassignment_changes": changes,
        "replicas": [replica(BEFORE, 1), *replicas],
        "moving_replicas": list(moves),
    }


IN, OUT = replica(BEFORE, 3), replica(SHOT, 3, is_in_sync=False)
ALL, TWO = (1, 2, 3), (1, 2)
CASES = {
    "a move is to add it": (
        tables(requested(482, 3), OUT, moves=(moving(SHOT, 3),)),
        [(False, at(482), None, "adding")],
    ),
    "a snapshot from before the move shows that it is new": (
        tables(requested(482, 1, 3), OUT),
        [(False, at(482), None, None)],
    ),
    "a move is to add it again": (
        tables(
            [*in_sync(100, *ALL), *in_sync(200, *TWO), *requested(482, 3)],
            IN,
            replica(300, 3, is_removed=True),
            OUT,
        ),
        [(False, at(482), None, None)],
    ),
    "it was there before the move": (
        tables(requested(482, 1, 3), IN, OUT),
        [(False, None, "no_request", None)],
    ),
    "it joined by a move": (
        tables([*requested(300, 1, 3), *in_sync(400, 1, 3)], replica(SHOT, 3)),
        [(True, at(400), None, None)],
    ),
    "its leader took it out": (
        tables([*in_sync(300, *ALL), *in_sync(400, *TWO)], IN, OUT),
        [(False, at(400), None, None)],
    ),
    "out for an instant after the snapshot": (
        tables([*in_sync(600, *TWO), *in_sync(600.13, *ALL)], IN),
        [(True, at(600.13), None, None)],
    ),
    "its leader only named it": (
        tables(in_sync(400, *ALL), IN),
        [(True, None, "no_request", None)],
    ),
    "a move is to remove it": (
        tables([], IN, moves=(moving(SHOT, 3, "removing"),)),
        [(True, None, "no_request", "removing")],
    ),
    "its leader took it out after the snapshot": (
        tables([*in_sync(300, *ALL), *in_sync(600, *TWO)], IN),
        [(True, None, "changed_later", None)],
    ),
    "the log does not have when it came back": (
        tables([*in_sync(300, *ALL), *in_sync(400, *TWO)], OUT, replica(SHOT + 60, 3)),
        [(True, None, "no_request", None)],
    ),
}


def test_since_when_a_replica_is_in_sync_or_not() -> None:
    names = ("is_in_sync", "since", "since_unknown", "move_role")
    assert_shown(CASES, "current_replicas WHERE broker_id = 3", *names)


def racked(*racks: str | None) -> Tables:
    """A partition with a replica at a broker of each rack."""
    placed = [replica(BEFORE, n) for n in range(2, len(racks) + 1)]
    brokers = [
        row("brokers", BEFORE, {"broker_id": n, "rack": rack}) for n, rack in enumerate(racks, 1)
    ]
    return {**tables([], *placed), "brokers": brokers}


RACKS: dict[str, tuple[Tables, Any]] = {
    "all in one": (racked("a", "a"), [("a", 1)]),
    "each in another": (racked("a", "b"), [("a", 2)]),
    "two of three in one": (racked("a", "b", "b"), [("a", 2)]),
    "a broker without a rack": (racked(None, "b"), [(None, None)]),
    "another broker without a rack": (racked("a", None), [("a", None)]),
    "no broker is known": (tables([], IN), [(None, None)]),
}


def test_in_how_many_racks_a_partition_has_replicas() -> None:
    assert_shown(RACKS, "current_replicas WHERE broker_id = 1", "rack", "partition_racks")
