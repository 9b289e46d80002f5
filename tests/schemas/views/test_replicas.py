"""What would keep consumers' bytes in their rack, and how many those are."""

from typing import Any

import pytest

from ...cases import cases
from ...rows import HOSTILE, Row, at, broker_config, choice, crossed, replicated, row, setting
from .view_tables import Tables, picked, view

HALF_HOUR_S = 1_800
TARGET = ("advice", "principal", "client_id", "client_rack", "topic", "partition", "broker_id")
ALICE = ("User:alice", "orders", "az-b")


def advised(content: Tables, *names: str) -> list[Any]:
    return picked(
        view("replica_advice ORDER BY advice, client_rack, topic, broker_id", content), *names
    )


def broker(broker_id: int, rack: str | None) -> Row:
    row = {"cluster_id": "c1", "event_time": at(-60), "is_removed": False}
    return row | {"broker_id": broker_id, "rack": rack}


NO_SELECTOR = {"expected_reason": "no_selector"}
INFERRED = {"is_rack_inferred": True, "expected_reason": "no_client_rack"}
NOBODY_THERE = {"recommended_reason": "no_replica_in_rack", "avoidable_bytes": 0}
NEAR = {"broker_id": 2, "broker_rack": "az-b", "cross_rack_bytes": 0, "avoidable_bytes": 0}
# Readers next to the leader outweigh those elsewhere, so that it had better stay.
STAY = choice(0, 9_000, client_rack="az-a", client_id="x", cross_rack_bytes=0, avoidable_bytes=0)


def test_a_step_of_a_client_has_its_share_of_what_the_client_read() -> None:
    near = choice(0, 6, broker_id=2, broker_rack="az-b", cross_rack_bytes=0, avoidable_bytes=0)
    content = {"preferred_replicas": [choice(0, 2), near, choice(0, 8, client_id="x")]}
    names = ("advice", "client_id", "read_share")
    assert sorted(advised(content, *names), key=str) == [
        ("check_client", "orders", 0.25),
        ("check_client", "x", 1),
        ("move_leader", None, None),
    ]


@cases(
    ("read", "expected"),
    ("from its rack", [choice(0, 8, **NEAR)], None),
    ("not followed", [choice(0, 8)], ("check_client", *ALICE, None, None, None)),
    (
        "a consumer that tells no rack",
        [choice(0, 8, **INFERRED)],
        ("set_client_rack", *ALICE, None, None, None),
    ),
    (
        "a consumer that can tell none",
        [choice(0, 8, api_version=8, **INFERRED)],
        ("update_client", *ALICE, None, None, None),
    ),
    (
        "a leader that names nobody",
        [choice(0, 8, **NO_SELECTOR)],
        ("set_selector", None, None, None, None, None, 1),
    ),
    (
        "no replica in its rack",
        [choice(0, 8, **NOBODY_THERE)],
        ("place_replica", None, None, "az-b", "orders", None, None),
    ),
    (
        "a broker without a rack",
        [choice(0, 8, broker_id=9, broker_rack=None, cross_rack_bytes=None)],
        ("set_broker_rack", None, None, None, None, None, 9),
    ),
    (
        "a replica that is out of sync comes back by itself",
        [choice(0, 8, expected_reason="not_eligible_in_rack", avoidable_bytes=0)],
        None,
    ),
    (
        "nobody knows where it is",
        [choice(0, 8, client_rack=None, cross_rack_bytes=None, avoidable_bytes=None)],
        None,
    ),
)
def test_each_byte_that_crosses_has_one_step(
    read: list[Row], expected: tuple[Any, ...] | None
) -> None:
    content = {"preferred_replicas": [*read, STAY], "brokers": [broker(1, "a"), broker(9, None)]}
    assert advised(content, *TARGET) == ([expected] if expected else [])


RATES = ("saved_bytes_per_hour", "replica_bytes_per_hour", "saved_cost_per_hour", "currency")


GIB = 2**30


def written(second: float, size: int, **others: Any) -> Row:
    """A minute in which clients wrote partition 0 of orders."""
    return replicated(second, 1, None, **{"topic": "orders", "bytes": size} | others)


