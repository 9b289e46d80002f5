"""Lists of throttled replicas that do not name what is moved, and what a plan adds to them."""

from typing import Any

from ...cases import cases
from ...rows import HOSTILE, Row, altered, setting, throttled
from .rate_rows import NOW, produced
from .view_tables import Picked, Tables, assert_shown, picked, signals, view

LEADERS, FOLLOWERS = (f"{side}.replication.throttled.replicas" for side in ("leader", "follower"))
MANAGED = setting("replication.manage", "true")
BY_US = setting("replication.cleanup.User:us", "own")
IDLE: Row = {"is_moving": False, "in_isr": True, "offset_lag": 0, "is_biting": False}


def unlisted(second: float = NOW, **others: Any) -> Row:
    """Moved without an entry: follower 2 reads partition 1 of orders from broker 1."""
    return throttled(
        second, **{"listed": "unlisted", "partition": 1, "reason": "rate_without_list"} | others
    )


def reading(partition: int, **others: Any) -> Row:
    """The other side of it."""
    follower = {"side": "follower", "broker_id": 2, "peer_broker_id": 1}
    return unlisted(partition=partition, **follower | others)


PROPOSALS = "throttled_replica_proposals"


def proposals(throttles: list[Row], **content: list[Row]) -> list[Row]:
    return view(
        f"{PROPOSALS} ORDER BY entity_name, config_key",
        {"settings": [MANAGED]} | content | {"replication_throttles": throttles},
    )


NAMED: list[tuple[str, list[Row], Picked]] = [
    ("beside what the list names", [throttled(NOW), unlisted()], [(LEADERS, "0:1,1:1", "0:1")]),
    ("there is no list yet", [unlisted()], [(LEADERS, "1:1", None)]),
    (
        "both sides, each entry once",
        [unlisted(), unlisted(peer_broker_id=3), reading(1), reading(2, broker_id=3)],
        [(FOLLOWERS, "1:2,2:3", None), (LEADERS, "1:1", None)],
    ),
    ("the other side limits the move", [throttled(NOW, partition=1), reading(1)], []),
    ("no rate stands", [throttled(NOW), unlisted(rate=None, rate_source="unset")], []),
    ("a rate that has no effect", [unlisted(rate_source="static")], []),
    ("by now it is named, or has come", [unlisted(NOW - 60), throttled(NOW)], []),
    ("behind, and not moved", [unlisted(is_moving=False)], []),
    ("the rate was taken away since", [unlisted(is_configured=False)], []),
    ("nobody told of its lists", [unlisted(listed=None, reason="list_unknown")], []),
    ("nothing is added to *", [throttled(NOW, listed="wildcard"), unlisted()], []),
]


def test_what_a_list_is_to_name() -> None:
    shown: dict[str, tuple[Tables, Picked]] = {
        case: ({"settings": [MANAGED], "replication_throttles": throttles}, expected)
        for case, throttles, expected in NAMED
    }
    columns = ("config_key", "config_value", "prior_value")
    actual = assert_shown(shown, f"{PROPOSALS} ORDER BY entity_name, config_key", *columns)
    assert {row["blocked_reason"] for rows in actual.values() for row in rows} == {None}


def test_it_says_since_when_and_why() -> None:
    about = {"topic": HOSTILE}
    throttles = [unlisted(NOW - 600, **about), unlisted(**about), unlisted(partition=2, **about)]
    (row,) = proposals(throttles)
    assert row["since"] == throttles[0]["event_time"]
    assert (row["priority"], row["lease_s"], row["entity_name"]) == (25, 604_800, HOSTILE)
    assert row["reason_code"] == "moved_unlisted"
    numbers = {"replicas": 2, "rate_bytes_per_s": 2e6, "written_bytes_per_s": None}
    assert signals(row) == numbers
    assert row["evidence_key"] == f"finding=moved_unlisted topic={HOSTILE} side=leader"
    content = {"settings": [MANAGED], "replication_throttles": throttles}
    actual = view("throttle_checks WHERE finding = 'moved_unlisted'", content)
    assert picked(actual, "topic", "side", "replicas") == [(HOSTILE, "leader", 2)]


@cases(
    ("throttles", "content", "blocked_reason"),
    ("unasked for", [unlisted()], {"settings": []}, "not_managed"),
    ("malformed", [throttled(NOW, list_malformed="0-1"), unlisted()], {}, "malformed_list"),
    (
        "as much is written for its followers as may pass",
        [throttled(NOW), unlisted(), unlisted(peer_broker_id=3)],
        {"replication_traffic": [produced(NOW, 1_000_000), produced(NOW, 500_000, partition=1)]},
        "rate_not_above_writes",
    ),
    (
        "a little less is",
        [throttled(NOW, side="follower", broker_id=2, peer_broker_id=1), reading(1)],
        {"replication_traffic": [produced(NOW, 1_000_000), produced(NOW, 999_999, partition=1)]},
        None,
    ),
)
def test_what_is_blocked_and_why(
    throttles: list[Row], content: Tables, blocked_reason: str | None
) -> None:
    (row,) = proposals(throttles, **content)
    assert row["blocked_reason"] == blocked_reason
    assert row["config_value"].endswith(("1:1", "1:2"))
    assert row["renew_only"] is (blocked_reason == "rate_not_above_writes")
    assert signals(row)["written_bytes_per_s"] == (2e6 if row["renew_only"] else None)


GROWN: list[tuple[str, list[Row], tuple[Any, ...]]] = [
    ("what it names came long ago: left over", [], (None, "0:1")),
    ("it is to grow: not left over", [unlisted()], ("0:1,1:1", "0:1")),
]


def test_a_list_that_is_to_grow_is_not_left_over() -> None:
    old = throttled(NOW, list_set_by="User:us", **IDLE)
    change = altered(1, LEADERS, "0:1", principal="User:us")
    tables = {"settings": [MANAGED, BY_US], "config_alterations": [change]}
    shown: dict[str, tuple[Tables, Picked]] = {
        case: (tables | {"replication_throttles": [old, *more]}, [expected])
        for case, more, expected in GROWN
    }
    of_topics = "desired_configs WHERE entity_type = 'topic'"
    assert_shown(shown, of_topics, "config_value", "prior_value")
