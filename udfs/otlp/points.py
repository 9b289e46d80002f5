"""The data points of a batch of metrics: most are read by layout, the others one by one."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric

from quotaflow.udfs.otlp import exact
from quotaflow.udfs.otlp.codecs import Limits
from quotaflow.udfs.otlp.groups import Groups
from quotaflow.udfs.otlp.numbers import Names, Numbers, Part
from quotaflow.udfs.otlp.payloads import EncodedMetrics, Ints, Unreadable, not_otlp, over


@dataclass(frozen=True, slots=True)
class Points:
    """All points in the order of their payloads; `rare` holds rare columns by position."""

    names: Names
    numbers: Numbers
    rare: dict[int, exact.Rare]


def read_points(metrics: EncodedMetrics, unreadable: Unreadable, limits: Limits) -> Points:
    """Every point of the batch; a metric that cannot be read makes its payload unreadable."""
    names = Names(limits)
    groups = Groups(metrics.metrics, names)
    parts = list(groups.parts())
    counts = np.zeros(len(metrics.metrics), np.int64)
    for part in parts:
        counts[part.numbers.metric] += 1
    weights = np.bincount(metrics.payload, weights=counts).astype(np.int64).tolist()
    rare_points = list(_exact(metrics, groups.left, unreadable, names, weights))
    for rare_point in rare_points:
        counts[rare_point.metric] += 1
    before = np.cumsum(counts) - counts
    rare = {int(before[e.metric]) + e.slot: e.point.rare for e in rare_points if e.point.rare}
    return Points(names, _in_order([*parts, _part(rare_points, names)], counts, before), rare)


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
        try:
            metric = Metric.FromString(metrics.metrics[index].as_py())
        except DecodeError as error:
            unreadable[payload] = not_otlp(error)
            continue
        weights[payload] += exact.weight(metric, most)
        if weights[payload] > most:
            unreadable[payload] = over("points, exemplars and quantiles", most)
            continue
        header = names.header_of(metric)
        for slot, point in enumerate(exact.points(metric, names.limits)):
            yield _Exact(index, slot, header, point)


def _part(rare_points: list[_Exact], names: Names) -> Part:
    numbers = Numbers(
        np.array([rare_point.metric for rare_point in rare_points], np.int64),
        np.array([rare_point.point.start_ns for rare_point in rare_points], np.uint64),
        np.array([rare_point.point.time_ns for rare_point in rare_points], np.uint64),
        np.array([rare_point.point.bits for rare_point in rare_points], np.uint64),
        np.array([rare_point.header for rare_point in rare_points], np.int32),
        np.array(
            [names.attributes_of(rare_point.point.attributes) for rare_point in rare_points],
            np.int32,
        ),
        np.array([names.form(rare_point.point.form) for rare_point in rare_points], np.int32),
    )
    return Part(numbers, np.array([rare_point.slot for rare_point in rare_points], np.int64))


def _in_order(parts: list[Part], counts: Ints, before: Ints) -> Numbers:
    """The points of all parts, in the order of their metric and slot."""
    total = int(counts.sum())
    columns: dict[str, Any] = {
        name: np.empty(total, getattr(parts[-1].numbers, name).dtype)
        for name in Numbers.__dataclass_fields__
    }
    for part in parts:
        place = before[part.numbers.metric] + part.slot
        for name, column in columns.items():
            column[place] = getattr(part.numbers, name)
    return Numbers(**columns)
