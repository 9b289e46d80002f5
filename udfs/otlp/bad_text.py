"""Metrics with text that is not UTF-8: protobuf refuses it, though all around it can be read."""

from collections.abc import Callable
from typing import Any

from google.protobuf.message import DecodeError, Message
from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric, MetricsData
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

from quotaflow.udfs.otlp.codecs import Limits, UnreadableError
from quotaflow.udfs.otlp.descriptor import bytes_class

REASON = "metric_not_utf8"
"""Why a readable payload is in quarantine: text of some metrics, or around them, is not UTF-8."""
UNNAMED = "metric_without_name"
"""The same, where all text is UTF-8, and some metrics have no name."""


def metrics_left_out(bad_text: int | None, unnamed: int | None) -> tuple[str, str] | None:
    """The reason of a readable payload with metrics left out, and how many; None: there are none.

    The numbers are those of metrics whose text is not UTF-8, and of those without a name.
    """
    causes = [(bad_text, "their text is not UTF-8"), (unnamed, "they have no name")]
    details = [f"metrics left out because {cause}: {count}" for count, cause in causes if count]
    return (REASON if bad_text else UNNAMED, ", ".join(details)) if details else None


def is_only_bad_text(metric: bytes) -> bool:
    """Whether nothing but its text is wrong with a metric that protobuf refuses."""
    return _parses(bytes_class(Metric.DESCRIPTOR.full_name), metric)


def without_bad_text(payload: bytes, limits: Limits) -> tuple[bytes, int]:
    """The payload without the metrics that have bad text, and how many these are.

    Bad text in a resource or scope costs its metrics. A schema URL is not used, so it costs none.
    DecodeError if protobuf cannot read the payload for another reason, or if it has no metric.
    UnreadableError if it has more resources, scopes or metrics than a payload can have points.
    """
    data: Any = bytes_class(MetricsData.DESCRIPTOR.full_name).FromString(payload)
    scopes = [scope for resource in data.resource_metrics for scope in resource.scope_metrics]
    count = _metrics(data)
    if max(len(data.resource_metrics), len(scopes), count) > limits.points:
        raise over("resources, scopes or metrics", limits.points)
    if not count:
        raise DecodeError("text that is not UTF-8, and no metric")
    for of_resource in data.resource_metrics:
        of_resource.schema_url = b""
        for of_scope in of_resource.scope_metrics:
            of_scope.schema_url = b""
            _keep(of_scope.metrics, lambda metric: _parses(Metric, _encoded(metric)))
        _keep(
            of_resource.scope_metrics,
            lambda each: _parses(InstrumentationScope, _encoded(each.scope)),
        )
    _keep(data.resource_metrics, lambda each: _parses(Resource, _encoded(each.resource)))
    return _encoded(data), count - _metrics(data)


def over(what: str, most: int) -> UnreadableError:
    """More than one payload can have."""
    return UnreadableError("points_over_limit", f"more than {most} {what}")


def _metrics(data: Any) -> int:
    return sum(
        len(of_scope.metrics)
        for of_resource in data.resource_metrics
        for of_scope in of_resource.scope_metrics
    )


def _keep(messages: Any, is_kept: Callable[[Any], bool]) -> None:
    kept = [message for message in messages if is_kept(message)]
    if len(kept) < len(messages):
        del messages[:]
        messages.extend(kept)


def _parses(kind: type[Message], encoded: bytes) -> bool:
    try:
        kind.FromString(encoded)
    except DecodeError:
        return False
    return True


def _encoded(message: Message) -> bytes:
    return message.SerializeToString()
