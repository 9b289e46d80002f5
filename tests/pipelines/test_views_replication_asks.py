"""Which rates of replication throttles a plan may ask for, and why not the others."""

from typing import Any

import pytest

from quotaflow.pipelines.config import Conf, Replication
from quotaflow.pipelines.snapshots import settings
from quotaflow.pipelines.warehouse import Warehouse

from .conftest import Fill
from .rate_rows import CAPACITY, NOW, sent
from .view_rows import Row, at, make_tables, picked, rows, setting, throttled

LEADER_RATE = "leader.replication.throttled.rate"
MANAGED = [CAPACITY, setting("replication.manage", "True")]
IDLE: Row = {"is_moving": False, "in_isr": True, "offset_lag": 0, "is_biting": False}


def asks(warehouse: Warehouse, throttles: list[Row], conf: list[Row]) -> list[Row]:
    make_tables(warehouse, {"replication_throttles": throttles, "settings": conf})
    return rows(warehouse, "SELECT * FROM replication_asks ORDER BY entity_type, entity_name")


@pytest.mark.parametrize(
    ("throttle", "conf", "expected", "withheld"),
    [
        pytest.param({}, MANAGED, ("4000000", "2000000", 25), None, id="half of the way up"),
        pytest.param(
            {"rate": None, "rate_source": "unset"},
            MANAGED,
            ("90000000", None, 25),
            None,
            id="a list alone, and a move",
        ),
        pytest.param(
            {"rate_source": "dynamic_default"},
            MANAGED,
            ("4000000", None, 25),
            None,
            id="what stands is the default of all brokers",
        ),
        pytest.param(
            {"rate": 5e5}, MANAGED, ("2000000", "500000", 5), None, id="too low: that is urgent"
        ),
        pytest.param(
            {},
            [CAPACITY],
            ("4000000", "2000000", 25),
            "replication.manage of conf is false; 4.0 MB/s fit, by step_bound: of 100.0 MB/s "
            "(conf) other traffic takes 0.0, what it holds is written at 0.0, and 2.0 MB/s stand, "
            "set by User:admin",
            id="unasked for",
        ),
        pytest.param(
            {},
            MANAGED[1:],
            (None, "2000000", 25),
            "no capacity in conf (replication), and no traffic it could be learned from",
            id="nobody knows the capacity",
        ),
        pytest.param(
            {},
            [setting("replication.capacity_bytes_per_s", 9e5), *MANAGED[1:]],
            (None, "2000000", 25),
            "what its lists hold, or 1 MB/s, is more than what is left of it: move fewer at once",
            id="too little is left",
        ),
        pytest.param(
            {"rate_set_at": at(NOW)},
            MANAGED,
            ("2000000", "2000000", 25),
            "its rate was changed so short a time ago that nobody sees yet what that did",
            id="changed just now",
        ),
        pytest.param(
            {"listed": "unlisted"},
            MANAGED,
            ("4000000", "2000000", 25),
            "no list names its replicas, and a rate alone does nothing; 4.0 MB/s fit, by "
            "step_bound: of 100.0 MB/s (conf) other traffic takes 0.0, what it holds is written "
            "at 0.0, and 2.0 MB/s stand, set by User:admin",
            id="no list",
        ),
    ],
)
def test_which_rate_is_asked_for(
    warehouse: Warehouse,
    throttle: Row,
    conf: list[Row],
    expected: tuple[Any, ...],
    withheld: str | None,
) -> None:
    row = asks(warehouse, [throttled(NOW, **throttle)], conf)[0]
    assert picked([row], "entity_type", "entity_name", "config_key") == [
        ("broker", "1", LEADER_RATE)
    ]
    assert (row["config_value"], row["prior_value"], row["priority"]) == expected
    assert row["withheld"] == withheld
    assert row["valid_s"] == 3_600
    assert row["evidence_key"] == "broker_id=1 side=leader"


@pytest.mark.parametrize(
    "throttle",
    [
        pytest.param(IDLE, id="nothing is moved or behind"),
        pytest.param(
            {"rate": None, "rate_source": "unset", "is_moving": False}, id="no rate and no move"
        ),
        pytest.param({"is_standing": False}, id="taken away in the minute in which the move ended"),
    ],
)
def test_nothing_is_asked_for_where_nothing_need_change(
    warehouse: Warehouse, throttle: Row
) -> None:
    about = {"rate_set_at": at(NOW - 300), "list_set_at": at(NOW - 300)}
    assert asks(warehouse, [throttled(NOW, **about | throttle)], MANAGED) == []


