"""Brokers as clients see them, and what telemetry costs them."""

from typing import Any

from ...cases import cases
from ...rows import NAN, Row, at, gauge, push, request
from .view_tables import Picked, picked, served, view


def latency(instance: str, broker: int, avg: float, second: float = 5, **others: Any) -> Row:
    place = {"client_instance_id": instance, "node_id": broker, "node_kind": "broker"}
    metric = others.pop("metric", "producer.node.request.latency.avg")
    return gauge(second, metric, avg, **(place | others))


def slowest(points: list[Row], requests: list[Row], *names: str) -> Picked:
    content = served(requests) | {"client_metrics": points}
    return picked(
        view("slowest_brokers ORDER BY hour, api, slowest_rank, broker_id", content), *names
    )


@cases(
    ("points", "expected"),
    (
        "one slow client does not make a broker slow",
        [latency("a", 1, 5), latency("b", 1, 7), latency("c", 1, 90), latency("a", 2, 20)],
        [(1, 2, 1, 20, 20), (2, 1, 3, 7, 90)],
    ),
    (
        "nearest ranks of a hundred clients",
        [latency(f"i{n:03}", 1, n) for n in range(1, 101)],
        [(1, 1, 100, 50, 95)],
    ),
    (
        "a client counts once an hour, and only with a latency",
        [latency("a", 1, 5), latency("a", 1, 7, second=65), latency("b", 1, NAN)],
        [(1, 1, 1, 6, 6)],
    ),
    (
        "equals share a rank",
        [latency("a", 2, 5), latency("a", 1, 5), latency("a", 3, 4)],
        [(1, 1, 1, 5, 5), (1, 2, 1, 5, 5), (3, 3, 1, 4, 4)],
    ),
)
def test_slowest_brokers(points: list[Row], expected: Picked) -> None:
    names = ("slowest_rank", "broker_id", "clients", "latency_p50_ms", "latency_p95_ms")
    assert slowest(points, [], *names) == expected


def test_apis_and_hours_are_ranked_apart() -> None:
    of_fetch = latency("b", 2, 500, metric="consumer.node.request.latency.avg")
    points = [latency("a", 1, 5), of_fetch, latency("a", 3, 6, second=3_600)]
    assert slowest(points, [], "hour", "api", "broker_id", "slowest_rank") == [
        (at(0), "FETCH", 2, 1),
        (at(0), "PRODUCE", 1, 1),
        (at(3_600), "PRODUCE", 3, 1),
    ]


def test_the_weighted_mean_weighs_by_requests() -> None:
    points = [latency("a", 1, 5), latency("b", 1, 9, client_id="b")]
    requests = [*[request(5, "PRODUCE")] * 3, request(5, "PRODUCE", client_id="b")]
    assert slowest(points, requests, "latency_weighted_avg_ms") == [(6,)]


@cases(
    ("pushes", "expected"),
    (
        "per hour and broker",
        [push(1), push(2), push(3_601, broker_id=2, wire_bytes=50)],
        [
            {"hour": at(0), "broker_id": 1, "pushes": 2, "wire_bytes": 200, "ratio": 10.0},
            {"hour": at(3_600), "broker_id": 2, "pushes": 1, "ratio": 20.0},
        ],
    ),
    (
        "per codec",
        [push(1), push(2, compression="gzip", wire_bytes=500)],
        [{"compression": "gzip", "ratio": 2.0}, {"compression": "zstd", "ratio": 10.0}],
    ),
    (
        "a push by two ways is one, as the request log has it",
        [
            push(1.1, route="receiver", compression="none", payload_sha256="sha1"),
            push(1, wire_bytes=100, payload_sha256="sha1"),
        ],
        [{"compression": "zstd", "pushes": 1, "wire_bytes": 100}],
    ),
    (
        "the receiver does not know the wire",
        [push(1, route="receiver", compression="none", wire_bytes=5_000, decoded_bytes=5_000)],
        [
            {"compression": "unknown", "wire_bytes": None, "decoded_bytes": 5_000}
            | {"ratio": None, "plain_over_1000_bytes": 0}
        ],
    ),
    (
        "plain pushes that are large",
        [
            push(1, compression="none", wire_bytes=1_000),
            push(2, compression="none", wire_bytes=1_001),
        ],
        [{"compression": "none", "plain_over_1000_bytes": 1}],
    ),
    (
        "rejected, throttled, terminating, unreadable",
        [
            push(1, terminating=True),
            push(2, accepted=False, error_code=89),
            push(3, accepted=False, error_code=87, decoded_bytes=None, payload_sha256=None),
            push(4, accepted=False, error_code=87, decoded_bytes=None, payload_sha256=None),
        ],
        [{"pushes": 4, "rejected": 3, "throttled": 1, "terminating": 1, "ratio": 10.0}],
    ),
    (
        "an empty push has no ratio",
        [push(1, wire_bytes=0, decoded_bytes=0)],
        [{"wire_bytes": 0, "ratio": None}],
    ),
    ("a Collector's batch", [push(1, route="otlp", client_instance_id=None)], []),
    ("a rate", [push(s) for s in range(36)], [{"pushes": 36, "pushes_per_s": 0.01}]),
)
def test_telemetry_cost(pushes: list[Row], expected: list[Row]) -> None:
    actual = view(
        "telemetry_cost ORDER BY hour, broker_id, compression", {"telemetry_pushes": pushes}
    )
    kept = [
        {name: row[name] for name in expected_row}
        for row, expected_row in zip(actual, expected, strict=True)
    ]
    assert kept == expected
