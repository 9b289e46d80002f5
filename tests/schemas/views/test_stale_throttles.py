"""What is left over of replication throttles: whose it is, and what a plan takes back of it."""

from typing import Any

import pytest

from quotaflow.pipelines.warehouse.warehouse import Warehouse

from ...rows import HOSTILE, Row, altered, setting, throttled
from .rate_rows import NOW
from .view_tables import by_case, make_tables, picked, rows

LEADER_RATE = "leader.replication.throttled.rate"
LEADERS, FOLLOWERS = (f"{side}.replication.throttled.replicas" for side in ("leader", "follower"))
OURS = setting("replication.cleanup.User:us", "own")
IDLE: Row = {"is_moving": False, "in_isr": True, "offset_lag": 0, "is_biting": False}
BY_US: Row = {f"{kind}_set_by": "User:us" for kind in ("list", "rate")}


def left_over(second: float = NOW, **others: Any) -> Row:
    return throttled(second, **IDLE | others)


RATES: dict[str, tuple[Row, list[Row], str | None]] = {
    "set by this login": (BY_US, [OURS], None),
    "conf lists who": ({}, [setting("replication.cleanup.User:admin", "conf")], None),
    "somebody else set it": ({}, [OURS], "set_by_other"),
    "nobody knows who did": ({"rate_set_by": None, "rate_set_at": None}, [OURS], "set_by_other"),
    "a default": (BY_US | {"rate_source": "dynamic_default"}, [OURS], "default_of_all_brokers"),
}
ALONE: Row = {"topic": None, "partition": None, "peer_broker_id": None, "listed": "unlisted"}


def listing(*entries: tuple[int, int]) -> list[Row]:
    return [
        left_over(partition=partition, broker_id=broker_id, rate=None, rate_source="unset")
        for partition, broker_id in entries
    ]


def by_us(second: float, value: str | None, **others: Any) -> Row:
    return altered(second, LEADERS, value, principal="User:us", source_offset=second, **others)


def by_admin(second: float, value: str | None, **others: Any) -> Row:
    return altered(second, LEADERS, value, source_offset=second, **others)


LISTS: dict[str, tuple[list[Row], str | None, str | None]] = {
    "all ours": ([by_us(1, "0:1,1:1")], None, None),
    "others' entries stay": (
        [by_admin(1, "0:1"), by_us(2, "1:1", operation="APPEND")],
        "0:1",
        None,
    ),
    "to append what is there names nothing": (
        [by_admin(1, "0:1"), by_us(2, "0:1,1:1", operation="APPEND")],
        "0:1",
        None,
    ),
    "others set the list anew": (
        [by_us(1, "0:1,1:1"), by_admin(2, "0:1,1:1")],
        "0:1,1:1",
        "set_by_other",
    ),
    "others took theirs away": (
        [
            by_admin(1, "0:1,1:1"),
            by_admin(2, "1:1", operation="SUBTRACT"),
            by_us(3, "1:1", operation="APPEND"),
        ],
        "0:1",
        None,
    ),
    "others took all away": (
        [by_admin(1, "0:1,1:1"), by_admin(2, None), by_us(3, "0:1,1:1", operation="APPEND")],
        None,
        None,
    ),
    "what was refused names nothing": (
        [by_us(1, "0:1,1:1"), by_admin(2, "0:1,1:1", error_code=40)],
        None,
        None,
    ),
    "the other was there before": ([by_us(1, "0:1", operation="APPEND")], "1:1", None),
    "a part of an entry is none": ([by_us(1, "10:1,1:11")], "0:1,1:1", "set_by_other"),
}


@pytest.fixture(scope="module")
def proposals() -> dict[str, list[Row]]:
    cases = {
        case: {"replication_throttles": [left_over(**ALONE | throttle)], "settings": settings}
        for case, (throttle, settings, _) in RATES.items()
    }
    cases |= {
        case: {
            "replication_throttles": listing((0, 1), (1, 1)),
            "settings": [OURS],
            "config_alterations": changes,
        }
        for case, (changes, _, _) in LISTS.items()
    }
    return by_case(cases, "SELECT * FROM replication_proposals")


@pytest.mark.parametrize("case", RATES)
def test_a_rate_that_is_left_over(proposals: dict[str, list[Row]], case: str) -> None:
    (row,) = proposals[case]
    config = (row["entity_name"], row["config_key"], row["config_value"], row["prior_value"])
    assert config == ("1", LEADER_RATE, None, "2000000")
    assert row["blocked_reason"] == RATES[case][-1]
    assert row["lease_s"] is None


@pytest.mark.parametrize("case", LISTS)
def test_a_list_that_is_left_over(proposals: dict[str, list[Row]], case: str) -> None:
    (row,) = proposals[case]
    assert picked([row], "entity_type", "entity_name", "config_key", "prior_value") == [
        ("topic", "orders", LEADERS, "0:1,1:1")
    ]
    assert (row["config_value"], row["blocked_reason"]) == LISTS[case][1:]


def test_a_list_of_all_is_taken_away_whole(warehouse: Warehouse) -> None:
    every = left_over(listed="wildcard", topic=HOSTILE, side="follower", rate_source="unset")
    change = altered(1, FOLLOWERS, "*", principal="User:us", entity_name=HOSTILE)
    content = {"replication_throttles": [every], "settings": [OURS], "config_alterations": [change]}
    make_tables(warehouse, content)
    (row,) = rows(warehouse, "SELECT * FROM desired_configs")
    config = picked(
        [row], "entity_name", "config_key", "config_value", "prior_value", "blocked_reason"
    )
    assert config == [(HOSTILE, FOLLOWERS, None, "*", None)]
    names = ("reason_code", "matching", "total", "subject")
    assert picked([row], *names) == [("stale_list", 1, 1, "User:us")]
