"""Metrics read by protobuf itself: every kind, every legal encoding, one point at a time.

Histograms, summaries, exemplars, and unusual encodings are read here. Metrics in the usual encoding
are read by their layout.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from opentelemetry.proto.metrics.v1.metrics_pb2 import (
    Exemplar,
    ExponentialHistogramDataPoint,
    HistogramDataPoint,
    Metric,
    NumberDataPoint,
    SummaryDataPoint,
)

from quotaflow.udfs.otlp.attributes import Tags, tags
from quotaflow.udfs.otlp.codecs import PER_POINT, Limits
from quotaflow.udfs.otlp.layout import Form

_LONG_MAX = 2**63 - 1
_FLAG_BITS = 31
_NUMBERS = {"as_double": ("double", "<d"), "as_int": ("int", "<q")}
NS_PER_US = 1_000
Rare = dict[str, Any]
"""Columns that only rare points have, by name."""


@dataclass(frozen=True, slots=True)
class Point:
    """One data point; `bits` are the eight bytes of its number, read as `form` says."""

    start_ns: int
    time_ns: int
    bits: int
    form: Form
    attributes: Tags
    rare: Rare


def weight(metric: Metric, most: int) -> int:
    """How much the metric counts against `Limits.points`, counted until it exceeds `most`."""
    kind, total = metric.WhichOneof("data"), 0
    if kind is None:
        return 0
    for point in getattr(metric, kind).data_points:
        total += 1 + _parts(kind, point)
        if total > most:
            break
    return total


def _parts(kind: str, point: Any) -> int:
    if kind == "summary":
        return len(point.quantile_values)
    buckets = 0
    if kind == "histogram":
        buckets = len(point.explicit_bounds) + len(point.bucket_counts)
    elif kind == "exponential_histogram":
        buckets = len(point.positive.bucket_counts) + len(point.negative.bucket_counts)
    return len(point.exemplars) + buckets // PER_POINT


def points(metric: Metric, limits: Limits) -> Iterator[Point]:
    """Every data point of the metric, in order."""
    kind = metric.WhichOneof("data")
    if kind is None:
        return
    data = getattr(metric, kind)
    temporality = getattr(data, "aggregation_temporality", 0)
    is_monotonic = data.is_monotonic if kind == "sum" else None
    for point in data.data_points:
        number, bits = _number(point) if kind in ("gauge", "sum") else (None, 0)
        form = Form(kind, temporality, is_monotonic, _signed(point.flags), number)
        yield Point(
            point.start_time_unix_nano,
            point.time_unix_nano,
            bits,
            form,
            tags(point.attributes, limits),
            _rare(point, limits),
        )


def _number(point: NumberDataPoint) -> tuple[str | None, int]:
    kind = point.WhichOneof("value")
    if kind is None:
        return None, 0
    name, layout = _NUMBERS[kind]
    return name, int.from_bytes(struct.pack(layout, getattr(point, kind)), "little")


def _rare(point: Any, limits: Limits) -> Rare:
    rare: Rare = {}
    if isinstance(point, HistogramDataPoint):
        rare = _histogram(point)
    elif isinstance(point, ExponentialHistogramDataPoint):
        rare = _exponential(point)
    elif isinstance(point, SummaryDataPoint):
        rare = _summary(point)
    if not isinstance(point, SummaryDataPoint) and point.exemplars:
        rare["exemplars"] = [_exemplar(exemplar, limits) for exemplar in point.exemplars]
    return rare


def _distribution(point: HistogramDataPoint | ExponentialHistogramDataPoint) -> Rare:
    return {
        "histogram_count": _long(point.count),
        "histogram_sum": point.sum if point.HasField("sum") else None,
        "histogram_min": point.min if point.HasField("min") else None,
        "histogram_max": point.max if point.HasField("max") else None,
    }


def _histogram(point: HistogramDataPoint) -> Rare:
    return _distribution(point) | {
        "histogram_bounds": list(point.explicit_bounds),
        "histogram_bucket_counts": [_long(count) for count in point.bucket_counts],
    }


def _exponential(point: ExponentialHistogramDataPoint) -> Rare:
    return _distribution(point) | {
        "exponential_scale": point.scale,
        "exponential_zero_count": _long(point.zero_count),
        "exponential_zero_threshold": point.zero_threshold,
        "exponential_positive": _buckets(point.positive),
        "exponential_negative": _buckets(point.negative),
    }


def _buckets(buckets: ExponentialHistogramDataPoint.Buckets) -> Rare:
    counts = [_long(count) for count in buckets.bucket_counts]
    return {"offset": buckets.offset, "bucket_counts": counts}


def _summary(point: SummaryDataPoint) -> Rare:
    return {
        "histogram_count": _long(point.count),
        "histogram_sum": point.sum,
        "quantiles": [{"quantile": q.quantile, "value": q.value} for q in point.quantile_values],
    }


def _exemplar(exemplar: Exemplar, limits: Limits) -> Rare:
    kind = exemplar.WhichOneof("value")
    return {
        "time": exemplar.time_unix_nano // NS_PER_US if exemplar.time_unix_nano else None,
        "value": float(getattr(exemplar, kind)) if kind else None,
        "value_int": exemplar.as_int if kind == "as_int" else None,
        "span_id": exemplar.span_id.hex() or None,
        "trace_id": exemplar.trace_id.hex() or None,
        "filtered_attributes": tags(exemplar.filtered_attributes, limits),
    }


def _long(count: int) -> int:
    """An unsigned count as BIGINT: one that does not fit becomes the largest BIGINT."""
    return min(count, _LONG_MAX)


def _signed(flags: int) -> int:
    """Unsigned flags as INT, bit for bit."""
    return flags - (1 << _FLAG_BITS + 1) if flags >> _FLAG_BITS else flags
