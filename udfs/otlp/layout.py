"""The layout of an encoded metric: where its numbers and names lie in the bytes.

Clients push the same metrics again and again: between two pushes only timestamps and values differ,
and OTLP gives these eight bytes each. So one metric is read field by field, and every metric with
the same bytes in all lengths and tags has the same layout: its numbers lie in the same places. A
metric without a layout (`None`) is read by protobuf itself.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from quotaflow.udfs.otlp.varints import varint

LEN, _FIXED64, _VARINT = 2, 1, 0
_NAME, _DESCRIPTION, _UNIT = 1, 2, 3
_GAUGE, _SUM = 5, 7
_KINDS = {_GAUGE: "gauge", _SUM: "sum"}
_POINTS, _TEMPORALITY, _MONOTONIC = 1, 2, 3
_START, _TIME, _DOUBLE, _INT, POINT_ATTRIBUTES, _FLAGS = 2, 3, 4, 6, 7, 8
_CONTINUED = 0x80
_MOST_POINTS = 64
_LENGTH_BYTES = 3


@dataclass(frozen=True, slots=True)
class Form:
    """The properties of a number besides time, place, and value, the same for all of a layout."""

    kind: str
    temporality: int = 0
    is_monotonic: bool | None = None
    flags: int = 0
    number: str | None = None


@dataclass(frozen=True, slots=True)
class ByteRange:
    """Bytes `start` to `stop` of the metric; empty for a field that the client omitted."""

    start: int = 0
    stop: int = 0


@dataclass(frozen=True, slots=True)
class Slot:
    """Where one data point's times, value and attributes lie, and the form it has."""

    start: ByteRange
    time: ByteRange
    value: ByteRange
    attributes: ByteRange
    form: Form


@dataclass(frozen=True, slots=True)
class Layout:
    """Where a metric's header (name, description, unit) and its points lie.

    `mask` is 0xff where another metric must have the same byte to share the layout.
    """

    header: ByteRange
    slots: tuple[Slot, ...]
    mask: bytes


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a message: where it begins, and where its bytes are after tag and length."""

    number: int
    wire_type: int
    begin: int
    byte_range: ByteRange
    value: int


class _UnusualError(ValueError):
    """Legal or not, protobuf must read it."""


def layout(metric: bytes) -> Layout | None:
    """The layout of an encoded Metric; None if only protobuf should read it.

    The usual encoding is: a gauge or sum, every field once and in the order of its number,
    no exemplars, no unknown fields, one-byte tags.
    """
    try:
        return _metric(metric)
    except (ValueError, IndexError):
        return None


def _metric(metric: bytes) -> Layout:
    *header, form = fields_of(metric, 0, len(metric))
    if any(f.number not in (_NAME, _DESCRIPTION, _UNIT) or f.wire_type != LEN for f in header):
        raise _UnusualError
    if form.number not in _KINDS or form.wire_type != LEN:
        raise _UnusualError
    slots = _slots(metric, form)
    blanks = [ByteRange(0, form.begin)]
    blanks += [s for slot in slots for s in (slot.start, slot.time, slot.value, slot.attributes)]
    mask = bytearray(b"\xff" * len(metric))
    for blank in blanks:
        mask[blank.start : blank.stop] = bytes(blank.stop - blank.start)
    return Layout(blanks[0], slots, bytes(mask))


def _slots(metric: bytes, form: Field) -> tuple[Slot, ...]:
    fields = list(fields_of(metric, form.byte_range.start, form.byte_range.stop))
    points = [f for f in fields if f.number == _POINTS and f.wire_type == LEN]
    rest = {f.number: f.value for f in fields if f.wire_type == _VARINT}
    allowed = {_TEMPORALITY, _MONOTONIC} if form.number == _SUM else set()
    if len(points) + len(rest) != len(fields) or not rest.keys() <= allowed:
        raise _UnusualError
    if not 1 <= len(points) <= _MOST_POINTS:
        raise _UnusualError
    is_monotonic = bool(rest.get(_MONOTONIC)) if form.number == _SUM else None
    kind = _KINDS[form.number]
    return tuple(
        _slot(metric, point, kind, rest.get(_TEMPORALITY, 0), is_monotonic) for point in points
    )


def _slot(
    metric: bytes, point: Field, kind: str, temporality: int, is_monotonic: bool | None
) -> Slot:
    fields = list(fields_of(metric, point.byte_range.start, point.byte_range.stop))
    attributes = [f for f in fields if f.number == POINT_ATTRIBUTES and f.wire_type == LEN]
    numbers = {f.number: f.byte_range for f in fields if f.wire_type == _FIXED64}
    flags = [f.value for f in fields if f.number == _FLAGS and f.wire_type == _VARINT]
    order = [f.number for f in fields]
    if order != sorted(order) or len(attributes) + len(numbers) + len(flags) != len(fields):
        raise _UnusualError
    values = [number for number in (_DOUBLE, _INT) if number in numbers]
    if not numbers.keys() <= {_START, _TIME, _DOUBLE, _INT} or len(values) > 1 or len(flags) > 1:
        raise _UnusualError
    number = {(): None, (_DOUBLE,): "double", (_INT,): "int"}[tuple(values)]
    return Slot(
        numbers.get(_START, ByteRange()),
        numbers.get(_TIME, ByteRange()),
        numbers[values[0]] if values else ByteRange(),
        ByteRange(attributes[0].begin, attributes[-1].byte_range.stop)
        if attributes
        else ByteRange(),
        Form(kind, temporality, is_monotonic, flags[0] if flags else 0, number),
    )


def fields_of(data: bytes, at: int, end: int) -> Iterator[Field]:
    """The fields of one message; raises where a tag, length or wire type is unusual."""
    while at < end:
        begin, tag = at, data[at]
        number, wire_type = tag >> 3, tag & 7
        if tag & _CONTINUED or wire_type not in (_VARINT, _FIXED64, LEN) or not number:
            raise _UnusualError
        at += 1
        size = value = 0
        if wire_type == _FIXED64:
            size = 8
        else:
            value, at = varint(data, at, _LENGTH_BYTES)
            size = value if wire_type == LEN else 0
        byte_range = ByteRange(at, at + size)
        at = byte_range.stop
        if at > end:
            raise _UnusualError
        yield Field(number, wire_type, begin, byte_range, value)