def test_savings_are_per_hour_and_a_new_replica_costs_what_is_produced() -> None:
    content = {
        "preferred_replicas": [
            choice(0, GIB, **NOBODY_THERE),
            choice(HALF_HOUR_S - 60, GIB, **NOBODY_THERE),
            choice(-86_400, GIB, **NOBODY_THERE),
            STAY,
        ],
        "replication_traffic": [
            written(0, GIB),
            written(-3_600, GIB),
            written(0, 7, topic="clicks"),
            written(0, 7, partition=1),
            replicated(0, 1, 2, topic="orders", bytes=7),
        ],
        "settings": [setting("prices.currency", "EUR"), setting("prices.cross_rack_per_gib", 8.0)],
    }
    assert advised(content, *RATES) == [(2.0 * GIB, 2.0 * GIB, 16.0, "EUR")]
    assert advised(content, "saved_bytes", "lasted_ms") == [(GIB, HALF_HOUR_S * 1_000)]


@cases(
    ("size", "is_small"),
    ("less than 10 MB an hour", 166_666, True),
    ("as much", 166_667, False),
)
def test_a_step_that_spares_little_is_small(size: int, *, is_small: bool) -> None:
    read = [choice(0, size, **NOBODY_THERE), STAY]
    assert advised({"preferred_replicas": read}, "is_small") == [(is_small,)]


FETCHED = {0: 7, 1: 8, 2: 9}


def test_replicas_are_placed_where_they_spare_more_than_they_fetch() -> None:
    read = [choice(0, 8, partition=number, **NOBODY_THERE) for number in FETCHED]
    writes = [written(0, size, partition=number) for number, size in FETCHED.items()]
    content = {"preferred_replicas": [*read, STAY], "replication_traffic": writes}
    assert advised(content, "partitions", "saved_bytes") == [("0", 1)]
    content["replication_traffic"] = writes[1:]
    assert advised(content, "partitions", "saved_bytes") == [("0", 8)]
    content["preferred_replicas"] = read[1:]
    assert advised(content, "advice") == []


def test_many_partitions_are_cut() -> None:
    read = [choice(0, 8, partition=number, **NOBODY_THERE) for number in range(21)]
    ((partitions,),) = advised({"preferred_replicas": [*read, STAY]}, "partitions")
    assert partitions == f"{', '.join(map(str, range(20)))}, ..."


PLACED = row("replicas", 0, {"broker_id": 2, "topic_id": "t1", "topic": "orders"}, partition=0)
SELECTS = broker_config("replica.selector.class", "RackAwareReplicaSelector")
NEXT_DAY_S = 7_200


@cases(
    ("read", "others", "expected"),
    ("an old client", [choice(0, 8, api_version=8)], {}, "update_client"),
    (
        "it was updated",
        [choice(0, 8, api_version=8), choice(NEXT_DAY_S, 8, **NEAR)],
        {},
        None,
    ),
    (
        "it was updated, and reads another topic",
        [choice(0, 8, api_version=8), choice(NEXT_DAY_S, 8, **NEAR, topic_id="t2", topic="b")],
        {},
        "update_client",
    ),
    (
        "it names its rack since",
        [choice(0, 8, **INFERRED), choice(NEXT_DAY_S, 8, **NEAR)],
        {},
        None,
    ),
    (
        "it named no rack a minute before",
        [choice(0, 8, **INFERRED), choice(60, 8, **NEAR)],
        {},
        "set_client_rack",
    ),
    ("no replica in its rack", [choice(0, 8, **NOBODY_THERE)], {}, "place_replica"),
    (
        "one was placed there",
        [choice(0, 8, **NOBODY_THERE)],
        {"replicas": [PLACED], "brokers": [broker(2, "az-b")]},
        None,
    ),
    ("no selector", [choice(0, 8, **NO_SELECTOR)], {}, "set_selector"),
    ("a selector was set", [choice(0, 8, **NO_SELECTOR)], {"configs": [SELECTS]}, None),
)
def test_a_step_that_is_done_is_not_advised(
    read: list[Row], others: Tables, expected: str | None
) -> None:
    content = {"preferred_replicas": [*read, STAY], **others}
    assert advised(content, "advice") == ([(expected,)] if expected else [])


MOVED = [
    choice(0, 100, client_id="x"),
    choice(0, 70, client_rack="az-c", client_id="y"),
    choice(0, 30, client_rack="az-a", client_id="z", cross_rack_bytes=0, avoidable_bytes=0),
    choice(0, 900, **NEAR),
]


@cases(
    ("read", "expected"),
    ("most is read elsewhere", MOVED, [("az-b", "orders", 0, 1, 70.0 * 60)]),
    ("most is read where it is", [*MOVED, STAY], []),
    ("another broker leads meanwhile", [*MOVED, choice(60, 8, leader_id=2, **NEAR)], []),
)
def test_a_leader_is_better_where_most_is_read_from_it(
    read: list[Row], expected: list[Any]
) -> None:
    content = {"preferred_replicas": read}
    names = ("advice", "client_rack", "topic", "partition", "broker_id", "saved_bytes_per_hour")
    answers = advised(content, *names)
    assert [row[1:] for row in answers if row[0] == "move_leader"] == expected


