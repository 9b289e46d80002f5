"""The data points of a batch of metrics as arrays of numbers, names numbered once.

Metrics of one layout are read together, column by column out of their bytes; the others one by one.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from google.protobuf.message import DecodeError
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric, NumberDataPoint

from quotaflow.udfs import otlp_exact
from quotaflow.udfs.codecs import Limits
from quotaflow.udfs.otlp_attributes import Tags, cut, tags
from quotaflow.udfs.otlp_layout import Form, Layout, Slot, Span, layout
from quotaflow.udfs.otlp_payloads import Ints, Metrics, Unreadable, not_otlp

Bytes = npt.NDArray[np.uint8]
Unsigned = npt.NDArray[np.uint64]
Header = tuple[str, str]
"""Name and unit of a metric, as sent."""

_UNREAD = -1
_LEAST_GROUP = 4
_MOST_LAYOUTS = 16
_MOST_KEYS = 1 << 16
_HEADER_FIELDS = {"name", "description", "unit"}


@dataclass(slots=True)
class Names:
    """Every distinct header, attribute set and form of a batch, by number (a dict's order)."""

    limits: Limits
    headers: dict[Header, int] = field(default_factory=dict)
    attributes: dict[Tags, int] = field(default_factory=dict)
    forms: dict[Form, int] = field(default_factory=dict)

    def header(self, encoded: bytes) -> int:
        """The number of a metric's header; _UNREAD where the bytes hold more or less than one."""
        try:
            metric = Metric.FromString(encoded)
        except DecodeError:
            return _UNREAD
        if any(field.name not in _HEADER_FIELDS for field, _ in metric.ListFields()):
            return _UNREAD
        return self.header_of(metric)

    def header_of(self, metric: Metric) -> int:
        """The number of a metric's name and unit."""
        header = cut(metric.name, self.limits), cut(metric.unit, self.limits)
        return self.headers.setdefault(header, len(self.headers))

    def attribute_set(self, encoded: bytes) -> int:
        """The number of a point's attributes; _UNREAD where the bytes hold anything else."""
        try:
            point = NumberDataPoint.FromString(encoded)
        except DecodeError:
            return _UNREAD
        if any(field.name != "attributes" for field, _ in point.ListFields()):
            return _UNREAD
        return self.attributes_of(tags(point.attributes, self.limits))

    def attributes_of(self, attributes: Tags) -> int:
        """The number of a set of attributes."""
        return self.attributes.setdefault(attributes, len(self.attributes))

    def form(self, form: Form) -> int:
        """The number of a form."""
        return self.forms.setdefault(form, len(self.forms))


@dataclass(frozen=True, slots=True)
class Numbers:
    """The same for each of some points: whose they are, when, what, and the numbers of names."""

    metric: Ints
    start_ns: Unsigned
    time_ns: Unsigned
    bits: Unsigned
    header: Ints
    attributes: Ints
    form: Ints


@dataclass(slots=True)
class Points:
    """All points in the order of their payloads; `rare` holds rare columns by position."""

    names: Names
    numbers: Numbers
    rare: dict[int, otlp_exact.Rare]


def read(metrics: Metrics, unreadable: Unreadable, limits: Limits) -> Points:
    """Every point of the batch; a metric that cannot be read makes its payload unreadable."""
    names = Names(limits)
    reader = _Reader(metrics.metrics, names)
    parts = list(reader.parts())
    left = [i for i in reader.left if int(metrics.payload[i]) not in unreadable]
    points: list[otlp_exact.Point] = []
    owners, headers = [], []
    for index in left:
        try:
            metric = Metric.FromString(metrics.metrics[index].as_py())
        except DecodeError as error:
            unreadable.setdefault(int(metrics.payload[index]), not_otlp(error))
            continue
        read = list(otlp_exact.points(metric, limits))
        owners += [index] * len(read)
        headers += [names.header_of(metric)] * len(read)
        points += read
    parts.append(_exact(points, owners, headers, names))
    rare_from = sum(len(part.metric) for part in parts[:-1])
    return _in_order(parts, points, rare_from, names)


def _exact(
    points: list[otlp_exact.Point], owners: list[int], headers: list[int], names: Names
) -> Numbers:
    return Numbers(
        np.array(owners, np.int64),
        np.array([point.start_ns for point in points], np.uint64),
        np.array([point.time_ns for point in points], np.uint64),
        np.array([point.bits for point in points], np.uint64),
        np.array(headers, np.int64),
        np.array([names.attributes_of(point.attributes) for point in points], np.int64),
        np.array([names.form(point.form) for point in points], np.int64),
    )


def _in_order(
    parts: list[Numbers], points: list[otlp_exact.Point], rare_from: int, names: Names
) -> Points:
    columns = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in Numbers.__dataclass_fields__
    }
    order = np.argsort(columns["metric"], kind="stable")
    rare = {}
    if any(point.rare for point in points):
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        rare = {int(place[rare_from + i]): p.rare for i, p in enumerate(points) if p.rare}
    return Points(names, Numbers(**{name: col[order] for name, col in columns.items()}), rare)


