"""Brokers as clients see them, and what telemetry costs them."""

from typing import Any

from ... import case_tables
from ...cases import cases
from ...rows import NAN, Row, at, gauge, push
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
    *case_tables.rows(__file__, "slowest_brokers", latency, NAN=NAN),
    (
        "nearest ranks of a hundred clients",
        [latency(f"i{n:03}", 1, n) for n in range(1, 101)],
        [(1, 1, 100, 50, 95)],
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


@cases(
    ("pushes", "expected"),
    *case_tables.rows(__file__, "telemetry_cost", push),
    (
        "the receiver does not know the wire",
        [push(1, route="receiver", compression="none", wire_bytes=5_000, decoded_bytes=5_000)],
        [
            {"compression": "unknown", "wire_bytes": None, "decoded_bytes": 5_000}
            | {"ratio": None, "plain_over_1000_bytes": 0}
        ],
    ),
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