@pytest.mark.parametrize("topic", [HOSTILE, None])
def test_a_topic_without_a_name_has_its_id_apart(topic: str | None) -> None:
    content = {
        "preferred_replicas": [choice(0, 2**30, topic=topic, **NOBODY_THERE), STAY],
        "replication_traffic": [
            written(0, 7, topic="t1", topic_id=None),
            written(0, 9, topic=topic, topic_id="t1"),
        ],
    }
    names = ("topic", "unnamed_topic_id", "replica_bytes_per_hour")
    ((name, topic_id, replica_bytes),) = advised(content, *names)
    assert (name, topic_id) == (topic, None if topic else "t1")
    assert replica_bytes == pytest.approx(9 * 60)


LOAD = ("broker_id", "rack", "bytes", "follower_bytes", "unknown_bytes", "replicated_bytes")
WHAT_IF = ("broker_id", "recommended_bytes", "recommended_skew", "spread_bytes", "spread_skew")


def loads(read: list[Row]) -> dict[int, Row]:
    """Rows of `read_load` by broker, bytes per hour under their short names."""
    brokers = [broker(1, "az-a"), broker(2, "az-b"), broker(3, "az-b"), broker(4, "az-c")]
    replicated = crossed(0, 60, flow="replicated", broker_id=1)
    content = {"preferred_replicas": read, "brokers": brokers, "rack_traffic": [replicated]}
    return {
        row["broker_id"]: {name.removesuffix("_per_hour"): row[name] for name in row}
        for row in view("read_load", content)
    }


def test_load_is_told_as_it_is_as_recommended_and_as_spread() -> None:
    both = {"recommended_replica": 3, "eligible_replicas": [2, 3]}
    answers = loads(
        [
            choice(0, 80, **both),
            choice(0, 20, broker_id=2, client_id="near", **both),
            choice(59 * 60, 7, client_id="x", recommended_replica=None, eligible_replicas=None),
        ]
    )
    as_it_is = {id_: tuple(row[name] for name in LOAD[1:]) for id_, row in answers.items()}
    assert as_it_is == {
        1: ("az-a", 87, 0, 7, 60),
        2: ("az-b", 20, 20, 0, 0),
        3: ("az-b", 0, 0, 0, 0),
        4: ("az-c", 0, 0, 0, 0),
    }
    what_if = {id_: tuple(row[name] for name in WHAT_IF[1:]) for id_, row in answers.items()}
    assert what_if == {1: (7, 1, 7, 1), 2: (0, 0, 50, 1), 3: (100, 2, 50, 1), 4: (0, None, 0, None)}


def test_traffic_of_a_broker_is_compared_with_all_brokers() -> None:
    """The one broker of its rack can carry twice the mean, which `skew` does not show."""
    brokers = [broker(1, "az-a"), broker(2, "az-b"), broker(3, "az-c")]
    traffic = [
        crossed(0, 64, flow="produced", broker_id=1),
        crossed(0, 64, flow="replicated", broker_id=1),
        crossed(0, 32, flow="produced", broker_id=2, client_rack=None),
        crossed(59 * 60, 16, flow="consumed", broker_id=2),
        crossed(0, 16, flow="consumed", broker_id=3),
    ]
    read = [choice(59 * 60, 16, broker_id=2), choice(0, 16, broker_id=3)]
    content = {"brokers": brokers, "rack_traffic": traffic, "preferred_replicas": read}
    columns = ("broker_id", "produced_bytes_per_hour", "traffic_bytes_per_hour", "traffic_skew")
    shown = picked(view("read_load ORDER BY broker_id", content), *columns)
    assert shown == [(1, 64, 128, 2), (2, 32, 48, 0.75), (3, 0, 16, 0.25)]
    # Without consumers the brokers still carry what producers write.
    content["preferred_replicas"], content["rack_traffic"] = [], traffic[:1]
    shown = picked(view("read_load ORDER BY broker_id", content), *columns)
    assert shown == [(1, 3_840, 3_840, 3), (2, 0, 0, 0), (3, 0, 0, 0)]


def test_load_counts_a_broker_that_is_gone() -> None:
    answers = loads([choice(59 * 60, 8, broker_id=9), choice(0, 8)])
    assert (answers[9]["rack"], answers[9]["bytes"], answers[2]["recommended_bytes"]) == (
        None,
        8,
        16,
    )
