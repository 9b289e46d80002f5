"""Reads metrics of one layout together, column by column from their bytes."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from quotaflow.udfs.otlp.arrays import Bytes, Codes, Ints, Unsigned
from quotaflow.udfs.otlp.attribute_sets import UNREAD, differing_bits, rows_of
from quotaflow.udfs.otlp.layout import ByteRange, Layout, layout
from quotaflow.udfs.otlp.numbers import Names, Numbers

_LEAST_GROUP = 4
_MOST_KNOWN = 4_096
_MOST_LAYOUTS = 16
_MOST_KEYS = 1 << 16
_NUMBER_BYTES = 8
_ABSENT = _HEADER = -1
_FACTOR = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, slots=True)
class _CachedLayout:
    """A layout, and the metric it was found in; bytes as integers, which compare at once."""

    layout: Layout
    mask: int
    metric: int
    header: int
    attributes: tuple[int, ...]


class _Layouts:
    """A bounded cache of layouts, so that a client's next push is not analysed again."""

    def __init__(self) -> None:
        self.by_key: dict[tuple[int, int], list[_CachedLayout]] = {}
        self.count = 0

    def layout_of(self, metric: bytes) -> _CachedLayout | None:
        """The layout of a metric, cached or new; None if only protobuf can read it."""
        whole = int.from_bytes(metric, "little")
        same_key = self.by_key.get((len(metric), metric[1 % len(metric)]), [])
        for candidate in same_key:
            if not (whole ^ candidate.metric) & candidate.mask:
                return candidate
        return self._add(metric)

    def _add(self, metric: bytes) -> _CachedLayout | None:
        new_layout = layout(metric)
        if new_layout is None:
            return None
        if self.count >= _MOST_KNOWN:
            self.by_key, self.count = {}, 0
        entry = _CachedLayout(
            new_layout,
            int.from_bytes(new_layout.mask, "little"),
            int.from_bytes(metric, "little"),
            _bits(new_layout.header),
            tuple(_bits(slot.attributes) for slot in new_layout.slots),
        )
        same_key = self.by_key.setdefault((len(metric), metric[1 % len(metric)]), [])
        same_key[_MOST_LAYOUTS - 1 :] = [entry]
        self.count += 1
        return entry


_CACHE = _Layouts()


def _bits(byte_range: ByteRange) -> int:
    return (1 << 8 * byte_range.stop) - (1 << 8 * byte_range.start)


_Slot = tuple[int, int, int, int, int, int]
"""Where start, time and value begin in a metric, and its numbers of header, attributes and form."""


@dataclass(frozen=True, slots=True)
class _Differing:
    """Rows of a group that differ in this part; `slot` is _HEADER for the header."""

    rows: Ints
    slot: int
    start: int


