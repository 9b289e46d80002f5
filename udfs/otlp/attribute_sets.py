"""The attribute sets of a batch: every distinct one once, by number, as Arrow columns.

Few sets are read one by one and remembered for the next batch. Many sets of one layout (the same
keys, values of the same lengths) are read together from their bytes, column by column.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quotaflow.schemas.table import STRING
from quotaflow.udfs.otlp import remembered
from quotaflow.udfs.otlp.arrays import Bytes, Codes, Flags, Ints, Unsigned
from quotaflow.udfs.otlp.attributes import Shape, Tags, digest_of, digest_part
from quotaflow.udfs.otlp.codecs import Limits
from quotaflow.udfs.otlp.layout import LEN, POINT_ATTRIBUTES, ByteRange, fields_of

MAP = pa.map_(STRING, STRING)

UNREAD = -1
"""The number of bytes that are not as expected."""

_LEAST_TOGETHER = 32
_MOST_LAYOUTS = 16
_BLOCK = 16
_ASCII_END = 0x80
_KEY, _VALUE, _STRING_VALUE = 1, 2, 1


class ReadSets:
    """Sets that were read one by one."""

    def __init__(self, sets: Iterable[Tags] = ()) -> None:
        self.sets = list(sets)

    @property
    def keys(self) -> frozenset[str]:
        """Every key of any set."""
        return frozenset(key for tags in self.sets for key, _ in tags)

    def __len__(self) -> int:
        return len(self.sets)

    def maps(self) -> Any:
        """The sets as Arrow maps."""
        return pa.array(self.sets, MAP)

    def column(self, key: str) -> Any:
        """The value of this key in each set, null where there is none or an empty text."""
        return pa.array([tags.by_key.get(key) or None for tags in self.sets], STRING)

    def characters(self) -> Ints:
        """The total length of each set's texts."""
        return np.array([tags.characters for tags in self.sets], np.int64)

    def digests(self) -> Unsigned:
        """64 bits that identify each set."""
        return np.array([tags.digest for tags in self.sets], np.uint64)


class ShapedSets:
    """Sets of one shape: a row of `values` has the values of a set, in ASCII and end to end."""

    def __init__(self, shape: Shape, values: Bytes) -> None:
        self.shape = shape
        self.values = np.ascontiguousarray(values)
        ends = np.cumsum(shape[1]).tolist()
        self.ranges = [ByteRange(e - w, e) for e, w in zip(ends, shape[1], strict=True)]

    @property
    def keys(self) -> frozenset[str]:
        """Every key of any set."""
        return frozenset(self.shape[0])

    def __len__(self) -> int:
        return len(self.values)

    def maps(self) -> Any:
        """The sets as Arrow maps."""
        count, keys = len(self), [key.encode() for key in self.shape[0]]
        offsets = np.arange(0, (count + 1) * len(keys), len(keys), dtype=np.int32)
        return pa.MapArray.from_arrays(
            pa.array(offsets),
            _strings([len(key) for key in keys], count, b"".join(keys) * count),
            _strings(self.shape[1], count, self.values),
        )

    def column(self, key: str) -> Any:
        """The value of this key in each set, null where there is none or an empty text."""
        if key not in self.shape[0]:
            return pa.nulls(len(self), STRING)
        at = self.ranges[self.shape[0].index(key)]
        if at.start == at.stop:
            return pa.nulls(len(self), STRING)
        values = np.ascontiguousarray(self.values[:, at.start : at.stop])
        return _strings([at.stop - at.start], len(self), values)

    def characters(self) -> Ints:
        """The total length of each set's texts."""
        total = sum(map(len, self.shape[0])) + sum(self.shape[1])
        return np.full(len(self), total, np.int64)

    def digests(self) -> Unsigned:
        """64 bits that identify each set."""
        parts, data = [], self.values
        for key, at in zip(self.shape[0], self.ranges, strict=True):
            size = at.stop - at.start
            parts += [_repeated(digest_part(key) + b"%d:" % size, len(self))]
            parts += [data[:, at.start : at.stop]]
        texts = np.hstack(parts) if parts else np.empty((len(self), 0), np.uint8)
        return np.array([digest_of(text) for text in rows_of(texts)], np.uint64)


def _repeated(text: bytes, count: int) -> Bytes:
    return np.broadcast_to(np.frombuffer(text, np.uint8), (count, len(text)))


def _strings(sizes: Sequence[int], count: int, data: Any) -> Any:
    """Strings that lie end to end in `data`: `count` times some of these sizes."""
    offsets = np.empty(len(sizes) * count + 1, np.int32)
    rows, start = np.arange(count + 1, dtype=np.int32) * np.int32(sum(sizes)), 0
    offsets[-1] = rows[-1]
    for index, size in enumerate(sizes):
        offsets[index : -1 : len(sizes)] = rows[:-1] + np.int32(start)
        start += size
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(STRING, len(sizes) * count, buffers)


