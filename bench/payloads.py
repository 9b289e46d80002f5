"""Payloads to measure with: two captured from real clients, two made up."""

from pathlib import Path

from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import (
    Gauge,
    Metric,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
)
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

_GOLDEN = Path(__file__).parents[1] / "tests" / "golden" / "otlp"
_NAME = "org.apache.kafka.consumer.fetch.manager.records.lag"
_METRICS_PER_PARTITION = 6
_START_NS = 1_790_000_000_000_000_000
_STEP_NS = 1_000_000_000


def batches(batch_bytes: int) -> dict[str, list[bytes]]:
    """Batches of about `batch_bytes` by the kind of client that would send them."""
    java = (_GOLDEN / "java-cons-bob.data.bin").read_bytes()
    librdkafka = (_GOLDEN / "rdk-cons-carol.data.bin").read_bytes()
    many = batch_bytes // len(one_resource(0, 0))
    return {
        "Java consumer": [java] * (batch_bytes // len(java)),
        "librdkafka consumer": [librdkafka] * (batch_bytes // len(librdkafka)),
        "librdkafka, every client another": [
            librdkafka.replace(b"carol", b"%05d" % n) for n in range(batch_bytes // len(librdkafka))
        ],
        "one resource, same client": [one_resource(0, push) for push in range(many)],
        "one resource, every client another": [one_resource(n, n) for n in range(many)],
    }


def one_resource(client: int, push: int) -> bytes:
    """A consumer of 20 partitions of its own topic: 120 points behind one resource."""
    metrics = [
        Metric(
            name=f"{_NAME}.{stat}",
            gauge=Gauge(data_points=[_point(client, push, partition)]),
        )
        for partition in range(20)
        for stat in range(_METRICS_PER_PARTITION)
    ]
    resource = Resource(attributes=[_text("group_id", f"group-{client}")])
    scope = ScopeMetrics(metrics=metrics)
    return MetricsData(
        resource_metrics=[ResourceMetrics(resource=resource, scope_metrics=[scope])]
    ).SerializeToString()


def _point(client: int, push: int, partition: int) -> NumberDataPoint:
    return NumberDataPoint(
        time_unix_nano=_START_NS + push * _STEP_NS,
        as_double=push * 0.5 + partition,
        attributes=[_text("topic", f"topic-{client}"), _text("partition", str(partition))],
    )


def _text(key: str, value: str) -> KeyValue:
    return KeyValue(key=key, value=AnyValue(string_value=value))
