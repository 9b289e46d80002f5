"""The replica that a consumer is sent to: by racks, and of several the most caught up."""

from ...cases import cases
from . import replica as rule
from .replica import RACK_AWARE, Preferred, Replica, preferred


def in_sync(broker_id: int, rack: str | None, end: int = 100, ago_ms: int = 0) -> Replica:
    """An in-sync replica that holds offsets from 10 on."""
    return Replica(broker_id, rack, 10, end, ago_ms)


OUT_OF_SYNC = Replica(2, "b", 10, 100, is_in_sync=False)
OFFLINE = Replica(2, "b", 10, 100, is_online=False)
LEADER = in_sync(1, "a")


@cases(
    ("client_rack", "followers", "expected"),
    ("no rack of the client", None, [in_sync(2, None)], (1, rule.NO_CLIENT_RACK)),
    ("an empty rack is none", "", [in_sync(2, "")], (1, rule.NO_CLIENT_RACK)),
    ("the leader is there", "a", [in_sync(2, "a", 999)], (1, rule.LEADER_IN_RACK)),
    ("a follower is", "b", [in_sync(2, "b"), in_sync(3, "c")], (2, rule.FOLLOWER_IN_RACK)),
    ("end", "b", [in_sync(2, "b", 90), in_sync(3, "b", 95)], (3, rule.FOLLOWER_IN_RACK)),
    ("time", "b", [in_sync(2, "b", 90, 1), in_sync(3, "b", 90, 5)], (2, rule.FOLLOWER_IN_RACK)),
    ("ids are numbers", "b", [in_sync(11, "b"), in_sync(2, "b")], (11, rule.FOLLOWER_IN_RACK)),
    ("nobody is there", "d", [in_sync(2, "b")], (1, rule.NO_REPLICA_IN_RACK)),
    ("out of sync", "b", [OUT_OF_SYNC], (1, rule.NOT_ELIGIBLE_IN_RACK)),
    ("offline", "b", [OFFLINE], (1, rule.NOT_ELIGIBLE_IN_RACK)),
    ("another", "b", [OUT_OF_SYNC, in_sync(3, "b", 50)], (3, rule.FOLLOWER_IN_RACK)),
    ("behind the offset", "b", [in_sync(2, "b", 49)], (1, rule.NOT_ELIGIBLE_IN_RACK)),
)
def test_the_replica_of_the_rack_is_preferred(
    client_rack: str | None, followers: list[Replica], expected: tuple[int, str]
) -> None:
    assert preferred(RACK_AWARE, client_rack, LEADER, followers, 50) == Preferred(*expected)


@cases(
    ("offset", "reason"),
    ("deleted there", 9, rule.NOT_ELIGIBLE_IN_RACK),
    ("its first", 10, rule.FOLLOWER_IN_RACK),
    ("the next to come", 100, rule.FOLLOWER_IN_RACK),
    ("not yet there", 101, rule.NOT_ELIGIBLE_IN_RACK),
)
def test_a_follower_must_hold_the_offset(offset: int, reason: str) -> None:
    assert preferred(RACK_AWARE, "b", LEADER, [in_sync(2, "b")], offset).reason == reason


@cases(
    ("selector", "expected"),
    ("the default", None, (1, rule.NO_SELECTOR)),
    ("an empty class is none", "", (1, rule.NO_SELECTOR)),
    ("a class unknown", "com.example.Nearest", (None, rule.SELECTOR_UNKNOWN)),
)
def test_another_selector_does_not_go_by_racks(
    selector: str | None, expected: tuple[int | None, str]
) -> None:
    assert preferred(selector, "b", LEADER, [in_sync(2, "b")], 50) == Preferred(*expected)
