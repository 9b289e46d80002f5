"""Brokers that a move makes the preferred leader, and what they send once they lead."""

from typing import Any

from ...cases import cases
from ...rows import Row, choice, reassigned, throttled
from .rate_rows import MOVES, NOW, demand, produced
from .view_tables import Picked, Tables, picked, view

MINUTE_BYTES = 60
TO_2 = [reassigned(0, "requested", node, place=place) for place, node in enumerate((2, 1, 3))]
LED_BY_2 = throttled(NOW, partition=1, broker_id=2, peer_broker_id=3)


def read(second: float, size: int, **others: Any) -> Row:
    """A minute of what a consumer read of partition 0 from its leader, in bytes per second."""
    return choice(second // 60 * 60, MINUTE_BYTES * size, broker_id=1, **others)


@cases(
    ("content", "expected"),
    ("nobody uses it", {"reassignment_changes": TO_2}, [(2, 0, 1, 0.0, 0.0)]),
    (
        "the busiest minute of its consumers, and two replicas beside",
        {
            "reassignment_changes": TO_2,
            "replication_traffic": [produced(NOW, 70)],
            "preferred_replicas": [
                read(NOW - 60, 40),
                read(NOW - 60, 60, client_id="other"),
                read(NOW, 90),
                read(NOW - 600, 900),
                read(NOW, 500) | {"broker_id": 3},
            ],
        },
        [(2, 0, 1, 100.0, 140.0)],
    ),
    (
        "asked anew, and the leader stays the first",
        {"reassignment_changes": [TO_2[0], reassigned(60, "requested", 1, place=0)]},
        [],
    ),
    ("it was refused", {"reassignment_changes": [row | {"error_code": 39} for row in TO_2]}, []),
    (
        "the move is over",
        {
            "reassignment_changes": TO_2,
            "replication_throttles": [throttled(NOW - 60), throttled(NOW, is_moving=False)],
        },
        [],
    ),
    (
        "its follower fetches nothing in the newest minute",
        {
            "reassignment_changes": TO_2,
            "replication_throttles": [throttled(NOW - 60), throttled(NOW, peer_broker_id=None)],
        },
        [(2, 0, 1, 0.0, 0.0)],
    ),
    (
        "it leads already",
        {
            "reassignment_changes": TO_2,
            "replication_throttles": [
                throttled(NOW, side="follower", broker_id=3, peer_broker_id=2)
            ],
        },
        [],
    ),
)
def test_who_leads_next_and_what_that_means(content: Tables, expected: Picked) -> None:
    actual = view("next_leaders", {"replication_throttles": MOVES} | content)
    names = ("broker_id", "partition", "leader_id", "read_bytes_per_s", "replicated_bytes_per_s")
    assert picked(actual, *names) == expected


def test_a_throttle_of_its_leaves_room_for_that() -> None:
    actual = demand(
        replication_throttles=[*MOVES, LED_BY_2],
        reassignment_changes=TO_2,
        replication_traffic=[produced(NOW, 70), produced(NOW, 5, partition=1)],
        preferred_replicas=[read(NOW, 100)],
    )
    other = {key: row["other_bytes_per_s"] for key, row in actual.items()}
    # What replicas that are being added will take counts beside, at both of their ends.
    assert other == {(1, "leader"): 70.0, (2, "follower"): 70.0, (2, "leader"): 5.0 + 100.0 + 140.0}
