"""What a plan may ask of replication throttles, and what it leaves alone, with the reason."""

from typing import Any

import pytest

from quotaflow.pipelines.warehouse import Warehouse

from .rate_rows import CAPACITY, NOW
from .view_rows import HOSTILE, Row, altered, at, make_tables, picked, rows, setting, throttled

LEADER_RATE = "leader.replication.throttled.rate"
LEADERS, FOLLOWERS = (f"{side}.replication.throttled.replicas" for side in ("leader", "follower"))
MANAGED = [CAPACITY, setting("replication.manage", "True")]
OURS = setting("replication.clean_up.User:us", "own")
IDLE: Row = {"is_moving": False, "in_isr": True, "offset_lag": 0, "is_biting": False}
BY_US: Row = {f"{of}_set_by": "User:us" for of in ("list", "rate")}


def asks(warehouse: Warehouse, throttles: list[Row], settings: list[Row]) -> list[Row]:
    make_tables(warehouse, {"replication_throttles": throttles, "settings": settings})
    return rows(warehouse, "SELECT * FROM replication_asks ORDER BY entity_type, entity_name")


@pytest.mark.parametrize(
    ("throttle", "settings", "expected", "withheld"),
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
            {"rate": 5e5}, MANAGED, ("1000000", "500000", 5), None, id="too low: that is urgent"
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
    settings: list[Row],
    expected: tuple[Any, ...],
    withheld: str | None,
) -> None:
    (row,) = asks(warehouse, [throttled(NOW, **throttle)], settings)
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
        pytest.param({"rate": 85e6}, id="near enough"),
        pytest.param(IDLE, id="nothing is moved or behind"),
        pytest.param(
            {"rate": None, "rate_source": "unset", "is_moving": False}, id="no rate and no move"
        ),
        pytest.param({"is_standing": False, **IDLE}, id="taken away"),
    ],
)
def test_nothing_is_asked_for_where_nothing_need_change(
    warehouse: Warehouse, throttle: Row
) -> None:
    about = {"rate_set_at": at(NOW - 300), "list_set_at": at(NOW - 300)}
    assert asks(warehouse, [throttled(NOW, **about | throttle)], MANAGED) == []


def test_the_reason_says_how_clients_suffer(warehouse: Warehouse) -> None:
    slow = {"cluster_id": "c1", "api": "PRODUCE", "broker_id": 1}
    requests = [
        slow | {"event_time": at(NOW - 60 * n), "total_time_ms": 2_000.0 if n < 2 else 10.0}
        for n in range(9)
        for _ in range(20)
    ]
    content = {"replication_throttles": [throttled(NOW, rate=8e6)], "settings": MANAGED}
    make_tables(warehouse, content | {"requests": requests})
    (row,) = rows(warehouse, "SELECT * FROM desired_configs")
    assert (row["config_value"], row["priority"]) == ("4000000", 5)
    assert row["reason"].startswith("clients_suffer: of 100.0 MB/s (conf)")
    assert row["reason"].endswith(
        "; clients suffer: p99 of PRODUCE 2000 ms, usually 10, of FETCH - ms, usually -, "
        "partitions down to their min.insync.replicas 0"
    )


def left_over(second: float = NOW, **others: Any) -> Row:
    return throttled(second, **IDLE | others)


@pytest.mark.parametrize(
    ("throttle", "settings", "withheld"),
    [
        pytest.param(BY_US, [OURS], None, id="set by this login"),
        pytest.param(
            {}, [setting("replication.clean_up.User:admin", "conf")], None, id="conf lists who"
        ),
        pytest.param(
            {},
            [OURS],
            "left over, but set by User:admin, who is not in replication.clean_up_principals of "
            "conf",
            id="somebody else set it",
        ),
        pytest.param(
            {"rate_set_by": None, "rate_set_at": None},
            [OURS],
            "left over, but set by somebody before the request log began, who is not in "
            "replication.clean_up_principals of conf",
            id="nobody knows who did",
        ),
        pytest.param(
            BY_US | {"rate_source": "dynamic_default"},
            [OURS],
            "left over as the default of all brokers, which no plan touches",
            id="a default",
        ),
    ],
)
def test_a_rate_that_is_left_over(
    warehouse: Warehouse, throttle: Row, settings: list[Row], withheld: str | None
) -> None:
    alone = {"topic": None, "partition": None, "peer_broker_id": None, "listed": "unlisted"}
    (row,) = asks(warehouse, [left_over(**alone | throttle)], settings)
    told = (row["entity_name"], row["config_key"], row["config_value"], row["prior_value"])
    assert told == ("1", LEADER_RATE, None, "2000000")
    assert row["withheld"] == withheld
    assert row["valid_s"] is None


