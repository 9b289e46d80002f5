"""The truth table of a replication throttle: whether it holds a replica back, and why not."""

from itertools import product
from typing import Any

import pytest

from ...cases import cases
from .replication_throttle import (
    DYNAMIC_BROKER,
    DYNAMIC_DEFAULT,
    FOLLOWER,
    LEADER,
    STATIC,
    UNSET,
    ReplicationSide,
    ThrottleState,
    state,
)

BITING: dict[str, Any] = {
    "is_listed": True,
    "rate": 1_000.0,
    "rate_source": DYNAMIC_BROKER,
    "is_in_sync": False,
    "is_lagging": True,
    "peak_rate": 990.0,
    "stalled_fetches": 3,
}
NOT, UNKNOWN, EFFECTIVE = (False, False), (None, None), (True, False)


@pytest.mark.parametrize("side", [LEADER, FOLLOWER])
@cases(
    ("others", "expected"),
    ("it bites", {}, ThrottleState(True, True)),
    ("by the default", {"rate_source": DYNAMIC_DEFAULT}, ThrottleState(True, True)),
    ("too little", {"peak_rate": 800.0}, ThrottleState(*EFFECTIVE, "under_rate")),
    ("no evidence", {"stalled_fetches": 0}, ThrottleState(*EFFECTIVE, "no_stalled_fetches")),
    ("a rate alone", {"is_listed": False}, ThrottleState(*NOT, "rate_without_list")),
    ("neither", {"is_listed": False, "rate_source": UNSET}, ThrottleState(*NOT, "no_throttle")),
    (
        "a list alone",
        {"rate_source": UNSET, "rate": None},
        ThrottleState(*NOT, "list_without_rate"),
    ),
    ("in a file", {"rate_source": STATIC}, ThrottleState(*NOT, "static_rate_ignored")),
    ("rate untold", {"rate_source": None}, ThrottleState(*UNKNOWN, "rate_unknown")),
    ("list untold", {"is_listed": None}, ThrottleState(*UNKNOWN, "list_unknown")),
    ("no such broker", {"is_broker_removed": True}, ThrottleState(*NOT, "broker_gone")),
    ("idle", {"is_replicating": False}, ThrottleState(*NOT, "not_replicating")),
)
def test_both_sides(side: str, others: dict[str, Any], expected: ThrottleState) -> None:
    assert state(ReplicationSide(side, **(BITING | others))) == expected


@cases(
    ("side", "others", "expected"),
    ("leader: in sync", LEADER, {"is_in_sync": True}, ThrottleState(*NOT, "in_isr")),
    ("untold", LEADER, {"is_in_sync": None}, ThrottleState(*UNKNOWN, "isr_unknown")),
    ("follower: in sync too", FOLLOWER, {"is_in_sync": True}, ThrottleState(True, True)),
    ("caught up", FOLLOWER, {"is_lagging": False}, ThrottleState(*NOT, "follower_caught_up")),
    ("lag", FOLLOWER, {"is_lagging": None}, ThrottleState(*UNKNOWN, "lag_unknown")),
    ("leader: lag is no matter", LEADER, {"is_lagging": None}, ThrottleState(True, True)),
    (
        "led elsewhere",
        LEADER,
        {"is_replicating": False, "has_other_leader": True},
        ThrottleState(*NOT, "not_leader"),
    ),
    (
        "a follower has one leader",
        FOLLOWER,
        {"is_replicating": False, "has_other_leader": True},
        ThrottleState(*NOT, "not_replicating"),
    ),
)
def test_one_side(side: str, others: dict[str, Any], expected: ThrottleState) -> None:
    assert state(ReplicationSide(side, **(BITING | others))) == expected


def test_a_reason_is_told_unless_it_bites_and_only_what_is_effective_bites() -> None:
    three = (True, False, None)
    for side, listed, source, there, other, in_sync, lagging, peak, stalled in product(
        (LEADER, FOLLOWER),
        three,
        (DYNAMIC_BROKER, DYNAMIC_DEFAULT, STATIC, UNSET, None),
        (True, False),
        (True, False),
        three,
        three,
        (0.0, 2_000.0),
        (0, 1),
    ):
        throttle = state(
            ReplicationSide(
                *(side, listed, 1_000.0, source),
                is_replicating=there,
                has_other_leader=other,
                is_in_sync=in_sync,
                is_lagging=lagging,
                peak_rate=peak,
                stalled_fetches=stalled,
            )
        )
        assert (throttle.reason is None) == (throttle.is_biting is True)
        assert throttle.is_effective or not throttle.is_biting