def repeated(values: Any, count: int) -> Any:
    """Strings or a map over and over: the bytes are copied in blocks, not text by text."""
    if values.type == MAP:
        if values.items.null_count:
            return values.take(pa.array(np.zeros(count, np.int32)))
        offsets = np.arange(count + 1, dtype=np.int32) * np.int32(len(values.keys))
        keys, items = (repeated(part, count) for part in (values.keys, values.items))
        return pa.MapArray.from_arrays(pa.array(offsets), keys, items)
    data = b"".join(text.encode() for text in values.to_pylist())
    sizes = pc.binary_length(values).to_pylist()
    return _strings(sizes, count, data * count)


def rows_of(cells: Bytes) -> list[bytes]:
    """The rows of a matrix as bytes."""
    data, size = cells.tobytes(), cells.shape[1]
    if not size:
        return [b""] * len(cells)
    return [data[at : at + size] for at in range(0, len(data), size)]


@dataclass(frozen=True, slots=True)
class SetLayout:
    """Where the values of encoded attributes are, in the order of their keys.

    `mask` is 0xff where another set must have the same byte to share the layout.
    """

    keys: tuple[str, ...]
    values: tuple[ByteRange, ...]
    mask: bytes

    @property
    def shape(self) -> Shape:
        """The shape of every set of this layout."""
        return self.keys, tuple(at.stop - at.start for at in self.values)


def set_layout(encoded: bytes, field: int, limits: Limits) -> SetLayout | None:
    """The layout of attributes, encoded as this field; None if only protobuf should read them.

    The usual encoding is: every value is a string, no key comes twice, nothing is over a limit.
    """
    try:
        sent = [_pair(encoded, each, field) for each in fields_of(encoded, 0, len(encoded))]
    except (ValueError, IndexError):
        return None
    pairs = dict(sorted(sent, key=lambda pair: pair[0]))
    mask = bytearray(b"\xff" * len(encoded))
    for at in pairs.values():
        mask[at.start : at.stop] = bytes(at.stop - at.start)
    longest = max((max(len(key), at.stop - at.start) for key, at in pairs.items()), default=0)
    if len(pairs) < len(sent) or len(pairs) > limits.attributes or longest > limits.string_chars:
        return None
    return SetLayout(tuple(pairs), tuple(pairs.values()), bytes(mask))


def _pair(encoded: bytes, attribute: Any, field: int) -> tuple[str, ByteRange]:
    _expect([attribute], field)
    parts = list(fields_of(encoded, attribute.byte_range.start, attribute.byte_range.stop))
    _expect(parts, _KEY, _VALUE)
    key, value = (part.byte_range for part in parts)
    texts = list(fields_of(encoded, value.start, value.stop))
    _expect(texts, _STRING_VALUE)
    return encoded[key.start : key.stop].decode(), texts[0].byte_range


def _expect(sent: list[Any], *numbers: int) -> None:
    if [(field.number, field.wire_type) for field in sent] != [(n, LEN) for n in numbers]:
        raise ValueError("another encoding")


