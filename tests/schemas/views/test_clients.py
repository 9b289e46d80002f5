"""What clients say of themselves beside what brokers logged of them."""

from typing import Any

import pytest

from ... import case_tables
from ...cases import cases
from ...rows import HOSTILE, INFINITE, LONG_AGO, NAN, Row, at, gauge, push, request
from .view_tables import Picked, picked, served, view


def latency(second: float, stat: str, value: float, kind: str = "producer", **others: Any) -> Row:
    place = {"node_id": 1, "node_kind": "broker"}
    return gauge(second, f"{kind}.node.request.latency.{stat}", value, **(place | others))


METADATA = request(5, "METADATA", client_id="another")
"""A broker ships the lines that it is likely to leave out."""


def answer_of(
    name: str, given: list[Row], metadata: Row | None = METADATA, pushes: tuple[Row, ...] = ()
) -> list[Row]:
    """A view over points of clients and requests that brokers logged."""
    others = [] if metadata is None else [metadata]
    content = served(others + [row for row in given if "metric" not in row])
    content["client_metrics"] = [row for row in given if "metric" in row]
    content["telemetry_pushes"] = list(pushes)
    return view(f"{name} ORDER BY minute, api, client_instance_id", content)


LATENCY = ("latency_avg_ms", "latency_max_ms", "broker_total_max_ms", "slowest_outside_ms")


@cases(
    ("given", "expected"),
    *case_tables.rows(
        __file__, "latency", latency, request, NAN=NAN, INFINITE=INFINITE, HOSTILE=HOSTILE
    ),
)
def test_latency(given: list[Row], expected: Picked) -> None:
    assert picked(answer_of("client_latency", given), *LATENCY) == expected


def test_latency_tells_nodes_kinds_and_instances_apart() -> None:
    points = [
        latency(5, "avg", 8),
        latency(5, "avg", 9, client_instance_id="i2"),
        latency(5, "avg", 7, "consumer", node_id=2),
    ]
    actual = answer_of("client_latency", [*points, request(5, "PRODUCE"), request(6, "PRODUCE")])
    names = ("api", "broker_id", "client_instance_id", "latency_avg_ms", "broker_requests")
    assert picked(actual, *names) == [
        ("FETCH", 2, "i1", 7, None),
        ("PRODUCE", 1, "i1", 8, 2),
        ("PRODUCE", 1, "i2", 9, 2),
    ]


RDK = {"client_software_name": "librdkafka"}
GO = {"client_software_name": "franz-go"}
THROTTLED = request(1, "PRODUCE", throttle_time_ms=1_200.0)
SHARED = [latency(5, "max", 8), latency(5, "max", 9, client_instance_id="i2")]
PARTS = ("throttled_requests", "slowest_outside_ms", "outside_unknown")


@cases(
    ("given", "expected"),
    (
        "librdkafka measures the time for which its connection is muted",
        [latency(5, "max", 650, **RDK), THROTTLED],
        [(1, None, "throttled")],
    ),
    (
        "the Java client waits before it sends",
        [latency(5, "max", 50), THROTTLED],
        [(1, 48, None)],
    ),
    (
        "how another client measures is not known",
        [latency(5, "max", 50, **GO), THROTTLED],
        [(1, None, "throttled")],
    ),
    (
        "nor does it matter where nothing was throttled",
        [latency(5, "max", 50, **GO), request(1, "PRODUCE")],
        [(0, 48, None)],
    ),
    (
        "no part of a time is negative",
        [latency(5, "max", 1), request(1, "PRODUCE")],
        [(0, None, "within_broker")],
    ),
    (
        "no request of several instances took longer than the longest of all",
        [*SHARED, request(1, "PRODUCE")],
        [(0, 6, None), (0, 7, None)],
    ),
    (
        "the longest request may be among those that ingest left out",
        [latency(5, "max", 50), request(1, "PRODUCE", weight=10)],
        [(0, None, "incomplete_log")],
    ),
    (
        "or has no time in its line",
        [latency(5, "max", 50), request(1, "PRODUCE"), request(2, "PRODUCE", total_time_ms=None)],
        [(0, None, "incomplete_log")],
    ),
    (
        "a push whose span is of years",
        [latency(5, "max", 50, start_time=LONG_AGO), request(1, "PRODUCE")],
        [(0, None, "incomplete_log")],
    ),
    (
        "a client that pushes its average alone",
        [latency(5, "avg", 8), request(1, "PRODUCE")],
        [(0, None, "no_latency")],
    ),
    ("a broker that ships no log", [latency(5, "max", 8)], [(None, None, "no_requests")]),
)
def test_a_latency_is_split_or_says_why_not(given: list[Row], expected: Picked) -> None:
    assert picked(answer_of("client_latency", given), *PARTS) == expected


