"""Metrics that protobuf refuses, though all around them can be read: broken, or not UTF-8."""

from typing import Any

from google.protobuf.message import DecodeError, Message
from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

from quotaflow.udfs.otlp.codecs import Limits, UnreadableError
from quotaflow.udfs.otlp.descriptor import bytes_class, payload_class

REASON = "metric_not_utf8"
"""Why a readable payload is in quarantine: text of some metrics, or around them, is not UTF-8."""
BROKEN = "metric_broken"
"""The same, where all text is UTF-8, and the bytes of some metrics are no metric."""
UNNAMED = "metric_without_name"
"""The same, where all can be read, and some metrics have no name."""
COUNTS = ("unreadable_metrics", "broken_metrics", "unnamed_metrics")
"""Columns with the numbers of metrics that are left out, for `metrics_left_out`."""


def metrics_left_out(
    bad_text: int | None, broken: int | None, unnamed: int | None
) -> tuple[str, str] | None:
    """The reason of a readable payload with metrics left out, and how many; None: there are none.

    The numbers are those of COUNTS.
    """
    causes = [
        (bad_text, REASON, "their text is not UTF-8"),
        (broken, BROKEN, "their bytes are broken"),
        (unnamed, UNNAMED, "they have no name"),
    ]
    counted = [(reason, f"{cause}: {count}") for count, reason, cause in causes if count]
    details = [f"metrics left out because {detail}" for _, detail in counted]
    return (counted[0][0], ", ".join(details)) if counted else None


def readable_part(payload: bytes, limits: Limits) -> tuple[bytes, int, int]:
    """The payload without metrics that protobuf refuses; how many have bad text, and are broken.

    A resource or scope that protobuf refuses costs its metrics. A schema URL is not used, so it
    costs none. DecodeError if the end of a metric is not known, or if there is no metric.
    UnreadableError if it has more resources, scopes or metrics than a payload can have points.
    """
    data: Any = payload_class().FromString(payload)
    scopes = [scope for resource in data.resource_metrics for scope in resource.scope_metrics]
    count = sum(len(scope.metrics) for scope in scopes)
    if max(len(data.resource_metrics), len(scopes), count) > limits.points:
        raise over("resources, scopes or metrics", limits.points)
    if not count:
        raise DecodeError("no metric can be read")
    broken = 0
    for of_resource in data.resource_metrics:
        of_resource.ClearField("schema_url")
        around = refusal(Resource, b"".join(of_resource.resource))
        for of_scope in of_resource.scope_metrics:
            of_scope.ClearField("schema_url")
            refused = around or refusal(InstrumentationScope, b"".join(of_scope.scope))
            refusals = [refused or refusal(Metric, each) for each in of_scope.metrics]
            broken += refusals.count(BROKEN)
            pairs = zip(of_scope.metrics, refusals, strict=True)
            of_scope.metrics[:] = [metric for metric, refusal in pairs if refusal is None]
            if refused:
                of_scope.ClearField("scope")
        if around:
            of_resource.ClearField("resource")
    left = sum(len(scope.metrics) for scope in scopes)
    return data.SerializeToString(), count - left - broken, broken


def refusal(kind: type[Message], encoded: bytes) -> str | None:
    """Why protobuf refuses the bytes as this message; None: it reads them."""
    if _parses(kind, encoded):
        return None
    return REASON if _parses(bytes_class(kind.DESCRIPTOR.full_name), encoded) else BROKEN


def over(what: str, most: int) -> UnreadableError:
    """More than one payload can have."""
    return UnreadableError("points_over_limit", f"more than {most} {what}")


def _parses(kind: type[Message], encoded: bytes) -> bool:
    try:
        kind.FromString(encoded)
    except DecodeError:
        return False
    return True
