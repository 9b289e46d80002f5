"""What a quota starts from: a week of usage at the busiest broker."""

from typing import Any

import pytest

from ...rows import Row, at, used
from .view_tables import by_case

BYTES = "producer_byte_rate"
DAY = 86_400
PICKED = ("user", "client_id", "quota_type", "broker_id", "usage_p99", "usage_median", "windows")


def rolled_up(second: float, buckets: list[tuple[int, int]], **others: Any) -> Row:
    """An hour of windows by their usage."""
    histogram = [{"bucket": bucket, "windows": windows} for bucket, windows in buckets]
    user = [
        {
            **{"quota": None, "quota_level": None, "is_throttled": False, "bucket": bucket},
            **{"windows": windows, "peak_usage": 1e9, "last_window": at(second + 3_000)},
        }
        for bucket, windows in buckets
    ]
    row = {"rolled_up_s": 3_600, "usage_histogram": histogram, "user_windows": user}
    free = {"quota": None, "quota_level": None, "peak_usage": 1e9}
    return used(second, BYTES, 1.0, **(row | free | others))


def free(second: float, usage: float, **others: Any) -> Row:
    return used(second, BYTES, usage, **({"quota": None, "quota_level": None} | others))


CASES: dict[str, tuple[list[Row], list[tuple[Any, ...]]]] = {
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


@pytest.fixture(scope="module")
def baselines() -> dict[str, list[Row]]:
    """The baselines of each case, and of those that ask for more columns."""
    cases = {case: {"quota_usage": rows} for case, (rows, _) in CASES.items()}
    cases["rolled up"] = {"quota_usage": [rolled_up(-3 * DAY, [(100, 99), (159, 1)])]}
    cases["a week"] = {"quota_usage": [free(-7 * DAY, 1.0), free(-60, 1.0), free(0, 1.0, **BOB)]}
    cases["less"] = {"quota_usage": [free(-7 * DAY + 11, 1.0), free(0, 1.0)]}
    cases["quotas"] = {
        "quota_usage": [
            used(0, BYTES, 5.0, quota=10.0, quota_level=3),
            used(60, BYTES, 5.0, quota=20.0, quota_level=6),
        ]
    }
    cases["time"] = {"quota_usage": [used(0, "request_percentage", 5.0, quota=None)]}
    query = "SELECT * FROM quota_baselines ORDER BY user, client_id NULLS FIRST"
    return by_case(cases, query)


BOB = {"principal": "User:bob"}


@pytest.mark.parametrize("case", CASES)
def test_usage_is_that_of_the_busiest_broker(baselines: dict[str, list[Row]], case: str) -> None:
    actual = [tuple(row[name] for name in PICKED) for row in baselines[case]]
    assert actual == CASES[case][1]


def test_windows_that_are_rolled_up_count(baselines: dict[str, list[Row]]) -> None:
    for row in baselines["rolled up"]:
        assert row["windows"] == 100
        assert row["usage_p99"] == pytest.approx(2 ** (101 / 8), rel=0.045)
        assert row["usage_median"] == row["usage_p99"]


def test_history_begins_with_the_first_window_of_eight_days(
    baselines: dict[str, list[Row]],
) -> None:
    assert [row["history_s"] for row in baselines["a week"]] == [7 * DAY, 7 * DAY, 0, 0]
    assert {row["history_s"] for row in baselines["less"]} == {7 * DAY - 11}


def test_the_quota_is_that_of_the_last_window(baselines: dict[str, list[Row]]) -> None:
    assert {(row["quota"], row["quota_level"]) for row in baselines["quotas"]} == {(20.0, 6)}


def test_request_time_is_estimated(baselines: dict[str, list[Row]]) -> None:
    assert {row["is_estimated"] for row in baselines["time"]} == {True}
    assert {row["is_estimated"] for row in baselines["quotas"]} == {False}
