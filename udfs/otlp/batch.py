"""A batch of decompressed payloads: which points are kept, and which payloads are unreadable."""

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import pyarrow as pa

from quotaflow.udfs.malloc import keep_freed
from quotaflow.udfs.otlp.arrays import Codes, Flags, Ints, Unsigned
from quotaflow.udfs.otlp.attribute_sets import AttributeSets
from quotaflow.udfs.otlp.bad_text import over
from quotaflow.udfs.otlp.codecs import Limits, UnreadableError
from quotaflow.udfs.otlp.payloads import EncodedMetrics, LeftOut, Unreadable, not_otlp, split
from quotaflow.udfs.otlp.points import Points, read_points

_KEY_SPACE = 1 << 62
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class DecodedBatch:
    """The points of a batch: each with its payload, resource and scope by number.

    `keep` is false for points of unreadable payloads and for duplicates. `flat_bytes` is the size
    of the text of each point as a row of its own. `left_out` counts the metrics of a payload whose
    text is not UTF-8, `broken` those whose bytes are no metric, and `unnamed` those with points
    that have no name.
    """

    points: Points
    payload: Ints
    resource: Ints
    scope: Ints
    resources: AttributeSets
    scopes: list[tuple[str, str]]
    keep: Flags
    flat_bytes: Ints
    left_out: LeftOut
    broken: LeftOut
    unnamed: LeftOut


def read(payloads: list[bytes], unreadable: Unreadable, limits: Limits) -> DecodedBatch:
    """Read every payload; reasons of payloads that cannot be read go to `unreadable`."""
    keep_freed()
    metrics = split(payloads, unreadable, limits)
    points = read_points(metrics, unreadable, limits)
    numbers = points.numbers
    payload, resource, scope = metrics.payload, metrics.resource, metrics.scope
    if not np.array_equal(numbers.metric, np.arange(len(payload))):
        payload, resource, scope = (column[numbers.metric] for column in (payload, resource, scope))
    scope, scopes = _renumbered(scope, metrics.scopes)
    flat_bytes = _flat_bytes(points, resource, metrics.resources, scope, scopes)
    _refuse_over(payload, flat_bytes, unreadable, limits)
    is_unnamed, unnamed = _unnamed(points, metrics, unreadable)
    keep = _first_of_each(points, payload, resource, scope) & ~is_unnamed
    if unreadable:
        keep &= ~np.isin(payload, list(unreadable))
    return DecodedBatch(
        points,
        payload,
        resource,
        scope,
        metrics.resources,
        scopes,
        keep,
        flat_bytes,
        metrics.left_out,
        metrics.broken,
        unnamed,
    )


def _renumbered(numbers: Ints, sent: list[T]) -> tuple[Ints, list[T]]:
    """The numbers with one per distinct content, because equal content can differ in bytes."""
    distinct: dict[T, int] = {}
    codes = np.array([distinct.setdefault(content, len(distinct)) for content in sent], np.int64)
    return codes[numbers], list(distinct)


def _flat_bytes(
    points: Points,
    resource: Ints,
    resources: AttributeSets,
    scope: Ints,
    scopes: list[tuple[str, str]],
) -> Ints:
    numbers, names = points.numbers, points.names
    return (
        _sizes([sum(map(len, header)) for header in names.headers])[numbers.header]
        + names.attributes.characters()[numbers.attributes]
        + resources.characters()[resource]
        + _sizes([sum(map(len, names)) for names in scopes])[scope]
    )


def _sizes(sizes: list[int]) -> Ints:
    return np.array(sizes, np.int64)


def _unnamed(
    points: Points, metrics: EncodedMetrics, unreadable: Unreadable
) -> tuple[Flags, LeftOut]:
    """The points of metrics without a name, and how many such metrics each payload has.

    OTLP requires a name: a payload that has such or broken metrics, and no named point, is of bytes
    that parse by accident.
    """
    numbers = points.numbers
    headers = [number for (name, _), number in points.names.headers.items() if not name]
    if not headers and not metrics.broken:
        return np.zeros(len(numbers.header), np.bool_), LeftOut()
    is_unnamed = np.isin(numbers.header, headers)
    named = set(metrics.payload[np.unique(numbers.metric[~is_unnamed])].tolist())
    unnamed = LeftOut(metrics.payload[np.unique(numbers.metric[is_unnamed])].tolist())
    for index in unnamed.keys() - named:
        unreadable.setdefault(index, not_otlp("a data point of a metric without a name"))
    for index in (+metrics.broken).keys() - named:
        unreadable.setdefault(index, not_otlp("a broken metric, and no data point"))
    return is_unnamed, unnamed


def _refuse_over(payload: Ints, flat_bytes: Ints, unreadable: Unreadable, limits: Limits) -> None:
    # Most batches are within the limits of one payload.
    if len(payload) > limits.points:
        for index in np.flatnonzero(np.bincount(payload) > limits.points):
            unreadable.setdefault(int(index), over("points", limits.points))
    if flat_bytes.sum() <= limits.flat_bytes:
        return
    sizes = np.bincount(payload, weights=flat_bytes)
    for index in np.flatnonzero(sizes > limits.flat_bytes):
        detail = f"{sizes[index]:.0f} bytes of text in rows, at most {limits.flat_bytes}"
        unreadable.setdefault(int(index), UnreadableError("rows_over_limit", detail))


def _first_of_each(points: Points, payload: Ints, resource: Ints, scope: Ints) -> Flags:
    """False where the payload already has a point of that series, start, time, and number.

    librdkafka 2.5.0 to 2.10.0 sends a metric once per subscribed prefix that matches it. It also
    gives several connections one node.id, -1: only their numbers differ.
    """
    numbers, names = points.numbers, points.names
    # Zero of either kind of number, and no number at all, have the same bits.
    pairs = [(form.kind, form.number) for form in names.forms]
    kinds = {pair: number for number, pair in enumerate(pairs)}
    kind = np.array([kinds[pair] for pair in pairs], np.int64)[numbers.form]
    series = _combined(payload, resource, scope, numbers.header, numbers.attributes, kind)
    keep = np.ones(len(series), np.bool_)
    in_order = np.sort(series)
    if not (repeated := in_order[1:][in_order[1:] == in_order[:-1]]).size:
        return keep
    again = np.flatnonzero(np.isin(series, repeated))
    key_columns = (series, numbers.start_ns, numbers.time_ns, numbers.bits)
    points_of = [_dense(column[again]) for column in key_columns]
    _, first = np.unique(_combined(*points_of), return_index=True)
    keep[again] = False
    keep[again[first]] = True
    return keep


def _combined(*columns: Ints | Codes) -> Ints:
    """One number per row, equal where all columns are equal."""
    key = columns[0].astype(np.int64)
    space = int(key.max(initial=0)) + 1
    for column in columns[1:]:
        width = int(column.max(initial=0)) + 1
        if width == 1:
            continue
        if space * width > _KEY_SPACE:
            key = _dense(key)
            space = int(key.max(initial=0)) + 1
        key, space = key * width + column, space * width
    return key


def _dense(column: Ints | Unsigned) -> Ints:
    codes: Ints = pa.array(column).dictionary_encode().indices.to_numpy().astype(np.int64)
    return codes
