"""What a move demands of brokers, and the one rate that fits it."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotaflow.udfs.rules.move_throttle import (
    FOLLOWER,
    LEADER,
    SIDES,
    BrokerLoad,
    MoveThrottle,
    PartitionMove,
    move_throttle,
)
from quotaflow.udfs.rules.throttle_rate import RatePolicy

from ...cases import cases

MB = 1_000_000
BOUNDS = RatePolicy()
BULK = PartitionMove("bulk", 0, 1, (1, 2), (1, 3), 600 * MB, 2 * MB, 3 * MB)


def carried(out: float = 40, into: float = 20, capacity: float | None = 100) -> BrokerLoad:
    most = None if capacity is None else capacity * MB
    return BrokerLoad(dict.fromkeys(SIDES, most), {LEADER: out * MB, FOLLOWER: into * MB})


BROKERS = {1: carried(), 2: carried(), 3: carried(into=80)}


def planned(*partitions: PartitionMove, brokers: dict[int, BrokerLoad] = BROKERS) -> MoveThrottle:
    return move_throttle(partitions, brokers, BOUNDS)


def test_a_move_asks_its_leader_and_who_is_added() -> None:
    plan = planned(BULK)
    assert [(side.broker_id, side.side, side.size_bytes, side.floor) for side in plan.sides] == [
        (1, LEADER, 600 * MB, 4 * MB),
        (3, FOLLOWER, 600 * MB, 2 * MB),
    ]
    assert [side.advised.rate for side in plan.sides] == [
        pytest.approx(0.9 * 60 * MB),
        pytest.approx(0.9 * 18 * MB),
    ]
    assert (plan.min_rate, plan.max_rate, plan.fits) == (4 * MB, pytest.approx(16.2 * MB), True)
    assert plan.seconds(14 * MB) == pytest.approx(60)
    assert (plan.seconds(4 * MB), plan.seconds(3 * MB)) == (None, None)


def test_lists_are_in_the_form_kafka_takes() -> None:
    plan = planned(BULK, replace(BULK, partition=7, target=(4, 5)), replace(BULK, topic="t"))
    assert plan.leader_replicas == {"bulk": "0:1,0:2,7:1,7:2", "t": "0:1,0:2"}
    assert plan.follower_replicas == {"bulk": "0:3,7:4,7:5", "t": "0:3"}


def test_a_leader_sends_to_each_that_is_added() -> None:
    (leader, *followers) = planned(replace(BULK, target=(1, 3, 4))).sides
    assert (leader.size_bytes, leader.floor) == (1_200 * MB, 6 * MB)
    assert [side.size_bytes for side in followers] == [600 * MB, 600 * MB]


def test_what_the_new_leader_carries_afterwards_counts() -> None:
    plan = planned(replace(BULK, target=(3, 2)))
    into = next(side for side in plan.sides if side.broker_id == 3)
    assert into.other == 82 * MB
    busy = planned(
        replace(BULK, target=(3, 2)), replace(BULK, topic="t", leader=3, replicas=(3, 2))
    )
    sends = next(side for side in busy.sides if (side.broker_id, side.side) == (3, LEADER))
    assert sends.other == 45 * MB


def test_a_leader_that_stays_may_hand_over_to_the_first_or_not() -> None:
    led = replace(BULK, topic="t", leader=3, replicas=(3, 2), target=(3, 1), written=0, read=0)
    plan = planned(replace(BULK, target=(3, 1, 2)), led)
    sends = {side.broker_id: side.other for side in plan.sides if side.side == LEADER}
    assert sends == {1: 42 * MB, 3: 47 * MB}


@cases(
    ("partition", "brokers", "most", "fits"),
    ("unknown", BULK, {1: carried(capacity=None), 3: carried()}, None, False),
    ("nothing known of a broker", BULK, {1: carried()}, None, False),
    ("more is written than is left", replace(BULK, written=30 * MB), BROKERS, None, False),
    (
        "just what is written is left",
        replace(BULK, written=17 * MB),
        BROKERS | {3: carried(into=65)},
        17 * MB,
        False,
    ),
)
def test_where_no_rate_fits(
    partition: PartitionMove, brokers: dict[int, BrokerLoad], most: float | None, fits: bool
) -> None:
    plan = planned(partition, brokers=brokers)
    assert (plan.max_rate, plan.fits) == (most, fits)


def test_another_order_of_the_same_replicas_moves_nothing() -> None:
    plan = planned(replace(BULK, target=(2, 1)))
    assert (plan.sides, plan.min_rate, plan.max_rate, plan.seconds(MB)) == ((), 0.0, None, 0.0)
    assert (plan.leader_replicas, plan.follower_replicas) == ({}, {})


NODES = st.lists(st.integers(1, 6), min_size=1, max_size=4, unique=True)
MOVING = NODES.flatmap(
    lambda replicas: st.builds(
        PartitionMove,
        st.sampled_from(["a", "b"]),
        st.integers(0, 3),
        st.sampled_from(replicas),
        st.just(tuple(replicas)),
        NODES.map(tuple),
        st.integers(0, 10**12),
        st.floats(0, 1e8),
        st.floats(0, 1e8),
    )
)


@given(st.lists(MOVING, max_size=8, unique_by=lambda move: (move.topic, move.partition)))
def test_leaders_send_what_followers_take(partitions: list[PartitionMove]) -> None:
    plan = planned(*partitions)
    sent, taken = (sum(side.size_bytes for side in plan.sides if side.side == one) for one in SIDES)
    assert sent == taken == sum(move.size_bytes * len(move.added) for move in partitions)
    if plan.fits:
        assert plan.max_rate is not None
        assert plan.seconds(plan.max_rate) is not None
    listed = {
        (topic, entry)
        for topic, entries in plan.follower_replicas.items()
        for entry in entries.split(",")
    }
    assert listed == {
        (move.topic, f"{move.partition}:{node}") for move in partitions for node in move.added
    }
