"""Percentiles of request times by hour and API, of each client and of each broker."""

import math

import pytest

from ...rows import at, times, waits
from .view_tables import Picked, Tables, assert_shown, picked, view


def bound(ms: float) -> float:
    """The upper end of the bucket that has this wait."""
    return round(2.0 ** (math.ceil(8 * math.log2(ms)) / 8), 4)


def minute(second: float, *waited: float, requests: int | None = None) -> dict[str, object]:
    """A minute with a request for each wait, and others that did not wait."""
    n = requests or len(waited)
    return times(second, "PRODUCE", n, each={"local": sum(waited) / n}) | {
        "waited_histogram": waits(*waited) or None,
        "line_count": n,
    }


HOUR = at(0)
CASES: dict[str, tuple[Tables, Picked]] = {
    "one request": ({"request_times": [minute(0, 7.0)]}, [(HOUR, 1, bound(7), bound(7), bound(7))]),
    "over minutes and brokers": (
        {
            "request_times": [
                minute(0, *[2.0] * 50),
                minute(60, *[20.0] * 45),
                minute(60, *[200.0] * 4, 2_000.0) | {"broker_id": 2},
            ]
        },
        [(HOUR, 100, bound(2), bound(20), bound(200))],
    ),
    "most did not wait": (
        {"request_times": [minute(0, 30.0, requests=100)]},
        [(HOUR, 100, 0.0, 0.0, 0.0)],
    ),
    "none waited": ({"request_times": [minute(0, requests=3)]}, [(HOUR, 3, 0.0, 0.0, 0.0)]),
    "no line has a time": (
        {"request_times": [minute(0, requests=3) | {"timed_requests": 0}]},
        [(HOUR, 3, None, None, None)],
    ),
    "without a client id": (
        {"request_times": [minute(0, 7.0) | {"client_id": None}]},
        [(HOUR, 1, bound(7), bound(7), bound(7))],
    ),
    "two hours": (
        {"request_times": [minute(0, 7.0), minute(3_600, 70.0)]},
        [(HOUR, 1, bound(7), bound(7), bound(7)), (at(3_600), 1, bound(70), bound(70), bound(70))],
    ),
}


def test_a_percentile_is_an_upper_bound_over_the_hour() -> None:
    columns = ("hour", "request_count", "p50_ms", "p95_ms", "p99_ms")
    assert_shown(CASES, "latency_by_hour ORDER BY hour", *columns)
    # As the head of the view says.
    assert 1 - 2 ** (-1 / 8) < 0.083


MIXED = [
    minute(0, *[2.0] * 99),
    minute(60, 2_000.0) | {"client_id": "slow", "broker_id": 2},
    minute(120, *[2.0] * 49, 90.0) | {"client_id": "slow", "broker_id": 2},
]


def test_a_broker_has_the_percentiles_of_all_its_clients() -> None:
    """The slow client waits at broker 2 alone: the p99 of broker 1 is that of its clients."""
    rows = view("broker_latency_by_hour ORDER BY broker_id", {"request_times": MIXED})
    names = ("hour", "broker_id", "api", "request_count", "p50_ms", "p99_ms")
    assert picked(rows, *names) == [
        (HOUR, 1, "PRODUCE", 99, bound(2), bound(2)),
        (HOUR, 2, "PRODUCE", 51, bound(2), bound(2_000)),
    ]


def test_a_client_has_the_time_of_handler_threads_over_all_brokers() -> None:
    elsewhere = minute(180, *[10.0] * 2) | {"broker_id": 3}
    content = {"request_times": [*MIXED, elsewhere]}
    rows = view("latency_by_hour ORDER BY client_id", content)
    times_in_broker = {row["client_id"]: row["local_time_ms"] for row in rows}
    assert times_in_broker == pytest.approx({"orders": 99 * 2 + 20, "slow": 2_000 + 49 * 2 + 90})
    rows = view("broker_latency_by_hour ORDER BY broker_id", content)
    assert [row["local_time_ms"] for row in rows] == pytest.approx([198, 2_188, 20])
