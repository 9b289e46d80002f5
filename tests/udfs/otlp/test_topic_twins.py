"""Topics with dots that Java clients name twice: the older form is marked, and nothing else."""

from typing import Any

import pytest
from opentelemetry.proto.metrics.v1 import metrics_pb2 as otlp_pb

from quotaflow.udfs.otlp import decode
from quotaflow.udfs.otlp.codecs import Limits

from ...cases import cases
from .otlp_made import attribute, gauge, payload, point
from .test_pushes import pushes

BYTES, RECORDS = "bytes.consumed.total", "records.consumed.total"
NAN = float("nan")


def total(name: str, topic: str | None, value: float, **others: str) -> otlp_pb.Metric:
    labels = ({"topic": topic} if topic else {}) | others
    attributes = [attribute(key, string_value=text) for key, text in labels.items()]
    points = [point(as_double=value, attributes=attributes)]
    return otlp_pb.Metric(name=name, sum=otlp_pb.Sum(data_points=points))


def lag(topic: str, value: float, partition: str = "0") -> otlp_pb.Metric:
    attributes = [attribute("topic", string_value=topic)]
    attributes.append(attribute("partition", string_value=partition))
    return gauge(point(as_double=value, attributes=attributes), name="records.lag")


def marked(*metrics_of_pushes: list[otlp_pb.Metric]) -> list[tuple[Any, ...]]:
    """Points that are twins, as metric, topic and value."""
    payloads = [payload(*metrics) for metrics in metrics_of_pushes]
    batch = pushes(payloads, ["none"] * len(payloads))
    rows = [
        row for part in decode.decode_pushes(Limits())(iter([batch])) for row in part.to_pylist()
    ]
    assert {row["topic"] is None for row in rows if row["is_topic_twin"] is None} <= {True}
    return [(row["metric"], row["topic"], row["value"]) for row in rows if row["is_topic_twin"]]


@cases(
    ("metrics", "expected"),
    (
        "the same total under both names",
        [total(BYTES, "my.topic", 1_000), total(BYTES, "my_topic", 1_000), total(BYTES, None, 9)],
        [(BYTES, "my_topic", 1_000)],
    ),
    (
        "several dots, and an underscore of its own",
        [total(BYTES, "a.b_c.d", 5), total(BYTES, "a_b_c_d", 5)],
        [(BYTES, "a_b_c_d", 5)],
    ),
    (
        "gauges of partitions",
        [lag("my.topic", 7), lag("my_topic", 7), lag("my.topic", 8, "1"), lag("my_topic", 8, "1")],
        [("records.lag", "my_topic", 7), ("records.lag", "my_topic", 8)],
    ),
    (
        "one value came between the two readings",
        [
            total(BYTES, "a.b", 10),
            total(BYTES, "a_b", 10),
            total(RECORDS, "a.b", 3),
            total(RECORDS, "a_b", 3),
            lag("a.b", 5),
            lag("a_b", 6),
        ],
        [(BYTES, "a_b", 10), (RECORDS, "a_b", 3), ("records.lag", "a_b", 6)],
    ),
    (
        "idle, and without samples",
        [total(BYTES, "a.b", 0), total(BYTES, "a_b", 0), lag("a.b", NAN), lag("a_b", NAN)],
        2,
    ),
    ("two topics by values", [total(BYTES, "a.b", 1_000), total(BYTES, "a_b", 7)], []),
    (
        "two topics, of which one is idle",
        [
            total(BYTES, "a.b", 0),
            total(BYTES, "a_b", 7),
            total(RECORDS, "a.b", 0),
            total(RECORDS, "a_b", 0),
        ],
        [],
    ),
    ("no topic with dots", [total(BYTES, "a_b", 5)], []),
    ("no older form", [total(BYTES, "a.b", 5)], []),
    ("another character", [total(BYTES, "a.b", 5), total(BYTES, "a-b", 5)], []),
    ("another metric", [total(BYTES, "a.b", 5), total(RECORDS, "a_b", 5)], []),
    ("another attribute", [total(BYTES, "a.b", 5, node="1"), total(BYTES, "a_b", 5, node="2")], []),
)
def test_the_older_form_of_a_topic_with_dots_is_marked(
    metrics: list[otlp_pb.Metric], expected: list[Any] | int
) -> None:
    rows = marked(metrics)
    assert (len(rows) if isinstance(expected, int) else sorted(rows)) == (
        expected if isinstance(expected, int) else sorted(expected)
    )


def test_pushes_of_two_clients_are_apart() -> None:
    assert marked([total(BYTES, "a.b", 5)], [total(BYTES, "a_b", 5)]) == []


def test_twins_are_found_however_rows_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    metrics = [
        [total(f"m{n}", topic, n + 1) for topic in ("a.b", "a_b") for n in range(20)]
        for _ in range(3)
    ]
    whole = marked(*metrics)
    monkeypatch.setattr(decode, "_BATCH_BYTES", 20_000)
    assert marked(*metrics) == whole
    assert len(whole) == 60
