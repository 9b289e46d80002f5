"""What is wrong with throttles of replication, their sizing, and who did what to them."""

from typing import Any

import pytest

from ...cases import cases, grouped
from ...rows import (
    HOSTILE,
    Row,
    altered,
    at,
    broker_config,
    reassigned,
    replicated,
    setting,
    throttled,
)
from .view_tables import Picked, Tables, assert_outcomes, assert_shown, in_table, picked, view

MIB = 2**20
TO_ORDERS = ("leader.replication.throttled.replicas", "0:1")
IDLE: Row = {"is_moving": False, "in_isr": True, "offset_lag": 0, "is_biting": False}
RATE: Row = IDLE | {"topic": None, "partition": None, "peer_broker_id": None, "in_isr": None}
RATE |= {"listed": "unlisted", "reason": "rate_without_list", "offset_lag": None}
RATE |= {"list_set_at": None, "list_set_by": None}
OF_FOLLOWER: Row = {"side": "follower", "broker_id": 2, "peer_broker_id": 1, "listed": "unlisted"}
OF_FOLLOWER |= {"reason": "rate_without_list", "is_effective": False}
UNKNOWN_SETTER: Row = {"list_set_at": None, "list_set_by": None}


CHECKS = "throttle_checks ORDER BY finding, topic, side, broker_id"


WRONG: dict[tuple[Any, ...], dict[str, list[Row]]] = {
    (): {
        "a move that its throttle slows: nothing is wrong": [throttled(60)],
        "it was taken away in its last minute": [
            throttled(60, is_configured=False, reason="list_without_rate")
        ],
        "moved by a list of the leader alone, which limits the follower too": [
            throttled(60),
            throttled(60, **OF_FOLLOWER),
        ],
    },
    ("list_without_rate", "orders", 1, 1): {
        "a list alone": [throttled(60, rate=None, rate_source="unset", reason="list_without_rate")]
    },
    ("static_rate_ignored", "orders", 1, 1): {
        "a rate in a file": [throttled(60, rate_source="static", reason="static_rate_ignored")]
    },
    ("moved_unlisted", "orders", 1, 1): {
        "moved, and no list holds it": [
            throttled(60, listed="unlisted", reason="rate_without_list")
        ],
        "another follower is limited": [
            throttled(60, listed="unlisted", reason="rate_without_list"),
            throttled(60, **OF_FOLLOWER | {"broker_id": 3, "listed": "entry"}),
        ],
    },
    ("moved_unlisted", "orders", 2, 1): {
        "the list of the leader has no rate that limits": [
            throttled(60, is_effective=False, reason="not_leader"),
            throttled(60, **OF_FOLLOWER),
        ]
    },
    ("rate_below_1_mb", None, 1, 2): {
        "too low for brokers to measure, listed once": [
            throttled(60, rate=999_999.0),
            throttled(60, rate=999_999.0, partition=1),
        ]
    },
    ("wildcard_list", "orders", None, 2): {
        "all replicas": [
            throttled(60, listed="wildcard"),
            throttled(60, listed="wildcard", partition=1),
        ]
    },
    ("malformed_list", "orders", None, 1): {
        "as the KIP's text has it": [
            throttled(60, broker_id=None, reason="no_throttle", list_malformed="0-1")
        ]
    },
    ("broker_gone", "orders", 9, 1): {
        "a broker that vanished": [throttled(60, broker_id=9, reason="broker_gone", in_isr=None)]
    },
}


def test_what_is_wrong_with_a_throttle() -> None:
    outcomes = in_table("replication_throttles", WRONG)
    assert_outcomes(outcomes, CHECKS, "finding", "topic", "broker_id", "replicas")


NOW = [replicated(3_600, 1, 2)]


BY_ADMIN = (3_660.0, "User:admin")
STALE = (("stale_list", *BY_ADMIN), ("stale_rate", *BY_ADMIN))
LEFT_OVER: dict[tuple[tuple[Any, ...], ...], dict[str, list[Row]]] = {
    STALE: {
        "nothing moves any more": [throttled(3_600, **IDLE)],
        "of late is less by conf": [
            *(throttled(3_600, **IDLE), throttled(3_060)),
            setting("replication.stale_throttle_s", 300),
        ],
    },
    (("stale_list", None, None), STALE[1]): {
        "set before the log began": [throttled(3_600, **IDLE, **UNKNOWN_SETTER)]
    },
    (("rate_without_list", *BY_ADMIN), STALE[1]): {
        "a rate with no list": [throttled(3_600, **RATE)]
    },
    (): {
        "it moved of late": [throttled(3_600, **IDLE), throttled(3_060)],
        "about to be used": [
            throttled(3_600, **IDLE | {"list_set_at": at(3_500), "rate_set_at": at(3_500)})
        ],
        "a replica catches up": [throttled(3_600, **IDLE | {"offset_lag": 7})],
        "gone since": [throttled(3_540, **IDLE)],
        "rates of all brokers that a move needs, on both sides": [
            throttled(3_600),
            throttled(3_600, **RATE | {"broker_id": 2}),
        ],
    },
}