class AttributeSets:
    """Numbers attribute sets: equal ones have one number, however they were encoded.

    They are encoded as `field` of a message, which `read` reads.
    """

    def __init__(
        self,
        limits: Limits,
        field: int = POINT_ATTRIBUTES,
        read: Callable[[bytes, Limits], Tags | None] = remembered.attributes,
    ) -> None:
        self.limits = limits
        self.field = field
        self._read = read
        self._by_tags = dict[Tags, int]()
        self._by_shape = dict[Shape, dict[bytes, int]]()
        self._parts = list[ReadSets | ShapedSets]()
        self._count = 0

    def number_of(self, tags: Tags) -> int:
        """The number of a set."""
        number = self._by_tags.get(tags)
        if number is None:
            numbers = self._by_shape.setdefault(tags.shape, {})
            number = self._by_tags[tags] = numbers.setdefault(tags.content, self._count)
            if number == self._count:
                self._count += 1
                self._last_read().sets.append(tags)
        return number

    def _last_read(self) -> ReadSets:
        """The last part, a new one if that has sets of one shape: numbers are in order."""
        last = self._parts[-1] if self._parts else None
        if not isinstance(last, ReadSets):
            last = ReadSets()
            self._parts.append(last)
        return last

    def number(self, encoded: bytes) -> int:
        """The number of encoded attributes; UNREAD if the bytes hold anything else."""
        tags = self._read(encoded, self.limits)
        return UNREAD if tags is None else self.number_of(tags)

    def numbers_of(self, encoded: Any) -> Codes:
        """The numbers of distinct encoded sets, an Arrow array."""
        if len(encoded) < _LEAST_TOGETHER:
            return np.array([self.number(each) for each in encoded.to_pylist()], np.int32)
        sizes = pc.binary_length(encoded).to_numpy()
        numbers, order = np.empty(len(sizes), np.int32), np.argsort(sizes, kind="stable")
        for rows in np.split(order, np.flatnonzero(np.diff(sizes[order])) + 1):
            data = b"".join(encoded.take(pa.array(rows)).to_pylist())
            cells = np.frombuffer(data, np.uint8).reshape(len(rows), sizes[rows[0]])
            numbers[rows] = self.numbers(cells)
        return numbers

    def numbers(self, cells: Bytes) -> Codes:
        """The numbers of distinct encoded sets, one a row; UNREAD where it is not one."""
        numbers = np.empty(len(cells), np.int32)
        rows = np.arange(len(cells))
        for _ in range(_MOST_LAYOUTS):
            if len(rows) < _LEAST_TOGETHER:
                break
            first, left = cells[rows[0]], np.ones(len(rows), np.bool_)
            layout = set_layout(first.tobytes(), self.field, self.limits)
            if layout is None:
                numbers[rows[0]], left[0] = self.number(first.tobytes()), False
            else:
                same, values = _of_layout(cells[rows], layout)
                numbers[rows[same]] = self._shaped(layout.shape, values)
                left = ~same
                if left[0]:
                    numbers[rows[0]], left[0] = self.number(first.tobytes()), False
            rows = rows[left]
        numbers[rows] = [self.number(encoded) for encoded in rows_of(cells[rows])]
        return numbers

    def _shaped(self, shape: Shape, values: Bytes) -> Codes:
        """The numbers of distinct sets of one shape."""
        numbers, before = self._by_shape.setdefault(shape, {}), self._count
        contents = rows_of(values)
        if numbers:
            is_new = np.array([content not in numbers for content in contents], np.bool_)
            values = values[is_new]
        added = [content for content in contents if content not in numbers] if numbers else contents
        self._count += len(added)
        numbers.update(zip(added, range(before, self._count), strict=True))
        if added:
            self._parts.append(ShapedSets(shape, values))
        if len(added) == len(contents):
            return np.arange(before, self._count, dtype=np.int32)
        return np.array([numbers[content] for content in contents], np.int32)

    @property
    def keys(self) -> frozenset[str]:
        """Every key of any set."""
        return frozenset[str]().union(*(part.keys for part in self._parts))

    def __len__(self) -> int:
        return self._count

    def maps(self) -> Any:
        """The sets as Arrow maps."""
        return _joined([part.maps() for part in self._parts], MAP)

    def column(self, key: str) -> Any:
        """The value of this key in each set, null where there is none or an empty text."""
        return _joined([part.column(key) for part in self._parts], STRING)

    def characters(self) -> Ints:
        """The total length of each set's texts."""
        return np.concatenate([np.empty(0, np.int64), *(p.characters() for p in self._parts)])

    def digests(self) -> Unsigned:
        """64 bits that identify each set."""
        return np.concatenate([np.empty(0, np.uint64), *(p.digests() for p in self._parts)])


def _of_layout(cells: Bytes, layout: SetLayout) -> tuple[Flags, Bytes]:
    """Which rows have this layout and ASCII values, and their values end to end."""
    at = [np.arange(value.start, value.stop) for value in layout.values]
    values, same = cells.take(np.concatenate(at), axis=1), np.ones(len(cells), np.bool_)
    if differing_bits(cells) & int.from_bytes(layout.mask, "little"):
        mask = np.frombuffer(layout.mask, np.uint8)
        same = ~((cells ^ cells[0]) & mask).any(axis=1)
    if values.max(initial=0) >= _ASCII_END:
        same &= (values < _ASCII_END).all(axis=1)
    return same, values if same.all() else values[same]


def differing_bits(cells: Bytes) -> int:
    """The bits that are not the same in all rows."""
    count, size = cells.shape
    if count < _BLOCK * _BLOCK:
        bits = np.bitwise_or.reduce(cells ^ cells[0], axis=0)
    else:
        # One long row of several is faster than several short ones.
        blocks, last = cells[: count // _BLOCK * _BLOCK].reshape(-1, _BLOCK * size), cells[-_BLOCK:]
        either, both = (
            f(
                f.reduce(f.reduce(blocks, axis=0).reshape(_BLOCK, size), axis=0),
                f.reduce(last, axis=0),
            )
            for f in (np.bitwise_or, np.bitwise_and)
        )
        bits = either ^ both
    return int.from_bytes(bits.tobytes(), "little")


def _joined(parts: list[Any], type_: pa.DataType) -> Any:
    return pa.concat_arrays(parts) if parts else pa.array([], type_)