class _Reader:
    """Groups metrics by layout and reads each group at once; `left` is what has no layout."""

    def __init__(self, metrics: pa.BinaryArray, names: Names) -> None:
        self.names = names
        self.left: list[int] = []
        offsets = np.frombuffer(metrics.buffers()[1], np.int32)
        self.offsets = offsets[metrics.offset : metrics.offset + len(metrics) + 1].astype(np.int64)
        data = metrics.buffers()[2]
        self.data: Bytes = np.frombuffer(data, np.uint8) if data else np.empty(0, np.uint8)
        self.headers: dict[bytes, int] = {}
        self.attributes: dict[bytes, int] = {}

    def parts(self) -> Iterator[Numbers]:
        """The points of every group."""
        sizes = np.diff(self.offsets)
        for rows in _groups(self._keys(sizes)):
            size = int(sizes[rows[0]])
            if len(rows) < _LEAST_GROUP or not size or (sizes[rows] != size).any():
                self.left += rows.tolist()
            else:
                yield from self._group(rows, self._cells(rows, size))

    def _keys(self, sizes: Ints) -> Ints:
        """Size and length of the name: what mostly tells layouts apart."""
        name_size = np.zeros(len(sizes), np.int64)
        has_name = sizes > 1
        name_size[has_name] = self.data[self.offsets[:-1][has_name] + 1]
        return sizes << 8 | name_size

    def _cells(self, rows: Ints, size: int) -> Bytes:
        """The metrics of one size as a matrix of bytes, a metric a row."""
        windows = np.ndarray(
            (len(self.data) - size + 1,), np.dtype((np.void, size)), self.data, strides=(1,)
        )
        return windows[self.offsets[rows]].view(np.uint8).reshape(len(rows), size)

    def _group(self, rows: Ints, cells: Bytes) -> Iterator[Numbers]:
        for _ in range(_MOST_LAYOUTS):
            if len(rows) < _LEAST_GROUP:
                break
            found = layout(cells[0].tobytes())
            if found is None:
                self.left.append(int(rows[0]))
                rows, cells = rows[1:], cells[1:]
                continue
            mask = np.frombuffer(found.mask, np.uint8)
            other = ((cells ^ cells[0]) & mask).any(axis=1)
            if not other.any():
                yield from self._read(rows, cells, found)
                return
            yield from self._read(rows[~other], cells[~other], found)
            rows, cells = rows[other], cells[other]
        self.left += rows.tolist()

    def _read(self, rows: Ints, cells: Bytes, found: Layout) -> Iterator[Numbers]:
        """The points of metrics that share a layout, unless their names turn out odd."""
        header = _numbers_of(cells, found.header, self.headers, self.names.header)
        sets = [
            _numbers_of(cells, slot.attributes, self.attributes, self.names.attribute_set)
            for slot in found.slots
        ]
        odd = np.any([numbers == _UNREAD for numbers in (header, *sets)], axis=0)
        if odd.any():
            self.left += rows[odd].tolist()
            rows, cells, header = rows[~odd], cells[~odd], header[~odd]
            sets = [attributes[~odd] for attributes in sets]
        for slot, attributes in zip(found.slots, sets, strict=True):
            yield self._slot(rows, cells, slot, header, attributes)

    def _slot(
        self, rows: Ints, cells: Bytes, slot: Slot, header: Ints, attributes: Ints
    ) -> Numbers:
        return Numbers(
            rows,
            _fixed64(cells, slot.start),
            _fixed64(cells, slot.time),
            _fixed64(cells, slot.value),
            header,
            attributes,
            np.full(len(rows), self.names.form(slot.form)),
        )


def _groups(keys: Ints) -> Iterator[Ints]:
    """The rows of each key; keys past what sixteen bits can number share the last group."""
    if not len(keys):
        return
    codes = pa.array(keys).dictionary_encode().indices.to_numpy()
    short = np.minimum(codes, _MOST_KEYS - 1).astype(np.uint16)
    order = np.argsort(short, kind="stable")
    yield from np.split(order, np.flatnonzero(np.diff(short[order])) + 1)


def _fixed64(cells: Bytes, span: Span) -> Unsigned:
    if span.start == span.stop:
        return np.zeros(len(cells), np.uint64)
    return np.ascontiguousarray(cells[:, span.start : span.stop]).view("<u8")[:, 0]


def _numbers_of(
    cells: Bytes, span: Span, known: dict[bytes, int], number: Callable[[bytes], int]
) -> Ints:
    """The number of each row's name in `span`: every distinct one is read once."""
    size = span.stop - span.start
    if not size:
        return np.full(len(cells), _number_of(b"", known, number))
    part = np.ascontiguousarray(cells[:, span.start : span.stop])
    encoded = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(size), len(part), [None, pa.py_buffer(part)]
    ).dictionary_encode()
    distinct = encoded.dictionary.to_pylist()
    codes = np.array([_number_of(name, known, number) for name in distinct])
    return codes[encoded.indices.to_numpy()]


def _number_of(name: bytes, known: dict[bytes, int], number: Callable[[bytes], int]) -> int:
    if name not in known:
        known[name] = number(name)
    return known[name]
