"""Who moves how many bytes, across which racks, and what that costs."""

from typing import Any

import pytest

from quotaflow.pipelines import config
from quotaflow.pipelines.snapshots.settings import of_conf

from ...cases import cases
from ...rows import Row, moved, setting
from .view_tables import picked, view

GIB = 2**30
DAY_S = 86_400


def read(second: float, size: int, crossed: int | None, **others: Any) -> Row:
    columns = {"direction": "consumed", "cross_rack_bytes": crossed}
    return moved(second, size, **(columns | others))


HOUR = ("bytes", "cross_rack_bytes", "unknown_rack_bytes", "cross_rack_share")


@cases(
    ("traffic", "expected"),
    ("within a rack", [read(5, 8, 0)], (8, 0, 0, 0.0)),
    ("from another rack", [read(5, 8, 8)], (8, 8, 0, 1.0)),
    ("a rack that is not known", [read(5, 8, None)], (8, 0, 8, None)),
    ("produced", [moved(5, 8, cross_rack_bytes=8)], (8, 8, 0, 1.0)),
    (
        "the share is of what is known",
        [read(5, 6, 6), read(6, 2, 0), read(7, 2, None)],
        (10, 6, 2, 0.75),
    ),
)
def test_bytes_that_cross_racks(traffic: list[Row], expected: tuple[Any, ...]) -> None:
    assert picked(view("traffic_by_hour", {"traffic": traffic}), *HOUR) == [expected]


def test_topics_add_up_by_name_and_unnamed_ones_stay_apart() -> None:
    content = {
        "traffic": [
            moved(1, 1, topic="orders"),
            moved(2, 2, topic="orders", topic_id=None),
            moved(3, 4, topic_id="t2"),
            moved(4, 8, topic_id="t3"),
            moved(5, 16, topic="orders", direction="consumed"),
            moved(3_605, 32, topic="orders"),
            moved(3_606, 64, topic="orders", topic_id="t4"),
        ]
    }
    assert picked(
        view("traffic_by_hour ORDER BY bytes", content),
        "topic",
        "unnamed_topic_id",
        "direction",
        "bytes",
    ) == [
        ("orders", None, "produced", 3),
        (None, "t2", "produced", 4),
        (None, "t3", "produced", 8),
        ("orders", None, "consumed", 16),
        ("orders", None, "produced", 96),
    ]


