"""How many messages a payload holds, told from its bytes: protobuf makes an object of each.

An empty message takes two bytes on the wire and forty times that in memory, so a payload is
counted before anything parses it.
"""

from functools import cache

import numpy as np
from google.protobuf.descriptor import Descriptor
from opentelemetry.proto.metrics.v1 import metrics_pb2

from quotaflow.udfs.otlp.varints import varint

_WIRE_TYPE_BITS, _WIRE_TYPE = 3, 7
_VARINT, _LEN = 0, 2
_FIXED_BYTES = {1: 8, 5: 4}
_LEAST_BYTES = 2
_VARINT_BYTES = 10
_DEEPEST = 100
Fields = dict[int, "Fields"]
"""The fields that are messages, by number, each with its own."""


def more_messages_than(most: int, payload: bytes) -> bool:
    """Whether the payload holds more messages than `most`, those within messages counted too.

    A message that is broken, or deeper than protobuf goes, counts as far as it can be read.
    """
    if len(payload) <= _LEAST_BYTES * most:
        return False
    # Every tag of a message has this wire type in its first byte: fewer such bytes settle it.
    begins = np.frombuffer(payload, np.uint8) & _WIRE_TYPE == _LEN
    return int(np.count_nonzero(begins)) > most and _count(payload, most) > most


def _count(data: bytes, most: int) -> int:
    """How many messages there are, counted until they are more than `most`.

    The fields of a group (deprecated, and none of OTLP's) count as if they stood outside of it.
    """
    seen, at, end, fields = 0, 0, len(data), _fields()
    outer: list[tuple[int, Fields]] = []
    while seen <= most:
        if at >= end:
            if not outer:
                break
            # Whatever a broken message claims, the next one begins where it was said to end.
            at, (end, fields) = end, outer.pop()
            continue
        try:
            at, number, size = _field(data, at)
        except (ValueError, IndexError):
            at = end
            continue
        inner = fields.get(number)
        if size is None or inner is None or at + size > end or len(outer) == _DEEPEST:
            at += size or 0
            continue
        seen += 1
        if size:
            outer.append((end, fields))
            end, fields = at + size, inner
    return seen


def _field(data: bytes, at: int) -> tuple[int, int, int | None]:
    """Where a field's bytes begin, its number and its size; of a number where it ends, no size."""
    tag, at = varint(data, at, _VARINT_BYTES)
    wire_type = tag & _WIRE_TYPE
    if wire_type == _LEN:
        size, at = varint(data, at, _VARINT_BYTES)
        return at, tag >> _WIRE_TYPE_BITS, size
    if wire_type == _VARINT:
        _, at = varint(data, at, _VARINT_BYTES)
    return at + _FIXED_BYTES.get(wire_type, 0), tag >> _WIRE_TYPE_BITS, None


@cache
def _fields() -> Fields:
    return _fields_of(metrics_pb2.MetricsData.DESCRIPTOR, {})


def _fields_of(message: Descriptor, known: dict[str, Fields]) -> Fields:
    if message.full_name not in known:
        fields = known[message.full_name] = Fields()
        for field in message.fields:
            if field.message_type:
                fields[field.number] = _fields_of(field.message_type, known)
    return known[message.full_name]
