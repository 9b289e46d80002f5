"""Reads metrics of one layout together, column by column from their bytes."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from quotaflow.udfs.otlp.layout import ByteRange, Layout, Slot, layout
from quotaflow.udfs.otlp.numbers import UNREAD, Codes, Names, Numbers, Part, Unsigned
from quotaflow.udfs.otlp.payloads import Ints

Bytes = npt.NDArray[np.uint8]

_LEAST_GROUP = 4
_MOST_KNOWN = 4_096
_MOST_LAYOUTS = 16
_MOST_KEYS = 1 << 16


@dataclass(frozen=True, slots=True)
class _CachedLayout:
    """A layout, where its fixed bytes are, and what they are."""

    layout: Layout
    fixed: Ints
    bytes: Bytes


class _Layouts:
    """A bounded cache of layouts, so that a client's next push is not analysed again."""

    def __init__(self) -> None:
        self.by_key: dict[tuple[int, int], list[_CachedLayout]] = {}
        self.count = 0

    def layout_of(self, metric: Bytes) -> _CachedLayout | None:
        """The layout of a metric, cached or new; None if only protobuf can read it."""
        candidates = self.by_key.get((len(metric), int(metric[1 % len(metric)])), [])
        for candidate in candidates:
            if (metric[candidate.fixed] == candidate.bytes).all():
                return candidate
        return self._add(metric)

    def _add(self, metric: Bytes) -> _CachedLayout | None:
        new_layout = layout(metric.tobytes())
        if new_layout is None:
            return None
        if self.count >= _MOST_KNOWN:
            self.by_key, self.count = {}, 0
        fixed = np.flatnonzero(np.frombuffer(new_layout.mask, np.uint8))
        entry = _CachedLayout(new_layout, fixed, metric[fixed])
        same_key = self.by_key.setdefault((len(metric), int(metric[1 % len(metric)])), [])
        same_key[_MOST_LAYOUTS - 1 :] = [entry]
        self.count += 1
        return entry


_CACHE = _Layouts()


class Groups:
    """Groups metrics by layout and reads each group at once; `left` are those without a layout."""

    def __init__(self, metrics: pa.BinaryArray, names: Names) -> None:
        self.names = names
        self.left: list[int] = []
        offsets = np.frombuffer(metrics.buffers()[1], np.int32)
        self.offsets = offsets[metrics.offset : metrics.offset + len(metrics) + 1].astype(np.int64)
        data = metrics.buffers()[2]
        self.data: Bytes = np.frombuffer(data, np.uint8) if data else np.empty(0, np.uint8)
        self.headers: dict[bytes, int] = {}
        self.attributes: dict[bytes, int] = {}

    def parts(self) -> Iterator[Part]:
        """The points of every group."""
        sizes = np.diff(self.offsets)
        for rows in _groups(self._keys(sizes)):
            size = int(sizes[rows[0]])
            if len(rows) < _LEAST_GROUP or not size or (sizes[rows] != size).any():
                self.left += rows.tolist()
            else:
                yield from self._group(rows, self._cells(rows, size))

    def _keys(self, sizes: Ints) -> Ints:
        """Size and length of the name, which mostly differ between layouts."""
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

    def _group(self, rows: Ints, cells: Bytes) -> Iterator[Part]:
        for _ in range(_MOST_LAYOUTS):
            if len(rows) < _LEAST_GROUP:
                break
            cached = _CACHE.layout_of(cells[0])
            if cached is None:
                self.left.append(int(rows[0]))
                rows, cells = rows[1:], cells[1:]
                continue
            same = cells[:, cached.fixed] == cached.bytes
            if same.all():
                yield from self._read(rows, cells, cached.layout)
                return
            other = ~same.all(axis=1)
            yield from self._read(rows[~other], cells[~other], cached.layout)
            rows, cells = rows[other], cells[other]
        self.left += rows.tolist()

    def _read(self, rows: Ints, cells: Bytes, shared: Layout) -> Iterator[Part]:
        """The points of metrics that share a layout, except those whose names cannot be read."""
        header = _numbers_of(cells, shared.header, self.headers, self.names.header)
        sets = [
            _numbers_of(cells, slot.attributes, self.attributes, self.names.attribute_set)
            for slot in shared.slots
        ]
        if any(numbers.min() == UNREAD for numbers in (header, *sets)):
            odd = np.any([numbers == UNREAD for numbers in (header, *sets)], axis=0)
            self.left += rows[odd].tolist()
            rows, cells, header = rows[~odd], cells[~odd], header[~odd]
            sets = [attributes[~odd] for attributes in sets]
        for index, (slot, attributes) in enumerate(zip(shared.slots, sets, strict=True)):
            yield Part(self._slot(rows, cells, slot, header, attributes), index)

    def _slot(
        self, rows: Ints, cells: Bytes, slot: Slot, header: Codes, attributes: Codes
    ) -> Numbers:
        return Numbers(
            rows,
            _fixed64(cells, slot.start),
            _fixed64(cells, slot.time),
            _fixed64(cells, slot.value),
            header,
            attributes,
            np.full(len(rows), self.names.form(slot.form), np.int32),
        )


def _groups(keys: Ints) -> Iterator[Ints]:
    """The rows of each key; keys past what sixteen bits can number share the last group."""
    if not len(keys):
        return
    codes = pa.array(keys).dictionary_encode().indices.to_numpy()
    short = np.minimum(codes, _MOST_KEYS - 1).astype(np.uint16)
    order = np.argsort(short, kind="stable")
    yield from np.split(order, np.flatnonzero(np.diff(short[order])) + 1)


def _fixed64(cells: Bytes, byte_range: ByteRange) -> Unsigned:
    if byte_range.start == byte_range.stop:
        return np.zeros(len(cells), np.uint64)
    return np.ascontiguousarray(cells[:, byte_range.start : byte_range.stop]).view("<u8")[:, 0]


def _numbers_of(
    cells: Bytes, byte_range: ByteRange, numbers: dict[bytes, int], number: Callable[[bytes], int]
) -> Codes:
    """The number of each row's name in `byte_range`: every distinct name is read once."""
    size = byte_range.stop - byte_range.start
    if not size:
        return np.full(len(cells), _number_of(b"", numbers, number), np.int32)
    part = np.ascontiguousarray(cells[:, byte_range.start : byte_range.stop])
    if (part == part[0]).all():
        return np.full(len(part), _number_of(part[0].tobytes(), numbers, number), np.int32)
    encoded = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(size), len(part), [None, pa.py_buffer(part)]
    ).dictionary_encode()
    distinct = encoded.dictionary.to_pylist()
    codes = np.array([_number_of(name, numbers, number) for name in distinct], np.int32)
    return np.asarray(codes[encoded.indices.to_numpy()])


def _number_of(name: bytes, numbers: dict[bytes, int], number: Callable[[bytes], int]) -> int:
    if name not in numbers:
        numbers[name] = number(name)
    return numbers[name]
