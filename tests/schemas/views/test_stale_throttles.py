"""What is left over of replication throttles: whose it is, and what a plan takes back of it."""

from typing import Any

from ... import case_tables
from ...rows import HOSTILE, Row, altered, setting, throttled
from .rate_rows import NOW
from .view_tables import assert_outcomes, in_table, picked, signals, view

LEADER_RATE = "leader.replication.throttled.rate"
LEADERS, FOLLOWERS = (f"{side}.replication.throttled.replicas" for side in ("leader", "follower"))
OURS = setting("replication.cleanup.User:us", "own")
IDLE: Row = {"is_moving": False, "in_isr": True, "offset_lag": 0, "is_biting": False}
BY_US: Row = {f"{kind}_set_by": "User:us" for kind in ("list", "rate")}


def left_over(second: float = NOW, **others: Any) -> Row:
    return throttled(second, **IDLE | others)


RATES: dict[str | None, dict[str, tuple[Row, list[Row]]]] = {
    None: {
        "set by this login": (BY_US, [OURS]),
        "conf lists who": ({}, [setting("replication.cleanup.User:admin", "conf")]),
    },
    "set_by_other": {
        "somebody else set it": ({}, [OURS]),
        "nobody knows who did": ({"rate_set_by": None, "rate_set_at": None}, [OURS]),
    },
    "default_of_all_brokers": {"a default": (BY_US | {"rate_source": "dynamic_default"}, [OURS])},
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


LISTS: dict[tuple[str | None, str | None], dict[str, list[Row]]] = case_tables.table(
    __file__, "LISTS", by_us, by_admin
)


def test_a_rate_that_is_left_over() -> None:
    outcomes = {
        ("1", LEADER_RATE, None, "2000000", None, blocked_reason): {
            case: {"replication_throttles": [left_over(**ALONE | throttle)], "settings": conf}
            for case, (throttle, conf) in alike.items()
        }
        for blocked_reason, alike in RATES.items()
    }
    names = ("entity_name", "config_key", "config_value", "prior_value", "lease_s")
    assert_outcomes(outcomes, "replication_proposals", *names, "blocked_reason")


def test_a_list_that_is_left_over() -> None:
    outcomes = {
        ("topic", "orders", LEADERS, "0:1,1:1", *expected): alike
        for expected, alike in LISTS.items()
    }
    lists = listing((0, 1), (1, 1))
    cases = in_table("config_alterations", outcomes, replication_throttles=lists, settings=[OURS])
    names = ("entity_type", "entity_name", "config_key", "prior_value", "config_value")
    assert_outcomes(cases, "replication_proposals", *names, "blocked_reason")


def test_a_list_of_all_is_taken_away_whole() -> None:
    every = left_over(listed="wildcard", topic=HOSTILE, side="follower", rate_source="unset")
    change = altered(1, FOLLOWERS, "*", principal="User:us", entity_name=HOSTILE)
    content = {"replication_throttles": [every], "settings": [OURS], "config_alterations": [change]}
    (row,) = view("desired_configs", content)
    config = picked(
        [row], "entity_name", "config_key", "config_value", "prior_value", "blocked_reason"
    )
    assert config == [(HOSTILE, FOLLOWERS, None, "*", None)]
    assert picked([row], "reason_code", "subject") == [("stale_list", "User:us")]
    assert signals(row) == {"own_entries": 1, "entries": 1}
