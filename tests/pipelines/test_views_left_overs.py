"""What is left over of replication throttles: whose it is, and what a plan takes back of it."""

from typing import Any

import pytest

from quotaflow.pipelines.warehouse import Warehouse

from .rate_rows import NOW
from .view_rows import HOSTILE, Row, altered, make_tables, picked, rows, setting, throttled

LEADER_RATE = "leader.replication.throttled.rate"
LEADERS, FOLLOWERS = (f"{side}.replication.throttled.replicas" for side in ("leader", "follower"))
OURS = setting("replication.clean_up.User:us", "own")
IDLE: Row = {"is_moving": False, "in_isr": True, "offset_lag": 0, "is_biting": False}
BY_US: Row = {f"{of}_set_by": "User:us" for of in ("list", "rate")}


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
    content = {"replication_throttles": [left_over(**alone | throttle)], "settings": settings}
    make_tables(warehouse, content)
    (row,) = rows(warehouse, "SELECT * FROM replication_asks")
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
    make_tables(warehouse, content | {"config_alterations": changes})
    (row,) = rows(warehouse, "SELECT * FROM replication_asks")
    assert picked([row], "entity_type", "entity_name", "config_key", "prior_value") == [
        ("topic", "orders", LEADERS, "0:1,1:1")
    ]
    assert (row["config_value"], row["withheld"]) == (config_value, withheld)


def test_a_list_of_all_is_taken_away_whole(warehouse: Warehouse) -> None:
    every = left_over(listed="wildcard", topic=HOSTILE, side="follower", rate_source="unset")
    change = altered(1, FOLLOWERS, "*", principal="User:us", entity_name=HOSTILE)
    content = {"replication_throttles": [every], "settings": [OURS], "config_alterations": [change]}
    make_tables(warehouse, content)
    (row,) = rows(warehouse, "SELECT * FROM desired_configs")
    told = picked([row], "entity_name", "config_key", "config_value", "prior_value", "withheld")
    assert told == [(HOSTILE, FOLLOWERS, None, "*", None)]
    assert row["reason"] == (
        "left over: nothing that it names was moved or behind of late; 1 of 1 entries were named "
        "by User:us"
    )
