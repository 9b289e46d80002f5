"""Counts the messages in the bytes of a payload, because protobuf makes an object of each.

An empty message takes two bytes on the wire and forty times that in memory, so a payload is
counted before it is parsed.
"""

from functools import cache

import numpy as np
from google.protobuf.descriptor import Descriptor
from opentelemetry.proto.metrics.v1 import metrics_pb2

from quotaflow.udfs.otlp.varints import varint

_WIRE_TYPE_BITS, _WIRE_TYPE = 3, 7
_VARINT, _LEN = 0, 2
_FIXED_BYTES = {1: 8, 5: 4}
LEAST_BYTES = 2
"""The size of the smallest message in another one."""
_VARINT_BYTES = 10
_DEEPEST = 100
Fields = dict[int, "Fields"]
"""The fields that are messages, by number, each with its own."""


def more_messages_than(most: int, payload: bytes) -> bool:
    """Whether the payload has more messages than `most`, nested ones included.

    A message that is broken, or nested deeper than protobuf reads, counts as far as it is readable.
    """
    if len(payload) <= LEAST_BYTES * most:
        return False
    # The tag of a message has this wire type in its first byte: few such bytes decide it.
    begins = np.frombuffer(payload, np.uint8) & _WIRE_TYPE == _LEN
    return int(np.count_nonzero(begins)) > most and _count(payload, most) > most


def _count(data: bytes, most: int) -> int:
    """The number of messages, counted until it exceeds `most`.

    Fields of a group (deprecated, and not in OTLP) count as if they were outside of it.
    """
    seen, at, end, fields = 0, 0, len(data), _fields()
    outer: list[tuple[int, Fields]] = []
    while seen <= most:
        if at >= end:
            if not outer:
                break
            # Even if a message is broken, the next one begins where this one should end.
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
    """Where a field's bytes begin, its number, and its size; for a varint its end, and no size."""
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


def _fields_of(message: Descriptor, visited: dict[str, Fields]) -> Fields:
    if message.full_name not in visited:
        fields = visited[message.full_name] = Fields()
        for field in message.fields:
            if field.message_type:
                fields[field.number] = _fields_of(field.message_type, visited)
    return visited[message.full_name]