@pytest.mark.parametrize(
    ("conf", "throttle", "asked"),
    [
        (MANAGED, {"rate": 85e6}, [("85000000", "85000000", None)]),
        ([CAPACITY], {"rate": 85e6}, []),
        (MANAGED, {"rate": 85e6, "rate_source": "dynamic_default"}, []),
    ],
    ids=["so that its lease goes on", "not managed", "of all brokers"],
)
def test_a_rate_near_enough_is_asked_for_as_it_stands(
    warehouse: Warehouse,
    conf: list[Row],
    throttle: Row,
    asked: list[tuple[str, str, None]],
) -> None:
    about = {"rate_set_at": at(NOW - 300), "list_set_at": at(NOW - 300)}
    found = asks(warehouse, [throttled(NOW, **about | throttle)], conf)
    assert picked(found, "config_value", "prior_value", "withheld") == asked


def test_a_capacity_that_is_only_learned_may_be_more(warehouse: Warehouse) -> None:
    content = {"replication_throttles": [throttled(NOW)], "rack_traffic": [sent(NOW, 9)]}
    make_tables(warehouse, content | {"settings": MANAGED[1:]})
    (row,) = rows(warehouse, "SELECT * FROM replication_asks")
    assert row["withheld"].endswith(
        "move fewer at once, or tell conf its capacity: it is the most it ever carried so far"
    )


SLOW = [
    {"cluster_id": "c1", "api": "PRODUCE", "broker_id": 1, "event_time": at(NOW - 60 * n)}
    | {"total_time_ms": 2_000.0 if n < 2 else 10.0}
    for n in range(9)
    for _ in range(20)
]
SUFFERING = (
    "; clients suffer: p99 of PRODUCE 2000 ms, usually 10, of FETCH - ms, usually -, "
    "partitions down to their min.insync.replicas 0"
)


def test_the_reason_says_how_clients_suffer(warehouse: Warehouse) -> None:
    content = {"replication_throttles": [throttled(NOW, rate=8e6)], "settings": MANAGED}
    make_tables(warehouse, content | {"requests": SLOW})
    (row,) = rows(warehouse, "SELECT * FROM desired_configs")
    assert (row["config_value"], row["priority"]) == ("4000000", 5)
    assert row["reason"].startswith("clients_suffer: of 100.0 MB/s (conf)")
    assert row["reason"].endswith(SUFFERING)


def test_where_no_rate_helps_clients_both_is_said(warehouse: Warehouse) -> None:
    of = [setting("replication.capacity_bytes_per_s", 9e5), *MANAGED[1:]]
    content = {"replication_throttles": [throttled(NOW)], "settings": of}
    make_tables(warehouse, content | {"requests": SLOW})
    (row,) = rows(warehouse, "SELECT * FROM replication_asks")
    assert (row["config_value"], row["priority"]) == (None, 5)
    assert row["reason"].startswith("floor_exceeds_capacity_and_clients_suffer: of 0.9 MB/s")
    assert row["withheld"] == (
        "what its lists hold, or 1 MB/s, is more than what is left of it: move fewer at once"
        + SUFFERING
    )


def test_without_a_snapshot_bounds_are_those_of_no_conf(warehouse: Warehouse, fill: Fill) -> None:
    make_tables(warehouse, {"replication_throttles": [throttled(NOW)]})
    replication = Replication(manage=True, lease_s=60, capacity_bytes_per_s=5e6)
    found = rows(warehouse, "SELECT * FROM replication_bounds")
    for second, conf in enumerate([Conf(), Conf(replication=replication)]):
        seen = {"cluster_id": "c1", "event_time": at(second), "is_removed": False}
        fill("settings", [seen | row for row in settings.of_conf(conf)])
        found += rows(warehouse, "SELECT * FROM replication_bounds")
    assert found[0] == found[1]
    names = ("is_managed", "lease_s", "capacity_bytes_per_s")
    assert picked(found[1:], *names) == [(False, 3_600, None), (True, 60, 5e6)]
