"""Splits payloads into resources, scopes, and metrics, and finds unreadable payloads."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from google.protobuf.message import DecodeError, Message
from google.protobuf.unknown_fields import UnknownFieldSet
from opentelemetry.proto.metrics.v1 import metrics_pb2

from quotaflow.udfs.otlp import remembered
from quotaflow.udfs.otlp.attributes import Tags
from quotaflow.udfs.otlp.codecs import Limits, UnreadableError
from quotaflow.udfs.otlp.count import LEAST_BYTES, more_messages_than
from quotaflow.udfs.otlp.descriptor import batch_class, payload_class, payload_handler

Ints = npt.NDArray[np.int64]
Unreadable = dict[int, UnreadableError]
_TAG, _SIZE_BYTES, _SEVEN_BITS, _CONTINUED = 0x0A, 5, 0x7F, 0x80


@dataclass(frozen=True, slots=True)
class EncodedMetrics:
    """Every metric of a batch of payloads as bytes, with where it came from.

    `resource` and `scope` number the distinct ones in `resources` and `scopes`.
    """

    metrics: pa.BinaryArray
    payload: Ints
    resource: Ints
    scope: Ints
    resources: list[Tags]
    scopes: list[tuple[str, str]]


def split(payloads: list[bytes], unreadable: Unreadable, limits: Limits) -> EncodedMetrics:
    """Split every readable payload; those that are not OTLP, or too large, go to `unreadable`."""
    read = _counted(payloads, unreadable, limits)
    whole = _parsed(read, unreadable)
    try:
        metrics = _taken_apart(whole, read, unreadable, limits)
    except _CrowdedError as crowded:
        for i in crowded.payloads:
            unreadable[i] = over("resources, scopes or metrics", limits.points)
            read[i] = b""
        return split(read, unreadable, limits)
    except DecodeError:
        for i, payload in enumerate(read):
            read[i] = _read(metrics_pb2.MetricsData, i, payload, unreadable)
        return split(read, unreadable, limits)
    _refuse_empty(read, metrics, unreadable)
    return metrics


def _taken_apart(
    whole: bytes, read: list[bytes], unreadable: Unreadable, limits: Limits
) -> EncodedMetrics:
    try:
        return _split(whole, limits)
    except ValueError:
        merged = [_canonical(i, payload, unreadable) for i, payload in enumerate(read)]
        return _split(_as_one(merged), limits)


def not_otlp(detail: object) -> UnreadableError:
    """Bytes that are not OTLP metrics, with protobuf's message."""
    return UnreadableError("not_otlp", str(detail))


def over(what: str, most: int) -> UnreadableError:
    """More than one payload can have."""
    return UnreadableError("points_over_limit", f"more than {most} {what}")


class _CrowdedError(Exception):
    """These payloads have more resources, scopes, or metrics than a payload can have points."""

    def __init__(self, payloads: list[int]) -> None:
        super().__init__(payloads)
        self.payloads = payloads


def _counted(payloads: list[bytes], unreadable: Unreadable, limits: Limits) -> list[bytes]:
    """The payloads, empty in place of those with too many messages to be parsed."""
    read, least = list(payloads), LEAST_BYTES * limits.messages
    for index in [i for i, payload in enumerate(payloads) if len(payload) > least]:
        if more_messages_than(limits.messages, payloads[index]):
            unreadable[index], read[index] = over("messages", limits.messages), b""
    return read


def _parsed(read: list[bytes], unreadable: Unreadable) -> bytes:
    """The payloads as one message; those that protobuf cannot read become empty."""
    whole = _as_one(read)
    try:
        # One message, not one for each payload: after some thousand messages were freed, protobuf
        # has the C library return all free memory to the system (malloc_trim).
        batch_class().FromString(whole)
    except DecodeError:
        read[:] = [_read(payload_class(), i, payload, unreadable) for i, payload in enumerate(read)]
        return _as_one(read)
    return whole


def _as_one(payloads: list[bytes]) -> bytes:
    """An encoded message of batch_class, with lengths of five bytes."""
    heads = np.full((len(payloads), 1 + _SIZE_BYTES), _TAG, np.uint8)
    bits = range(0, 7 * _SIZE_BYTES, 7)
    heads[:, 1:] = _sizes(payloads)[:, None] >> np.array(bits) & _SEVEN_BITS
    heads[:, 1:-1] |= _CONTINUED
    tags, size = heads.tobytes(), heads.shape[1]
    parts = [b""] * 2 * len(payloads)
    parts[::2] = [tags[at : at + size] for at in range(0, len(tags), size)]
    parts[1::2] = payloads
    return b"".join(parts)