def test_what_is_left_over() -> None:
    cases: dict[str, tuple[Tables, Picked]] = {}
    for case, given, expected in grouped(LEFT_OVER):
        conf = [row for row in given if "setting" in row]
        throttles = [row for row in given if "setting" not in row]
        tables = {"replication_throttles": throttles, "settings": conf, "replication_traffic": NOW}
        cases[case] = (tables, [*expected])
    assert_shown(cases, CHECKS, "finding", "age_s", "set_by")


def test_what_was_set_in_the_last_minute_is_not_set_after_it() -> None:
    late = throttled(60, rate=20_000.0, rate_set_at=at(62.174))
    checks = view("throttle_checks", {"replication_throttles": [late]})
    assert picked(checks, "finding", "age_s") == [("rate_below_1_mb", 57.826)]


@cases(
    ("rate", "configs", "settings", "expected"),
    (
        "as Kafka ships it",
        1_500_000.0,
        [],
        [],
        (10 * MIB, True, 6.990506666666667, True, 16_500_000, "quota"),
    ),
    (
        "the rate is too low for such answers",
        900_000.0,
        [broker_config("replica.fetch.response.max.bytes", "10485760")],
        [],
        (10 * MIB, False, 11.650844444444445, False, 9_900_000, "quota"),
    ),
    (
        "the network is less than all quotas",
        2_000_000.0,
        [
            broker_config("replica.fetch.response.max.bytes", "1000000"),
            broker_config("replication.quota.window.num", "5"),
            broker_config("replication.quota.window.size.seconds", "2"),
        ],
        [setting("replication.network_bytes_per_s", 3e6)],
        (1_000_000, False, 1.0, True, 10_000_000, "network"),
    ),
)
def test_how_large_answers_may_be(
    rate: float, configs: list[Row], settings: list[Row], expected: tuple[Any, ...]
) -> None:
    content = {
        "replication_throttles": [throttled(60, rate=rate)],
        "replication_traffic": [replicated(60, 1, 2), replicated(60, 3, 1)],
        "configs": configs,
        "settings": settings,
    }
    names = ("response_max_bytes", "is_assumed", "answers_s", "fits")
    names += ("largest_response_max_bytes", "bounded_by")
    assert picked(view("throttle_sizing", content), *names) == [expected]
    large = view("throttle_checks WHERE finding = 'response_too_large'", content)
    sizes = ("response_max_bytes", "largest_response_max_bytes", "bounded_by")
    assert picked(large, *sizes) == ([] if expected[3] else [(10_485_760, 9_900_000, "quota")])


@cases(
    ("network", "least"),
    ("the size alone decides", [], 10 * MIB / 11),
    ("the network carries such answers", [3e6], 10 * MIB / 11),
    ("the network is too slow for any rate", [2.8e6], None),
)
def test_before_a_throttle_is_set_the_least_rate_shows(
    network: list[float], least: float | None
) -> None:
    content = {
        "brokers": there(0, 1, 2, 3),
        "settings": [setting("replication.network_bytes_per_s", value) for value in network],
    }
    (row,) = view("throttle_sizing", content)
    assert row["least_leader_rate"] == (None if least is None else pytest.approx(least))
    unknown = ("leader_rate", "answers_s", "fits", "largest_response_max_bytes", "bounded_by")
    assert [row[name] for name in unknown] == [None] * 5
    assert view("throttle_checks", content) == []


def there(second: float, *brokers: int, is_removed: bool = False) -> list[Row]:
    """Brokers as a snapshot saw them."""
    row = {"cluster_id": "c1", "event_time": at(second), "is_removed": is_removed}
    return [row | {"broker_id": n} for n in brokers]


MONTH_AGO = -20 * 86_400
LEFT = [replicated(MONTH_AGO, n, 1) for n in (7, 8, 9)]


