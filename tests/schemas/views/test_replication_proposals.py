"""Which rates of replication throttles a plan may ask for, and why not the others."""

from typing import Any

import pytest

from quotaflow.pipelines.config import Conf, ReplicationSection
from quotaflow.pipelines.snapshots import settings
from quotaflow.pipelines.warehouse.warehouse import Warehouse

from ...delta_tables import Fill
from ...rows import Row, at, setting, throttled
from .rate_rows import CAPACITY, NOW, sent
from .view_tables import by_case, make_tables, picked, rows

LEADER_RATE = "leader.replication.throttled.rate"
MANAGED = [CAPACITY, setting("replication.manage", "true")]
IDLE: Row = {"is_moving": False, "in_isr": True, "offset_lag": 0, "is_biting": False}


RATES: dict[str, tuple[Row, list[Row], tuple[Any, ...], str | None]] = {
    "half of the way up": ({}, MANAGED, ("4000000", "2000000", 25), None),
    "a list alone, and a move": (
        {"rate": None, "rate_source": "unset"},
        MANAGED,
        ("90000000", None, 25),
        None,
    ),
    "what stands is the default of all brokers": (
        {"rate_source": "dynamic_default"},
        MANAGED,
        ("4000000", None, 25),
        None,
    ),
    "too low: that is urgent": ({"rate": 5e5}, MANAGED, ("2000000", "500000", 5), None),
    "unasked for": ({}, [CAPACITY], ("4000000", "2000000", 25), "not_managed"),
    "nobody knows the capacity": ({}, MANAGED[1:], (None, "2000000", 25), "capacity_unknown"),
    "too little is left": (
        {},
        [setting("replication.capacity_bytes_per_s", 9e5), *MANAGED[1:]],
        (None, "2000000", 25),
        "floor_exceeds_capacity",
    ),
    "changed just now": (
        {"rate_set_at": at(NOW)},
        MANAGED,
        ("2000000", "2000000", 25),
        "changed_recently",
    ),
    "no list": ({"listed": "unlisted"}, MANAGED, ("4000000", "2000000", 25), "rate_without_list"),
}
NOTHING: dict[str, Row] = {
    "nothing is moved or behind": IDLE,
    "no rate and no move": {"rate": None, "rate_source": "unset", "is_moving": False},
    "taken away in the minute in which the move ended": {"is_configured": False},
}
NEAR_ENOUGH: dict[str, tuple[list[Row], Row, list[tuple[str, str, None]]]] = {
    "so that its lease goes on": (MANAGED, {"rate": 85e6}, [("85000000", "85000000", None)]),
    "not managed": ([CAPACITY], {"rate": 85e6}, []),
    "of all brokers": (MANAGED, {"rate": 85e6, "rate_source": "dynamic_default"}, []),
}
UNKNOWN: dict[str, tuple[Row, list[Row]]] = {
    "nobody knows it, and it is not managed": ({}, []),
    "nobody knows it, and it is of all brokers": ({"rate_source": "dynamic_default"}, MANAGED[1:]),
    "nobody knows it, and nothing is moved": ({"is_moving": False, "in_isr": False}, MANAGED[1:]),
}
JUST_SET: Row = {"rate_set_at": at(NOW - 300), "list_set_at": at(NOW - 300)}


@pytest.fixture(scope="module")
def proposals() -> dict[str, list[Row]]:
    cases = {case: (throttle, conf) for case, (throttle, conf, _, _) in RATES.items()}
    cases |= UNKNOWN
    cases |= {case: (JUST_SET | throttle, MANAGED) for case, throttle in NOTHING.items()}
    cases |= {case: (JUST_SET | other, conf) for case, (conf, other, _) in NEAR_ENOUGH.items()}
    content = {
        case: {"replication_throttles": [throttled(NOW, **throttle)], "settings": conf}
        for case, (throttle, conf) in cases.items()
    }
    sql = "SELECT * FROM replication_proposals ORDER BY entity_type, entity_name"
    return by_case(content, sql)


@pytest.mark.parametrize("case", RATES)
def test_which_rate_is_asked_for(proposals: dict[str, list[Row]], case: str) -> None:
    *_, expected, blocked_reason = RATES[case]
    row = proposals[case][0]
    assert picked([row], "entity_type", "entity_name", "config_key") == [
        ("broker", "1", LEADER_RATE)
    ]
    assert (row["config_value"], row["prior_value"], row["priority"]) == expected
    assert row["blocked_reason"] == blocked_reason
    assert row["lease_s"] == 3_600
    assert row["evidence_key"] == "broker_id=1 side=leader"


@pytest.mark.parametrize(
    ("case", "goes_on"),
    [
        ("nobody knows the capacity", True),
        ("too little is left", True),
        ("changed just now", True),
        ("half of the way up", False),
        ("no list", False),
        ("unasked for", False),
        ("nobody knows it, and it is not managed", False),
        ("nobody knows it, and it is of all brokers", False),
        ("nobody knows it, and nothing is moved", False),
    ],
)
def test_what_stands_goes_on_while_no_better_rate_is_known(
    proposals: dict[str, list[Row]], case: str, goes_on: bool
) -> None:
    assert proposals[case][0]["renew_only"] is goes_on


