"""What clients say of themselves beside what brokers logged of them."""

from typing import Any

from ... import case_tables
from ...cases import cases
from ...rows import HOSTILE, INFINITE, NAN, Row, gauge, request
from .view_tables import Picked, picked, served, view


def latency(second: float, stat: str, value: float, kind: str = "producer", **others: Any) -> Row:
    place = {"node_id": 1, "node_kind": "broker"}
    return gauge(second, f"{kind}.node.request.latency.{stat}", value, **(place | others))


def answer_of(name: str, given: list[Row]) -> list[Row]:
    """A view over points of clients and requests that brokers logged."""
    content = served([row for row in given if "metric" not in row])
    content["client_metrics"] = [row for row in given if "metric" in row]
    return view(f"{name} ORDER BY minute, api, client_instance_id", content)


LATENCY = ("latency_avg_ms", "latency_max_ms", "broker_total_avg_ms", "outside_avg_ms")


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
SHARED = [latency(5, "avg", 8), latency(5, "avg", 9, client_instance_id="i2")]
PARTS = ("throttled_requests", "throttle_avg_ms", "outside_avg_ms", "outside_unknown")


@cases(
    ("given", "expected"),
    (
        "librdkafka measures the time for which its connection is muted",
        [
            latency(5, "avg", 650, **RDK),
            request(1, "PRODUCE", throttle_time_ms=1_200.0),
            request(2, "PRODUCE", throttle_time_ms=0.0),
        ],
        [(1, 600, 48, None)],
    ),
    (
        "the Java client waits before it sends",
        [latency(5, "avg", 50), request(1, "PRODUCE", throttle_time_ms=1_200.0)],
        [(1, 0, 48, None)],
    ),
    (
        "how another client measures is not known",
        [
            latency(5, "avg", 50, client_software_name="franz-go"),
            request(1, "PRODUCE", throttle_time_ms=1_200.0),
        ],
        [(1, None, None, "throttled")],
    ),
    (
        "nor does it matter where nothing was throttled",
        [latency(5, "avg", 50, client_software_name="franz-go"), request(1, "PRODUCE")],
        [(0, 0, 48, None)],
    ),
    (
        "no part of a time is negative",
        [latency(5, "avg", 1), request(1, "PRODUCE")],
        [(0, 0, None, "windows_differ")],
    ),
    (
        "nor is it where a throttle is longer than the latency",
        [latency(5, "avg", 50, **RDK), request(1, "PRODUCE", throttle_time_ms=1_200.0)],
        [(1, 1_200, None, "windows_differ")],
    ),
    (
        "requests of two instances cannot be distinguished",
        [*SHARED, request(1, "PRODUCE")],
        [(0, 0, None, "shared_client_id")] * 2,
    ),
    (
        "a client that pushes its maximum alone",
        [latency(5, "max", 8), request(1, "PRODUCE")],
        [(0, 0, None, "no_latency")],
    ),
    ("a broker that ships no log", [latency(5, "avg", 8)], [(None, None, None, "no_requests")]),
)
def test_a_latency_is_split_or_says_why_not(given: list[Row], expected: Picked) -> None:
    assert picked(answer_of("client_latency", given), *PARTS) == expected


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
    assert (row["clients"], row["latency_p95_ms"], row["latency_max_ms"]) == (2, 20, None)
    assert row["latency_weighted_avg_ms"] == 15
