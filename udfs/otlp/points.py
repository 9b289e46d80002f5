"""The data points of a batch of metrics: most are read by layout, the others one by one."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from google.protobuf.message import DecodeError
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric

from quotaflow.udfs.otlp import exact
from quotaflow.udfs.otlp.bad_text import BROKEN, over, refusal
from quotaflow.udfs.otlp.codecs import Limits
from quotaflow.udfs.otlp.groups import Groups
from quotaflow.udfs.otlp.numbers import Names, Numbers
from quotaflow.udfs.otlp.payloads import EncodedMetrics, Unreadable


@dataclass(frozen=True, slots=True)
class Points:
    """All points in the order of their payloads; `rare` holds rare columns by position."""

    names: Names
    numbers: Numbers
    rare: dict[int, exact.Rare]


def read_points(metrics: EncodedMetrics, unreadable: Unreadable, limits: Limits) -> Points:
    """Every point of the batch.

    A metric that cannot be read is left out, and counted in `metrics.left_out` or `metrics.broken`.
    """
    names = Names(limits)
    groups = Groups(metrics.metrics, names)
    counts = groups.counts.copy()
    weights = np.bincount(metrics.payload, weights=counts).astype(np.int64).tolist()
    rare_points = list(_exact(metrics, groups.left, unreadable, names, weights))
    for rare_point in rare_points:
        counts[rare_point.metric] += 1
    before = np.cumsum(counts) - counts
    numbers = groups.numbers(counts, before)
    places = [int(before[each.metric]) + each.slot for each in rare_points]
    _fill(numbers, places, rare_points, names)
    pairs = zip(places, rare_points, strict=True)
    return Points(names, numbers, {at: each.point.rare for at, each in pairs if each.point.rare})


@dataclass(frozen=True, slots=True)
class _Exact:
    """A point read by protobuf, with its metric, its place in it, and the metric's header."""

    metric: int
    slot: int
    header: int
    point: exact.Point


def _exact(
    metrics: EncodedMetrics,
    left: list[int],
    unreadable: Unreadable,
    names: Names,
    weights: list[int],
) -> Iterator[_Exact]:
    """The points of metrics without a layout; `weights` are the points of each payload so far."""
    most = names.limits.points
    for index in left:
        payload = int(metrics.payload[index])
        if payload in unreadable:
            continue
        encoded = metrics.metrics[index].as_py()
        try:
            metric = Metric.FromString(encoded)
        except DecodeError:
            is_broken = refusal(Metric, encoded) == BROKEN
            (metrics.broken if is_broken else metrics.left_out)[payload] += 1
            continue
        weights[payload] += exact.weight(metric, most)
        if weights[payload] > most:
            unreadable[payload] = over("points, exemplars and quantiles", most)
            continue
        header = names.header_of(metric)
        for slot, point in enumerate(exact.points(metric, names.limits)):
            yield _Exact(index, slot, header, point)


def _fill(numbers: Numbers, places: list[int], rare_points: list[_Exact], names: Names) -> None:
    """Set the columns of these points at their places."""
    for name, values in (
        ("start_ns", [each.point.start_ns for each in rare_points]),
        ("time_ns", [each.point.time_ns for each in rare_points]),
        ("bits", [each.point.bits for each in rare_points]),
        ("header", [each.header for each in rare_points]),
        ("attributes", [names.attributes.number_of(each.point.attributes) for each in rare_points]),
        ("form", [names.form(each.point.form) for each in rare_points]),
    ):
        column = getattr(numbers, name)
        column[places] = np.array(values, column.dtype)
