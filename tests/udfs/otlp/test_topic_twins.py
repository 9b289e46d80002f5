"""Topics with dots that Java clients name twice: the older form is marked, and nothing else."""

from typing import Any

import pytest
from opentelemetry.proto.metrics.v1 import metrics_pb2 as otlp_pb

from quotaflow.udfs.otlp import decode
from quotaflow.udfs.otlp.codecs import Limits

from ... import case_tables
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
    *case_tables.rows(
        __file__,
        "the_older_form_of_a_topic_with_dots_is_marked",
        total,
        lag,
        BYTES=BYTES,
        RECORDS=RECORDS,
        NAN=NAN,
    ),
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