def test_cost_is_that_of_the_newest_prices_and_crossing_comes_on_top() -> None:
    content = {
        "settings": [
            setting("prices.produced_per_gib", 5.0),
            setting("prices.produced_per_gib", 1.0, 60),
            setting("prices.consumed_per_gib", 2.0),
            setting("prices.cross_rack_per_gib", 8.0),
            setting("prices.currency", "EUR"),
        ],
        "traffic": [moved(1, GIB), read(1, GIB // 2, GIB // 2), read(2, GIB, 0)],
    }
    assert picked(
        view("traffic_by_hour ORDER BY direction", content), "direction", "cost", "currency"
    ) == [("consumed", 7.0, "EUR"), ("produced", 1.0, "EUR")]


def test_bytes_without_a_known_rack_have_no_cost_of_racks() -> None:
    prices = [setting("prices.cross_rack_per_gib", 8.0)]
    no_rack = {"client_rack": None, "broker_rack": None, "cross_rack_bytes": None}
    in_one_rack = {"client_rack": "az-a", "broker_rack": "az-a", "cross_rack_bytes": 0}
    content = {
        "settings": prices,
        "traffic": [
            moved(0, 2**30, topic="t", client_id="unknown", **no_rack),
            moved(0, 2**30, topic="t", client_id="partly", **no_rack),
            moved(0, 2**30, topic="t", client_id="partly", **in_one_rack, broker_id=2),
            moved(0, 2**30, topic="t", client_id="within", **in_one_rack),
        ],
    }
    for name in ("traffic_by_hour", "top_talkers"):
        rows = view(f"{name} ORDER BY client_id", content)
        assert picked(rows, "client_id", "cost", "unknown_rack_bytes") == [
            ("partly", 0.0, 2**30),
            ("unknown", None, 2**30),
            ("within", 0.0, 0),
        ]


@pytest.mark.parametrize(
    ("prices", "cost"),
    [
        ({}, None),
        ({"produced": 9.0}, None),
        ({"consumed": 2.0}, 2.0),
        ({"cross_rack": 8.0}, 4.0),
        ({"consumed": 0.0}, 0.0),
        ({"consumed": 2.0, "cross_rack": 8.0}, 6.0),
    ],
)
def test_what_has_no_price_adds_no_cost_and_without_any_price_there_is_none(
    prices: dict[str, float], cost: float | None
) -> None:
    settings = [setting(f"prices.{name}_per_gib", price) for name, price in prices.items()]
    settings += [setting("prices.currency", "EUR")]
    content = {"traffic": [read(1, GIB, GIB // 2)], "settings": settings}
    assert picked(view("traffic_by_hour", content), "cost") == [(cost,)]


def test_top_talkers_are_ranked_by_day() -> None:
    traffic = [
        moved(1, 10),
        read(2, 20, None),
        moved(3, 60, principal="User:bob"),
        moved(4, 10, client_id="other"),
        moved(DAY_S, 7),
    ]
    names = ("talker_rank", "principal", "client_id", "produced_bytes", "consumed_bytes", "share")
    assert picked(view("top_talkers ORDER BY day, talker_rank", {"traffic": traffic}), *names) == [
        (1, "User:bob", "orders", 60, 0, 0.6),
        (2, "User:alice", "orders", 10, 20, 0.3),
        (3, "User:alice", "other", 10, 0, 0.1),
        (1, "User:alice", "orders", 7, 0, 1.0),
    ]


def test_who_produces_most_and_who_consumes_most_have_a_rank_each_and_a_topic() -> None:
    traffic = [
        moved(0, 10, client_id="writer", topic="a"),
        moved(60, 10, client_id="writer", topic="a"),
        moved(0, 15, client_id="writer", topic="b"),
        moved(0, 99, client_id="writer", topic=None, topic_id="unnamed"),
        moved(0, 20, client_id="both", topic="b"),
        read(0, 90, None, client_id="both", topic="a"),
        read(0, 200, None, client_id="reader", topic="c"),
        read(0, 200, None, client_id="reader", topic="b"),
        moved(0, 5, client_id="nameless", topic=None, topic_id="unnamed"),
    ]
    rows = view("top_talkers ORDER BY produced_rank, consumed_rank", {"traffic": traffic})
    ranks = ("produced_rank", "consumed_rank", "talker_rank", "produced_topic", "consumed_topic")
    assert picked(rows, "client_id", *ranks) == [
        ("writer", 1, 3, 2, "a", None),
        ("both", 2, 2, 3, "b", "a"),
        ("nameless", 3, 3, 4, None, None),
        ("reader", 4, 1, 1, None, "b"),
    ]


def test_a_program_of_many_client_ids_is_one_row_of_an_hour_and_a_day() -> None:
    pods = [f"orders-6f4b7c9d88-{suffix}" for suffix in ("8xmbj", "hqz2x", "bcdfg")]
    traffic = [moved(n, 10, client_id=pod) for n, pod in enumerate(pods)]
    traffic += [moved(4, 20, client_id="alone-7")]
    of_hour = view("traffic_by_hour ORDER BY bytes DESC", {"traffic": traffic})
    assert picked(of_hour, "client_id", "client_ids", "bytes") == [
        ("orders-*", 3, 30),
        ("alone-7", 1, 20),
    ]
    rows = view("top_talkers ORDER BY talker_rank", {"traffic": traffic})
    assert picked(rows, "client_id", "client_ids", "produced_bytes") == [
        ("orders-*", 3, 30),
        ("alone-7", 1, 20),
    ]


def test_prices_and_racks_of_conf_are_settings() -> None:
    prices = ["prices.currency=EUR", "prices.cross_rack_per_gib=0.02"]
    conf = config.load(overrides=[*prices, "racks.10.1.0.0/16=az-b"])
    assert conf.racks == {"10.1.0.0/16": "az-b"}
    stored = {row["setting"]: row["setting_value"] for row in of_conf(conf)}
    assert stored["prices.currency"] == "EUR"
    assert stored["racks.10.1.0.0/16"] == "az-b"
    assert stored["quotas.advised_users"] == ""
    assert stored["prices.cross_rack_per_gib"] == "0.02"
    assert "prices.produced_per_gib" not in stored
    assert stored["replication.manage"] == "false"
    assert not {"None", "True", "False"} & set(stored.values())