@cases(
    ("traffic", "brokers", "expected"),
    ("by traffic alone", [], [], 3),
    ("by traffic alone nobody is known to have gone", LEFT, [], 6),
    ("what clients wrote has no follower", [replicated(60, 1, None)], [], 3),
    ("nor is it known who led", [replicated(60, 1, None) | {"leader_id": None}], [], 3),
    (
        "three that are gone",
        LEFT,
        [*there(0, 1, 2, 3), *there(MONTH_AGO + 86_400, 7, 8, 9, is_removed=True)],
        3,
    ),
    ("gone before the first snapshot", LEFT, there(0, 1, 2, 3), 3),
    ("one that moves nothing", [], there(0, 1, 2, 3, 4), 4),
    ("one snapshots miss yet", [replicated(0, 1, 5)], there(-600, 1, 2, 3), 4),
)
def test_brokers_that_are_there_answer(
    traffic: list[Row], brokers: list[Row], expected: int
) -> None:
    content = {
        "replication_throttles": [throttled(60)],
        "replication_traffic": [replicated(60, 1, 2), replicated(60, 3, 1), *traffic],
        "settings": [setting("replication.network_bytes_per_s", 3e6)],
        "brokers": brokers,
    }
    names = ("brokers", "answers_s", "fits", "largest_response_max_bytes")
    got = picked(view("throttle_sizing", content), *names)
    assert got == [(expected, expected * 10 * MIB / 3e6, expected == 3, 33_000_000 // expected)]


def test_who_did_what_and_in_which_order() -> None:
    content = {
        "config_alterations": [
            altered(0, *TO_ORDERS),
            altered(10, *TO_ORDERS, principal="User:" + HOSTILE, operation="APPEND"),
            altered(13, TO_ORDERS[0], None, broker_id=2),
            altered(14, TO_ORDERS[0], "0-1", error_code=40, broker_id=3),
            altered(60, "", None, config_key=None, api="DELETE_TOPICS"),
            altered(60, "", None, config_key=None, api="DELETE_TOPICS", entity_name="other"),
            altered(
                61, "leader.replication.throttled.rate", None, config_key=None, api="ALTER_CONFIGS"
            ),
            altered(61, "leader.replication.throttled.rate", "5", api="ALTER_CONFIGS", position=1),
        ],
        "reassignment_changes": [
            reassigned(5, "requested", 3, place=0),
            reassigned(5, "requested", 2, place=1),
            reassigned(50, "in_sync", 3),
            reassigned(55, "cancelled", None),
        ],
    }
    names = ("change", "value", "is_done", "is_order_known")
    assert picked(view("throttle_timeline ORDER BY event_time, config_key", content), *names) == [
        ("SET", "0:1", True, True),
        ("requested", "2,3", True, True),
        ("APPEND", "0:1", True, False),
        ("DELETE", None, True, False),
        ("SET", "0-1", False, True),
        ("cancelled", None, True, True),
        ("DELETE", None, True, True),
        ("DELETE", None, True, True),
        ("SET", "5", True, True),
        ("DELETE", None, True, True),
    ]


def test_what_the_kip_measures() -> None:
    limited = {"leader_throttled_bytes": 6_000, "behind_fetches": 3, "offset_lag": 5}
    rate = {"cluster_id": "c1", "event_date": at(0).date(), "broker_id": 1, "bytes": 600}
    content = {
        "replication_traffic": [
            replicated(0, 1, 2, **limited),
            replicated(0, 1, 2, partition=1, bytes=600),
            replicated(60, 1, 2),
            replicated(0, 2, 1, bytes=60),
            replicated(0, 1, None, bytes=1_200),
        ],
        "replication_rates": [
            rate | {"event_time": at(n), "side": "leader", "throttled_rate": float(n)}
            for n in (5, 7, 6)
        ],
    }
    metrics = view("replication_metrics ORDER BY event_time, broker_id", content)
    measured = ("broker_id", "leader_replication_throttled_rate", "bytes_in_rate")
    measured += ("replicated_bytes_in_rate", "sum_replica_lag", "followers_offset_lag")
    assert picked(metrics, *measured) == [
        (1, 7.0, 20.0, 1.0, 0, 5),
        (2, 0.0, 0.0, 110.0, 5, 0),
        (1, 0.0, 0.0, 0.0, None, 0),
        (2, 0.0, 0.0, 100.0, 0, None),
    ]


def test_a_lag_that_is_not_known_makes_the_sum_unknown() -> None:
    lags = [replicated(0, 1, 2, offset_lag=5), replicated(0, 1, 2, partition=1, offset_lag=None)]
    names = ("sum_replica_lag", "followers_offset_lag")
    assert picked(
        view("replication_metrics ORDER BY broker_id", {"replication_traffic": lags}), *names
    ) == [(None, None), (None, None)]