def _read(kind: type[Message], index: int, payload: bytes, unreadable: Unreadable) -> bytes:
    """The payload if protobuf can read it as `kind`; else empty, and the reason is recorded."""
    try:
        kind().MergeFromString(payload)
    except DecodeError as error:
        unreadable[index] = not_otlp(error)
        return b""
    return payload


def _canonical(index: int, payload: bytes, unreadable: Unreadable) -> bytes:
    """The same message with repeated occurrences merged and unknown fields dropped."""
    message = metrics_pb2.MetricsData()
    message.MergeFromString(_read(metrics_pb2.MetricsData, index, payload, unreadable))
    message.DiscardUnknownFields()
    return message.SerializeToString()


def _split(whole: bytes, limits: Limits) -> EncodedMetrics:
    offsets = pa.py_buffer(np.array([0, len(whole)], np.int32))
    only = pa.Array.from_buffers(pa.binary(), 1, [None, offsets, pa.py_buffer(whole)])
    (rows,) = payload_handler().array_to_record_batch(only).columns
    payload, resource_metrics = _unnest(rows.values.field(0))
    resource, resources = _numbered(resource_metrics.field("resource"))
    parent, scope_metrics = _unnest(resource_metrics.field("scope_metrics"))
    scope, scopes = _numbered(scope_metrics.field("scope"))
    scope_parent, metrics = _unnest(scope_metrics.field("metrics"))
    of_resource = parent[scope_parent]
    _refuse_crowded(limits, payload, payload[parent], payload[of_resource])
    return EncodedMetrics(
        metrics,
        payload[of_resource],
        resource[of_resource],
        scope[scope_parent],
        [remembered.resource(encoded, limits) for encoded in resources],
        [remembered.scope(encoded, limits) for encoded in scopes],
    )


def _refuse_crowded(limits: Limits, *levels: Ints) -> None:
    """Check counts before objects exist; a level has the payload of each of its messages."""
    counts = (np.bincount(of_level) for of_level in levels)
    crowded = {int(i) for each in counts for i in np.flatnonzero(each > limits.points)}
    if crowded:
        raise _CrowdedError(sorted(crowded))


def _sizes(payloads: list[bytes]) -> Ints:
    return np.fromiter(map(len, payloads), np.int64, len(payloads))


def _unnest(lists: Any) -> tuple[Ints, Any]:
    """The index of the list each value is in, and the values."""
    counts = np.diff(lists.offsets.to_numpy())
    return np.repeat(np.arange(len(lists)), counts), lists.values


def _numbered(lists: Any) -> tuple[Ints, list[bytes]]:
    """The number of each list's only value among the distinct ones; an absent value is empty."""
    counts = np.diff(lists.offsets.to_numpy())
    if counts.max(initial=0) > 1:
        raise ValueError("a field came twice: protobuf merges such, columns cannot")
    encoded = lists.values.dictionary_encode()
    distinct, indices = encoded.dictionary.to_pylist(), encoded.indices.to_numpy()
    if counts.all():
        return indices.astype(np.int64), distinct
    numbers = np.full(len(lists), len(distinct))
    numbers[counts == 1] = indices
    return numbers, [*distinct, b""]


def _refuse_empty(payloads: list[bytes], metrics: EncodedMetrics, unreadable: Unreadable) -> None:
    """A payload of bytes without a metric must at least have the shape of OTLP."""
    counts = np.bincount(metrics.payload, minlength=len(payloads))
    for index in map(int, np.flatnonzero(counts == 0)):
        if _read(metrics_pb2.MetricsData, index, payloads[index], unreadable):
            message = metrics_pb2.MetricsData.FromString(payloads[index])
            if not message.resource_metrics or _has_unknown(message):
                unreadable[index] = not_otlp("no metric, and fields that OTLP does not have")


def _has_unknown(message: metrics_pb2.MetricsData) -> bool:
    scopes = (scope for resource in message.resource_metrics for scope in resource.scope_metrics)
    levels: tuple[Message, ...] = (message, *message.resource_metrics, *scopes)
    return any(len(UnknownFieldSet(level)) for level in levels)