@pytest.mark.parametrize("case", NOTHING)
def test_nothing_is_asked_for_where_nothing_need_change(
    proposals: dict[str, list[Row]], case: str
) -> None:
    assert proposals[case] == []


@pytest.mark.parametrize("case", NEAR_ENOUGH)
def test_a_rate_near_enough_is_asked_for_as_it_stands(
    proposals: dict[str, list[Row]], case: str
) -> None:
    expected = NEAR_ENOUGH[case][-1]
    assert picked(proposals[case], "config_value", "prior_value", "blocked_reason") == expected


def test_what_a_broker_carried_so_far_is_no_capacity(warehouse: Warehouse) -> None:
    content = {"replication_throttles": [throttled(NOW)], "rack_traffic": [sent(NOW, 9)]}
    make_tables(warehouse, content | {"settings": MANAGED[1:]})
    (row,) = rows(warehouse, "SELECT * FROM replication_proposals")
    names = ("config_value", "blocked_reason", "capacity_bytes_per_s", "capacity_source")
    assert picked([row], *names) == [(None, "capacity_unknown", None, None)]


SLOW = [
    {"cluster_id": "c1", "api": "PRODUCE", "broker_id": 1, "event_time": at(NOW - 60 * n)}
    | {"total_time_ms": 2_000.0 if n < 2 else 10.0}
    for n in range(9)
    for _ in range(20)
]
SUFFERING = {
    "produce_p99_ms": 2_000.0,
    "usual_produce_p99_ms": 10.0,
    "fetch_p99_ms": None,
    "usual_fetch_p99_ms": None,
    "shrunk_partitions": 0,
}


def test_the_evidence_has_how_clients_suffer(warehouse: Warehouse) -> None:
    content = {"replication_throttles": [throttled(NOW, rate=8e6)], "settings": MANAGED}
    make_tables(warehouse, content | {"requests": SLOW})
    (row,) = rows(warehouse, "SELECT * FROM desired_configs")
    assert (row["config_value"], row["priority"]) == ("4000000", 5)
    assert picked([row], "reason_code", "bound", "unit", "reason_detail") == [
        ("clients_degraded", 100e6, "bytes/s", "conf")
    ]
    assert {name: row[name] for name in SUFFERING} == SUFFERING
    assert row["offence"] == row["produce_p99_ms"] / row["usual_produce_p99_ms"]


def test_where_no_rate_helps_clients_both_is_said(warehouse: Warehouse) -> None:
    other = [setting("replication.capacity_bytes_per_s", 9e5), *MANAGED[1:]]
    content = {"replication_throttles": [throttled(NOW)], "settings": other}
    make_tables(warehouse, content | {"requests": SLOW})
    (row,) = rows(warehouse, "SELECT * FROM replication_proposals")
    assert (row["config_value"], row["priority"]) == (None, 5)
    assert picked([row], "reason_code", "blocked_reason", "capacity_bytes_per_s") == [
        ("floor_exceeds_capacity_and_clients_degraded", "floor_exceeds_capacity", 9e5)
    ]
    assert {name: row[name] for name in SUFFERING} == SUFFERING


def test_a_rate_has_its_evidence_and_no_more(proposals: dict[str, list[Row]]) -> None:
    names = ("reason_code", "other_bytes_per_s", "capacity_bytes_per_s", "capacity_source")
    numbers = ("written_bytes_per_s", "rate_bytes_per_s", "set_by", "matching", "total")
    assert picked(proposals["unasked for"], *names) == [("step_bound", 0.0, 100e6, "conf")]
    assert picked(proposals["unasked for"], *numbers) == [(0.0, 2e6, "User:admin", None, None)]
    assert proposals["unasked for"][0]["shrunk_partitions"] is None


def test_without_a_snapshot_bounds_are_those_of_no_conf(warehouse: Warehouse, fill: Fill) -> None:
    make_tables(warehouse, {"replication_throttles": [throttled(NOW)]})
    replication = ReplicationSection(manage=True, lease_s=60, capacity_bytes_per_s=5e6)
    actual = rows(warehouse, "SELECT * FROM replication_policy")
    for second, conf in enumerate([Conf(), Conf(replication=replication)]):
        seen = {"cluster_id": "c1", "event_time": at(second), "is_removed": False}
        fill("settings", [seen | row for row in settings.of_conf(conf)])
        actual += rows(warehouse, "SELECT * FROM replication_policy")
    assert actual[0] == actual[1]
    names = ("is_managed", "lease_s", "capacity_bytes_per_s")
    assert picked(actual[1:], *names) == [(False, 3_600, None), (True, 60, 5e6)]