@cases(
    ("software", "metadata", "expected"),
    ("a broker that ships no METADATA", RDK, None, "incomplete_log"),
    ("nor did it for two hours", RDK, METADATA | {"event_time": at(7_200)}, "incomplete_log"),
    ("another broker does", RDK, METADATA | {"broker_id": 2}, "incomplete_log"),
    ("no client asked in the minute", RDK, METADATA | {"event_time": at(-3_000)}, None),
    ("Java does not measure METADATA", {}, None, None),
)
def test_what_brokers_do_not_ship_may_have_been_slow(
    software: Row, metadata: Row | None, expected: str | None
) -> None:
    given = [latency(5, "max", 50, **software), request(1, "PRODUCE")]
    (row,) = answer_of("client_latency", given, metadata)
    assert row["outside_unknown"] == expected


@cases(
    ("ahead_s", "pushes", "expected"),
    ("a right clock", 0, (push(6),), 300.0),
    ("a clock ten minutes ahead", 600, (push(6),), 300.0),
    ("a clock ten minutes behind", -600, (push(6),), 300.0),
    ("of two routes, each has a time", 0, (push(5), push(126, route="receiver")), 500.0),
    ("the push is not kept", 0, (), 300.0),
    ("another client's push", 0, (push(126, client_instance_id="i2"),), 300.0),
)
def test_pushes_are_compared_by_the_clock_of_brokers(
    ahead_s: int, pushes: tuple[Row, ...], expected: float
) -> None:
    slow = {1: 300.0, 126: 500.0, 601: 400.0, -599: 400.0}
    given = [request(second, "PRODUCE", total_time_ms=ms) for second, ms in slow.items()]
    point = latency(5 + ahead_s, "max", 900)
    pushed = tuple(each | {"payload_sha256": point["payload_sha256"]} for each in pushes)
    (row,) = answer_of("client_latency", [*given, point], pushes=pushed)
    assert row["broker_total_max_ms"] == expected


def polls(client_ms: float, **software: Any) -> list[Row]:
    """Two pushes of a consumer: of two polls that wait for records, and of thirty quick ones.

    The client measures so many ms beyond the broker.
    """
    fetches = {0.2: 500.0, 0.7: 500.0} | {1 + n / 50: 5.0 for n in range(30)}
    requests = [request(second, "FETCH", total_time_ms=ms) for second, ms in fetches.items()]
    pushes = [
        latency(second, stat, ms + client_ms, "consumer", start_time=at(second - 1), **software)
        for second, ms in ((1, 500.0), (2, 5.0))
        for stat in ("avg", "max")
    ]
    return [*requests, *pushes]


@cases(
    ("given", "expected"),
    ("a push of long polls and one of quick fetches", polls(1, **RDK), (1, None)),
    ("the same behind a slow network", polls(100, **RDK), (100, None)),
    (
        "a client that measured 100 ms more for each request",
        [
            *(latency(2, stat, 110.0, **RDK) for stat in ("avg", "max")),
            *(request(1, "PRODUCE", total_time_ms=ms) for ms in (3.0, 10.0)),
        ],
        (100, 100),
    ),
    (
        "Java repeats a slow start in the pushes of a minute",
        [
            request(-58, "PRODUCE", total_time_ms=300.0),
            request(1, "PRODUCE", total_time_ms=2.0),
            *(latency(n, "avg", 150.0) for n in (1, 2, 3)),
            *(latency(n, "max", 301.0) for n in (1, 2, 3)),
        ],
        (1, None),
    ),
    (
        "a push of five minutes",
        [
            request(-290, "PRODUCE", total_time_ms=300.0),
            request(1, "PRODUCE", total_time_ms=2.0),
            *(latency(5, stat, 301.0, start_time=at(-295), **RDK) for stat in ("avg", "max")),
        ],
        (1, 1),
    ),
)
def test_pushes_are_compared_whatever_requests_they_have(
    given: list[Row], expected: tuple[float | None, float | None]
) -> None:
    names = ("slowest_outside_ms", "outside_avg_ms")
    assert picked(answer_of("client_latency", given), *names) == [pytest.approx(expected)]


def test_a_broker_is_not_slow_because_of_a_throttled_client() -> None:
    content = {
        "client_metrics": [
            latency(5, "avg", 650, **RDK),
            latency(5, "max", 2_000, **RDK),
            latency(6, "avg", 10, client_id="calm", client_instance_id="i2"),
            latency(6, "avg", 99, client_id="go", client_software_name="franz-go"),
        ],
    }
    requests = [
        request(1, "PRODUCE", throttle_time_ms=630.0),
        request(2, "PRODUCE", client_id="calm"),
        request(3, "PRODUCE", client_id="go", throttle_time_ms=9.0),
    ]
    (row,) = view("slowest_brokers", content | served(requests))
    assert (row["clients"], row["latency_p95_ms"], row["latency_max_ms"]) == (1, 10, None)