def listing(*entries: tuple[int, int]) -> list[Row]:
    return [
        left_over(partition=partition, broker_id=broker_id, rate=None, rate_source="unset")
        for partition, broker_id in entries
    ]


def by_us(second: float, value: str | None, **others: Any) -> Row:
    return altered(second, LEADERS, value, principal="User:us", source_offset=second, **others)


def by_admin(second: float, value: str | None, **others: Any) -> Row:
    return altered(second, LEADERS, value, source_offset=second, **others)


@pytest.mark.parametrize(
    ("changes", "config_value", "withheld"),
    [
        pytest.param([by_us(1, "0:1,1:1")], None, None, id="all ours"),
        pytest.param(
            [by_admin(1, "0:1"), by_us(2, "1:1", operation="APPEND")],
            "0:1",
            None,
            id="others' entries stay",
        ),
        pytest.param(
            [by_admin(1, "0:1"), by_us(2, "0:1,1:1", operation="APPEND")],
            "0:1",
            None,
            id="to append what is there names nothing",
        ),
        pytest.param(
            [by_us(1, "0:1,1:1"), by_admin(2, "0:1,1:1")],
            "0:1,1:1",
            "left over, but set by User:admin, who is not in replication.clean_up_principals of "
            "conf",
            id="others set the list anew",
        ),
        pytest.param(
            [
                by_admin(1, "0:1,1:1"),
                by_admin(2, "1:1", operation="SUBTRACT"),
                by_us(3, "1:1", operation="APPEND"),
            ],
            "0:1",
            None,
            id="others took theirs away",
        ),
        pytest.param(
            [by_admin(1, "0:1,1:1"), by_admin(2, None), by_us(3, "0:1,1:1", operation="APPEND")],
            None,
            None,
            id="others took all away",
        ),
        pytest.param(
            [by_us(1, "0:1,1:1"), by_admin(2, "0:1,1:1", error_code=40)],
            None,
            None,
            id="what was refused names nothing",
        ),
        pytest.param(
            [by_us(1, "0:1", operation="APPEND")], "1:1", None, id="the other was there before"
        ),
        pytest.param(
            [by_us(1, "10:1,1:11")],
            "0:1,1:1",
            "left over, but set by somebody before the request log began, who is not in "
            "replication.clean_up_principals of conf",
            id="a part of an entry is none",
        ),
    ],
)
def test_a_list_that_is_left_over(
    warehouse: Warehouse, changes: list[Row], config_value: str | None, withheld: str | None
) -> None:
    content = {"replication_throttles": listing((0, 1), (1, 1)), "settings": [OURS]}
    make_tables(warehouse, content | {"throttle_changes": changes})
    (row,) = rows(warehouse, "SELECT * FROM replication_asks")
    assert picked([row], "entity_type", "entity_name", "config_key", "prior_value") == [
        ("topic", "orders", LEADERS, "0:1,1:1")
    ]
    assert (row["config_value"], row["withheld"]) == (config_value, withheld)


def test_a_list_of_all_is_taken_away_whole(warehouse: Warehouse) -> None:
    every = left_over(listed="wildcard", topic=HOSTILE, side="follower", rate_source="unset")
    change = altered(1, FOLLOWERS, "*", principal="User:us", entity_name=HOSTILE)
    content = {"replication_throttles": [every], "settings": [OURS], "throttle_changes": [change]}
    make_tables(warehouse, content)
    (row,) = rows(warehouse, "SELECT * FROM desired_configs")
    told = picked([row], "entity_name", "config_key", "config_value", "prior_value", "withheld")
    assert told == [(HOSTILE, FOLLOWERS, None, "*", None)]
    assert row["reason"] == (
        "left over: nothing that it names was moved or behind of late; 1 of 1 entries were named "
        "by User:us"
    )
