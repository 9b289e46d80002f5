"""What the rate of a replication throttle is decided from, as tables tell it."""

from collections.abc import Mapping
from typing import Any

from ...rows import Row, crossed, replicated, setting, throttled
from .view_tables import Tables, by_case, view

NOW = 3_600
MOVES = [throttled(NOW), throttled(NOW, side="follower", broker_id=2, peer_broker_id=1)]
BySide = dict[tuple[int, str], Row]
"""Of each broker and side, as "leader", its row."""
CAPACITY = setting("replication.capacity_bytes_per_s", 1e8)


def produced(second: float, size: int, **others: Any) -> Row:
    """A minute of what clients wrote into partition 0 of orders, in bytes per second."""
    return replicated(second, 1, None, bytes=60 * size, **others)


def sent(second: float, size: int, **others: Any) -> Row:
    """A minute of what broker 1 sent consumers, in bytes per second."""
    nowhere = dict.fromkeys(("client_rack", "broker_rack", "cross_rack_bytes"))
    return crossed(second, 60 * size, **nowhere | others)


def demand(**content: list[Row]) -> BySide:
    """Rows by broker and side, of a move from broker 1 to 2 unless others are told."""
    return _by_side(view("replication_demand", {"replication_throttles": MOVES} | content))


def demands(cases: Mapping[str, Tables]) -> dict[str, BySide]:
    """The same of each case, by one query."""
    content = {case: {"replication_throttles": MOVES} | sides for case, sides in cases.items()}
    actual = by_case(content, "SELECT * FROM replication_demand")
    return {case: _by_side(answers) for case, answers in actual.items()}


def _by_side(actual: list[Row]) -> BySide:
    sides = {(row["broker_id"], row["side"]): row for row in actual}
    assert len(sides) == len(actual)
    return sides
