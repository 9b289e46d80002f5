"""The replica that a consumer is sent to: by racks, and of several the most caught up."""

import pytest

from quotaflow.udfs.rules import replica as rule
from quotaflow.udfs.rules.replica import RACK_AWARE

from .replica import Preferred, Replica, preferred


def in_sync(broker_id: int, rack: str | None, end: int = 100, ago_ms: int = 0) -> Replica:
    """An in-sync replica that holds offsets from 10 on."""
    return Replica(broker_id, rack, 10, end, ago_ms)


OUT_OF_SYNC = Replica(2, "b", 10, 100, is_in_sync=False)
OFFLINE = Replica(2, "b", 10, 100, is_online=False)
LEADER = in_sync(1, "a")


@pytest.mark.parametrize(
    ("client_rack", "followers", "expected"),
    [
        pytest.param(
            None, [in_sync(2, None)], (1, rule.NO_CLIENT_RACK), id="no rack of the client"
        ),
        pytest.param("", [in_sync(2, "")], (1, rule.NO_CLIENT_RACK), id="an empty rack is none"),
        pytest.param(
            "a", [in_sync(2, "a", 999)], (1, rule.LEADER_IN_RACK), id="the leader is there"
        ),
        pytest.param(
            "b", [in_sync(2, "b"), in_sync(3, "c")], (2, rule.FOLLOWER_IN_RACK), id="a follower is"
        ),
        pytest.param(
            "b", [in_sync(2, "b", 90), in_sync(3, "b", 95)], (3, rule.FOLLOWER_IN_RACK), id="end"
        ),
        pytest.param(
            "b",
            [in_sync(2, "b", 90, 1), in_sync(3, "b", 90, 5)],
            (2, rule.FOLLOWER_IN_RACK),
            id="time",
        ),
        pytest.param(
            "b",
            [in_sync(11, "b"), in_sync(2, "b")],
            (11, rule.FOLLOWER_IN_RACK),
            id="ids are numbers",
        ),
        pytest.param("d", [in_sync(2, "b")], (1, rule.NO_REPLICA_IN_RACK), id="nobody is there"),
        pytest.param("b", [OUT_OF_SYNC], (1, rule.NOT_ELIGIBLE_IN_RACK), id="out of sync"),
        pytest.param("b", [OFFLINE], (1, rule.NOT_ELIGIBLE_IN_RACK), id="offline"),
        pytest.param(
            "b", [OUT_OF_SYNC, in_sync(3, "b", 50)], (3, rule.FOLLOWER_IN_RACK), id="another"
        ),
        pytest.param(
            "b", [in_sync(2, "b", 49)], (1, rule.NOT_ELIGIBLE_IN_RACK), id="behind the offset"
        ),
    ],
)
def test_the_replica_of_the_rack_is_preferred(
    client_rack: str | None, followers: list[Replica], expected: tuple[int, str]
) -> None:
    assert preferred(RACK_AWARE, client_rack, LEADER, followers, 50) == Preferred(*expected)


@pytest.mark.parametrize(
    ("offset", "reason"),
    [
        pytest.param(9, rule.NOT_ELIGIBLE_IN_RACK, id="deleted there"),
        pytest.param(10, rule.FOLLOWER_IN_RACK, id="its first"),
        pytest.param(100, rule.FOLLOWER_IN_RACK, id="the next to come"),
        pytest.param(101, rule.NOT_ELIGIBLE_IN_RACK, id="not yet there"),
    ],
)
def test_a_follower_must_hold_the_offset(offset: int, reason: str) -> None:
    assert preferred(RACK_AWARE, "b", LEADER, [in_sync(2, "b")], offset).reason == reason


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        pytest.param(None, (1, rule.NO_SELECTOR), id="the default"),
        pytest.param("", (1, rule.NO_SELECTOR), id="an empty class is none"),
        pytest.param("com.example.Nearest", (None, rule.SELECTOR_UNKNOWN), id="a class unknown"),
    ],
)
def test_another_selector_does_not_go_by_racks(
    selector: str | None, expected: tuple[int | None, str]
) -> None:
    assert preferred(selector, "b", LEADER, [in_sync(2, "b")], 50) == Preferred(*expected)