class Groups:
    """Groups metrics by layout and reads each group at once; `left` are those without a layout."""

    def __init__(self, metrics: pa.BinaryArray, names: Names) -> None:
        self.names = names
        offsets = np.frombuffer(metrics.buffers()[1], np.int32)
        self.offsets = offsets[metrics.offset : metrics.offset + len(metrics) + 1].astype(np.int64)
        data = metrics.buffers()[2]
        self.data: Bytes = np.frombuffer(data, np.uint8) if data else np.empty(0, np.uint8)
        self.left: list[int] = []
        self._groups: list[Ints] = []
        self._slots: list[_Slot] = []
        self._first_slots: list[int] = []
        self._differing: dict[tuple[bool, int], list[_Differing]] = {}
        self._headers: list[tuple[Ints, Codes]] = []
        self._attributes: list[tuple[Ints, Ints, Codes]] = []
        if len(metrics):
            self._read_all()
        self._group_of = self._numbered_groups()
        self._number_differing()
        first_slots = np.array([*self._first_slots, len(self._slots)], np.int64)
        self._first_slot = first_slots[self._group_of]
        self.counts = np.append(np.diff(first_slots), 0)[self._group_of]

    def numbers(self, counts: Ints, before: Ints) -> Numbers:
        """Columns of `counts` points of each metric, with `before` points before its own.

        Points of metrics that are left have their place, and no content.
        """
        metric, slot, at = np.arange(len(counts)), self._first_slot, self.offsets[:-1]
        if not (counts == 1).all():
            metric = np.repeat(metric, counts)
            slot, at = slot[metric], at[metric]
            slot += (np.arange(len(metric)) - before[metric]) * (self.counts > 0)[metric]
        none = (_ABSENT, _ABSENT, _ABSENT, 0, 0, 0)
        table = np.array([*self._slots, none], np.int32).T.copy()
        start, time, bits = (self._fixed64(at, column, slot) for column in table[:3])
        header, attributes, form = (column[slot] for column in table[3:])
        if self._headers:
            own = np.full(len(counts), UNREAD, np.int32)
            for rows, numbers in self._headers:
                own[rows] = numbers
            header = np.where(own[metric] == UNREAD, header, own[metric])
        for rows, slots, numbers in self._attributes:
            is_read = self.counts[rows] > 0
            attributes[(before[rows] + slots)[is_read]] = numbers[is_read]
        return Numbers(metric, start, time, bits, header, attributes, form)

    def _read_all(self) -> None:
        sizes = np.diff(self.offsets)
        order, starts, stops = _runs(self._keys(sizes))
        least, most = (f.reduceat(sizes[order], starts) for f in (np.minimum, np.maximum))
        is_left = (stops - starts < _LEAST_GROUP) | (least != most) | (least == 0)
        self.left += order[np.repeat(is_left, stops - starts)].tolist()
        for size, start, stop in np.stack([least, starts, stops], 1)[~is_left].tolist():
            rows = order[start:stop]
            self._group(rows, self._cells(self.offsets[rows], size))

    def _keys(self, sizes: Ints) -> Unsigned:
        """Size of the metric, length and end of the name, which mostly differ between metrics."""
        keys = sizes.view(np.uint64) << np.uint64(8)
        if len(self.data) >= _NUMBER_BYTES:
            starts, most = self.offsets[:-1], len(self.data) - _NUMBER_BYTES
            name_size = self.data[np.minimum(starts + 1, most)]
            end = np.clip(starts + 2 + name_size - _NUMBER_BYTES, 0, most)
            keys = (keys | name_size) * _FACTOR + self._windows(_NUMBER_BYTES)[end].view("<u8")
        return keys

    def _windows(self, size: int) -> Any:
        """The bytes from each position on."""
        count = len(self.data) - size + 1
        return np.ndarray((count,), np.dtype((np.void, size)), self.data, strides=(1,))

    def _fixed64(self, at: Ints, start_of: Codes, slot: Ints) -> Unsigned:
        """The eight bytes that begin `start_of[slot]` bytes after each position, zero if absent."""
        if (start_of == _ABSENT).all():
            return np.zeros(len(at), np.uint64)
        start = start_of[slot]
        numbers: Unsigned = self._windows(_NUMBER_BYTES)[at + start].view("<u8")
        if self.left or (start_of[:-1] == _ABSENT).any():
            numbers[start == _ABSENT] = 0
        return numbers

    def _cells(self, starts: Ints, size: int) -> Bytes:
        """The bytes at these positions as a matrix."""
        cells: Bytes = self._windows(size)[starts].view(np.uint8).reshape(len(starts), size)
        return cells

    def _group(self, rows: Ints, cells: Bytes) -> None:
        for _ in range(_MOST_LAYOUTS):
            if len(rows) < _LEAST_GROUP:
                break
            first = cells[0].tobytes()
            cached = _CACHE.layout_of(first)
            if cached is None:
                self.left.append(int(rows[0]))
                rows, cells = rows[1:], cells[1:]
                continue
            differing = differing_bits(cells)
            if not differing & cached.mask:
                self._add(rows, first, cached, differing)
                return
            mask = np.frombuffer(cached.layout.mask, np.uint8)
            other = ((cells ^ cells[0]) & mask).any(axis=1)
            self._add(rows[~other], first, cached, differing_bits(cells[~other]))
            rows, cells = rows[other], cells[other]
        self.left += rows.tolist()

    def _add(self, rows: Ints, metric: bytes, cached: _CachedLayout, differing: int) -> None:
        """A group of metrics that have the layout of `metric`, and differ from it in some bits."""
        slots, read_set = cached.layout.slots, self.names.attributes.number
        parts = [(cached.layout.header, cached.header, self.names.header)]
        pairs = zip(slots, cached.attributes, strict=True)
        parts += [(slot.attributes, bits, read_set) for slot, bits in pairs]
        numbers, differing_parts = [], []
        for index, (at, bits, number) in enumerate(parts, _HEADER):
            if differing & bits:
                differing_parts.append((at, _Differing(rows, index, at.start)))
            numbers.append(0 if differing & bits else number(metric[at.start : at.stop]))
        if UNREAD in numbers:
            self.left += rows.tolist()
            return
        for at, part in differing_parts:
            key = part.slot == _HEADER, at.stop - at.start
            self._differing.setdefault(key, []).append(part)
        self._groups.append(rows)
        self._first_slots.append(len(self._slots))
        for slot, attributes in zip(slots, numbers[1:], strict=True):
            starts = _start(slot.start), _start(slot.time), _start(slot.value)
            self._slots.append((*starts, numbers[0], attributes, self.names.form(slot.form)))

    def _numbered_groups(self) -> Ints:
        """The number of each metric's group; metrics that are left have that after the last."""
        group_of = np.full(len(self.offsets) - 1, len(self._groups))
        if self._groups:
            numbers = np.repeat(np.arange(len(self._groups)), list(map(len, self._groups)))
            group_of[np.concatenate(self._groups)] = numbers
        return group_of

    def _number_differing(self) -> None:
        """The numbers of parts that differ; a metric with one that cannot be read is left."""
        unread = [np.empty(0, np.int64)]
        for (is_header, size), parts in self._differing.items():
            starts = np.concatenate([self.offsets[part.rows] + part.start for part in parts])
            distinct, indices = _distinct(self._cells(starts, size))
            rows = np.concatenate([part.rows for part in parts])
            if is_header:
                headers = np.array(
                    [self.names.header(each) for each in rows_of(distinct)], np.int32
                )
                numbers = headers[indices]
                self._headers.append((rows, numbers))
            else:
                numbers = self.names.attributes.numbers(distinct)[indices]
                sizes = [len(part.rows) for part in parts]
                slots = np.repeat([part.slot for part in parts], sizes)
                self._attributes.append((rows, slots, numbers))
            unread.append(rows[numbers == UNREAD])
        odd = np.unique(np.concatenate(unread))
        self._group_of[odd] = len(self._groups)
        self.left += odd.tolist()


def _runs(keys: Unsigned) -> tuple[Ints, Ints, Ints]:
    """The rows in the order of their keys, and where the rows of each key start and stop.

    Keys past what sixteen bits can number share the last run.
    """
    codes = pa.array(keys).dictionary_encode().indices.to_numpy()
    short = np.minimum(codes, _MOST_KEYS - 1).astype(np.uint16)
    order = np.argsort(short, kind="stable")
    stops = np.append(np.flatnonzero(np.diff(short[order])) + 1, len(order))
    return order, np.append(0, stops[:-1]), stops


def _start(byte_range: ByteRange) -> int:
    return byte_range.start if byte_range.stop > byte_range.start else _ABSENT


def _distinct(cells: Bytes) -> tuple[Bytes, Codes]:
    """The distinct rows, and the number of each row among them."""
    size = cells.shape[1]
    encoded = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(size), len(cells), [None, pa.py_buffer(cells)]
    ).dictionary_encode()
    distinct = np.frombuffer(encoded.dictionary.buffers()[1], np.uint8)
    return (
        distinct[: len(encoded.dictionary) * size].reshape(-1, size),
        encoded.indices.to_numpy(),
    )
