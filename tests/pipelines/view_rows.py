"""Rows of tables as views meet them: what each test does not name is the same everywhere."""

from datetime import datetime, timedelta
from typing import Any

from quotaflow.pipelines.reader import Reader, engine_errors
from quotaflow.pipelines.warehouse import Warehouse

from .conftest import NOON

KAFKA = "org.apache.kafka."
NAN, INFINITE = float("nan"), float("inf")
HOSTILE = "'; DROP TABLE requests; --\\\n\u202e%_"
Row = dict[str, Any]

CLIENT = {
    "cluster_id": "c1",
    "principal": "User:alice",
    "client_id": "orders",
    "client_software_name": "apache-kafka-java",
    "client_software_version": "4.3.1",
    "client_address": "10.0.0.7",
    "broker_id": 1,
}
INSTANCE = {**CLIENT, "client_instance_id": "i1"}


def at(second: float) -> datetime:
    """A time that many seconds after noon."""
    return NOON + timedelta(seconds=second)


def rows(warehouse: Warehouse, sql: str) -> list[Row]:
    """The answer without a JVM."""
    with engine_errors(sql):
        return [dict(row) for row in Reader(warehouse).query(sql).read_all().to_pylist()]


def picked(found: list[Row], *names: str) -> list[tuple[Any, ...]]:
    """Some columns of each row."""
    return [tuple(row[name] for name in names) for row in found]


def gauge(second: float, metric: str, value: float, **others: Any) -> Row:
    """A reading a client pushed."""
    row = {
        **INSTANCE,
        "event_time": at(second),
        "metric": KAFKA + metric,
        "kind": "gauge",
        "value": value,
        "series_id": hash_of(metric, **others),
        "accepted": True,
        "payload_sha256": f"sha{second}",
    }
    return row | others


SENT = "producer.record.send.total"


def delta(
    second: float, start: float | None, value: float, metric: str = SENT, **others: Any
) -> Row:
    """A sum as Kafka's clients send it: what came since its start."""
    row = gauge(second, metric, value, **others)
    span = {"start_time": None if start is None else at(start)}
    return row | span | {"kind": "sum", "temporality": "delta", "is_monotonic": True} | others


def cumulative(second: float, start: float | None, value: float, **others: Any) -> Row:
    """A sum as a Collector may send it: what came since the process began."""
    return delta(second, start, value, **({"temporality": "cumulative"} | others))


def hash_of(metric: str, **others: Any) -> int:
    """A series_id as far as a test needs one."""
    told = (metric, *(str(others.get(name)) for name in ("client_instance_id", "topic", "node_id")))
    return sum(ord(letter) * 31**i for i, letter in enumerate("/".join(told))) % 2**62


def request(second: float, api: str, **others: Any) -> Row:
    """A request a broker completed."""
    row = {**CLIENT, "event_time": at(second), "api": api}
    return row | {"total_time_ms": 2.0, "throttle_time_ms": 0.0} | others


def push(second: float, **others: Any) -> Row:
    """A push as the request log has it."""
    row = {
        **INSTANCE,
        "event_time": at(second),
        "accepted": True,
        "error_code": 0,
        "terminating": False,
        "compression": "zstd",
        "wire_bytes": 100,
        "decoded_bytes": 1_000,
        "payload_sha256": f"sha{second}",
        "route": "request_log",
    }
    return row | others
