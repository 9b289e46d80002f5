"""Small OTLP payloads by hand, as the tests of the decoder write them."""

from datetime import UTC, datetime

from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.metrics.v1 import metrics_pb2 as otlp_pb
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

NOW_NS = 1_790_000_000_123_456_789
NOW = datetime(2026, 9, 21, 14, 13, 20, 123456, tzinfo=UTC)


def attribute(key, **value):
    return KeyValue(key=key, value=AnyValue(**value))


def point(**fields):
    return otlp_pb.NumberDataPoint(**({"time_unix_nano": NOW_NS} | fields))


def gauge(*points, name="m", **fields):
    return otlp_pb.Metric(name=name, gauge=otlp_pb.Gauge(data_points=points), **fields)


def exponential(**fields):
    point = otlp_pb.ExponentialHistogramDataPoint(**({"time_unix_nano": NOW_NS} | fields))
    histogram = otlp_pb.ExponentialHistogram(data_points=[point])
    return otlp_pb.Metric(name="m", exponential_histogram=histogram)


def payload(*metrics, resource=()):
    scope = otlp_pb.ScopeMetrics(metrics=metrics)
    return otlp_pb.MetricsData(
        resource_metrics=[
            otlp_pb.ResourceMetrics(
                resource=Resource(attributes=resource), scope_metrics=[scope] if metrics else []
            )
        ]
    ).SerializeToString()
