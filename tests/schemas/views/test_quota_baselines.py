"""What a quota starts from: a week of usage at the busiest broker."""

from typing import Any

import pytest

from ...rows import Row, at, used
from .view_tables import Picked, assert_shown, picked, view

BYTES = "producer_byte_rate"
DAY = 86_400
PICKED = ("user", "client_id", "quota_type", "broker_id", "usage_p99", "usage_median", "windows")


def rolled_up(second: float, buckets: list[tuple[int, int]], **others: Any) -> Row:
    """An hour of windows by their usage."""
    histogram = [{"bucket": bucket, "windows": windows} for bucket, windows in buckets]
    at_end = {"peak_usage": 1e9, "last_window": at(second + 3_000)}
    user = [
        each | {"quota": None, "quota_level": None, "is_throttled": False} | at_end
        for each in histogram
    ]
    row = {"rolled_up_s": 3_600, "usage_histogram": histogram, "user_windows": user}
    free = {"quota": None, "quota_level": None, "peak_usage": 1e9}
    return used(second, BYTES, 1.0, **(row | free | others))


def free(second: float, usage: float, **others: Any) -> Row:
    return used(second, BYTES, usage, **({"quota": None, "quota_level": None} | others))


CASES: dict[str, tuple[list[Row], Picked]] = {
    "no usage": ([], []),
    "the broker with the greatest p99, also if others are used more": (
        [
            free(0, 1.0, broker_id=1),
            *(free(n, 5e6, broker_id=2) for n in (0, 11)),
            free(0, 9e6, broker_id=3),
        ],
        [("alice", None, BYTES, 3, 9e6, 9e6, 1), ("alice", "orders", BYTES, 3, 9e6, 9e6, 1)],
    ),
    "p99 and median of its windows": (
        [free(11 * n, float(n + 1)) for n in range(200)],
        [
            ("alice", None, BYTES, 1, 198.0, 100.0, 200),
            ("alice", "orders", BYTES, 1, 198.0, 100.0, 200),
        ],
    ),
    "client ids of a user add up": (
        [free(0, 30.0), free(0, 12.0, client_id="b")],
        [
            ("alice", None, BYTES, 1, 42.0, 42.0, 1),
            ("alice", "b", BYTES, 1, 12.0, 12.0, 1),
            ("alice", "orders", BYTES, 1, 30.0, 30.0, 1),
        ],
    ),
    "one with a quota of its own does not": (
        [free(0, 30.0), free(0, 12.0, client_id="b", quota_level=1, quota=50.0)],
        [
            ("alice", None, BYTES, 1, 30.0, 30.0, 1),
            ("alice", "b", BYTES, 1, 12.0, 12.0, 1),
            ("alice", "orders", BYTES, 1, 30.0, 30.0, 1),
        ],
    ),
    "more than a week ago does not count": (
        [free(-7.5 * DAY, 9e6), free(0, 5.0)],
        [("alice", None, BYTES, 1, 5.0, 5.0, 1), ("alice", "orders", BYTES, 1, 5.0, 5.0, 1)],
    ),
    "a principal that is no user has none": ([free(0, 1.0, principal="Group:a")], []),
}


def of_usage(*rows: Row) -> list[Row]:
    """The baselines from this usage."""
    return view("quota_baselines ORDER BY user, client_id NULLS FIRST", {"quota_usage": [*rows]})


def test_usage_is_that_of_the_busiest_broker() -> None:
    cases = {case: ({"quota_usage": usage}, expected) for case, (usage, expected) in CASES.items()}
    assert_shown(cases, "quota_baselines ORDER BY user, client_id NULLS FIRST", *PICKED)


def test_windows_that_are_rolled_up_count() -> None:
    for row in of_usage(rolled_up(-3 * DAY, [(100, 99), (159, 1)])):
        assert row["windows"] == 100
        assert row["usage_p99"] == pytest.approx(2 ** (101 / 8), rel=0.045)
        assert row["usage_median"] == row["usage_p99"]


def test_history_begins_with_the_first_window_of_eight_days() -> None:
    bob = free(0, 1.0, principal="User:bob")
    a_week = of_usage(free(-7 * DAY, 1.0), free(-60, 1.0), bob)
    assert [row["history_s"] for row in a_week] == [7 * DAY, 7 * DAY, 0, 0]
    less = of_usage(free(-7 * DAY + 11, 1.0), free(0, 1.0))
    assert {row["history_s"] for row in less} == {7 * DAY - 11}


def test_the_quota_is_that_of_the_last_window_and_request_time_is_estimated() -> None:
    limits = ((0, {"quota": 10.0, "quota_level": 3}), (60, {"quota": 20.0, "quota_level": 6}))
    quotas = of_usage(*(used(second, BYTES, 5.0, **limit) for second, limit in limits))
    names = ("quota", "quota_level", "is_estimated")
    assert set(picked(quotas, *names)) == {(20.0, 6, False)}
    time = of_usage(used(0, "request_percentage", 5.0, quota=None))
    assert {row["is_estimated"] for row in time} == {True}
