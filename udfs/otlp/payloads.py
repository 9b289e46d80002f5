"""Splits payloads into resources, scopes, and metrics, and finds unreadable payloads."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from google.protobuf.message import DecodeError, Message
from google.protobuf.unknown_fields import UnknownFieldSet
from opentelemetry.proto.metrics.v1 import metrics_pb2

from quotaflow.udfs.otlp import remembered
from quotaflow.udfs.otlp.arrays import Ints
from quotaflow.udfs.otlp.attribute_sets import AttributeSets
from quotaflow.udfs.otlp.bad_text import over, readable_part
from quotaflow.udfs.otlp.codecs import Limits, UnreadableError
from quotaflow.udfs.otlp.count import LEAST_BYTES, more_messages_than
from quotaflow.udfs.otlp.descriptor import batch_class, payload_class, payload_handler

Unreadable = dict[int, UnreadableError]
LeftOut = Counter[int]
_RESOURCE_ATTRIBUTES = 1
_TAG, _SIZE_BYTES, _SEVEN_BITS, _CONTINUED = 0x0A, 5, 0x7F, 0x80


@dataclass(frozen=True, slots=True)
class EncodedMetrics:
    """Every metric of a batch of payloads as bytes, with where it came from.

    `resource` numbers the sets in `resources`, `scope` the names and versions in `scopes`.
    `left_out` counts the metrics of a payload that are not here, because their text is not UTF-8,
    and `broken` those whose bytes are no metric.
    """

    metrics: pa.BinaryArray
    payload: Ints
    resource: Ints
    scope: Ints
    resources: AttributeSets
    scopes: list[tuple[str, str]]
    left_out: LeftOut
    broken: LeftOut


def split(payloads: list[bytes], unreadable: Unreadable, limits: Limits) -> EncodedMetrics:
    """Split every readable payload; those that are not OTLP, or too large, go to `unreadable`."""
    reading = _Reading(list(payloads), unreadable, LeftOut(), LeftOut(), limits)
    reading.refuse_too_many_messages()
    while True:
        try:
            metrics = _taken_apart(reading)
        except _CrowdedError as crowded:
            for index in crowded.payloads:
                reading.refuse(index, over("resources, scopes or metrics", limits.points))
        except DecodeError:
            reading.read_each(metrics_pb2.MetricsData)
        else:
            _refuse_empty(reading, metrics)
            return metrics


@dataclass(frozen=True, slots=True)
class _Reading:
    """Payloads as far as they can be read: what is unreadable becomes empty."""

    payloads: list[bytes]
    unreadable: Unreadable
    left_out: LeftOut
    broken: LeftOut
    limits: Limits

    def refuse(self, index: int, error: UnreadableError) -> None:
        """Empty this payload, because of the error."""
        self.unreadable[index] = error
        self.payloads[index] = b""

    def refuse_too_many_messages(self) -> None:
        """Empty the payloads with too many messages to be parsed."""
        most = self.limits.messages
        for index in np.flatnonzero(_sizes(self.payloads) > LEAST_BYTES * most).tolist():
            if more_messages_than(most, self.payloads[index]):
                self.refuse(index, over("messages", most))

    def read_each(self, kind: type[Message]) -> None:
        """Empty the payloads that protobuf cannot read as `kind`, or leave out metrics of them."""
        for index in range(len(self.payloads)):
            self.read(kind, index)

    def read(self, kind: type[Message], index: int) -> bytes:
        """The payload as far as protobuf can read it as `kind`; empty if it cannot."""
        try:
            kind().MergeFromString(self.payloads[index])
        except DecodeError:
            self._leave_out(index)
        return self.payloads[index]

    def _leave_out(self, index: int) -> None:
        try:
            payload, count, broken = readable_part(self.payloads[index], self.limits)
            metrics_pb2.MetricsData().MergeFromString(payload)
        except DecodeError as error:
            self.refuse(index, not_otlp(error))
        except UnreadableError as error:
            self.refuse(index, error)
        else:
            self.payloads[index] = payload
            self.left_out[index] += count
            self.broken[index] += broken


def _taken_apart(reading: _Reading) -> EncodedMetrics:
    whole = _as_one(reading.payloads)
    try:
        # One message, not one for each payload: after some thousand messages were freed, protobuf
        # has the C library return all free memory to the system (malloc_trim).
        batch_class().FromString(whole)
    except DecodeError:
        reading.read_each(payload_class())
        whole = _as_one(reading.payloads)
    try:
        return _split(whole, reading)
    except ValueError:
        merged = [_canonical(reading, index) for index in range(len(reading.payloads))]
        return _split(_as_one(merged), reading)


NOT_OTLP = "not_otlp"
"""The reason of bytes that are no payload."""


def not_otlp(detail: object) -> UnreadableError:
    """Bytes that are not OTLP metrics, with protobuf's message."""
    return UnreadableError(NOT_OTLP, str(detail))


class _CrowdedError(Exception):
    """These payloads have more resources, scopes, or metrics than a payload can have points."""

    def __init__(self, payloads: list[int]) -> None:
        super().__init__(payloads)
        self.payloads = payloads


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


def _canonical(reading: _Reading, index: int) -> bytes:
    """The same message with repeated occurrences merged and unknown fields dropped."""
    message = metrics_pb2.MetricsData()
    message.MergeFromString(reading.read(metrics_pb2.MetricsData, index))
    message.DiscardUnknownFields()
    return message.SerializeToString()


def _split(whole: bytes, reading: _Reading) -> EncodedMetrics:
    offsets = pa.py_buffer(np.array([0, len(whole)], np.int32))
    only = pa.Array.from_buffers(pa.binary(), 1, [None, offsets, pa.py_buffer(whole)])
    (rows,) = payload_handler().array_to_record_batch(only).columns
    payload, resource_metrics = _unnest(rows.values.field(0))
    resource, resources = _numbered(resource_metrics.field("resource"))
    parent, scope_metrics = _unnest(resource_metrics.field("scope_metrics"))
    scope, scopes = _numbered(scope_metrics.field("scope"))
    scope_parent, metrics = _unnest(scope_metrics.field("metrics"))
    of_resource = parent[scope_parent]
    limits = reading.limits
    sets = AttributeSets(limits, _RESOURCE_ATTRIBUTES, remembered.resource)
    _refuse_crowded(limits, payload, payload[parent], payload[of_resource])
    return EncodedMetrics(
        metrics,
        payload[of_resource],
        sets.numbers_of(resources)[resource].astype(np.int64)[of_resource],
        scope[scope_parent],
        sets,
        [remembered.scope(encoded, limits) for encoded in scopes.to_pylist()],
        reading.left_out,
        reading.broken,
    )


def _refuse_crowded(limits: Limits, *levels: Ints) -> None:
    """Check counts before objects exist; a level has the payload of each of its messages."""
    counts = (np.bincount(each) for each in levels if len(each) > limits.points)
    crowded = {int(i) for each in counts for i in np.flatnonzero(each > limits.points)}
    if crowded:
        raise _CrowdedError(sorted(crowded))


def _sizes(payloads: list[bytes]) -> Ints:
    return np.fromiter(map(len, payloads), np.int64, len(payloads))


def _unnest(lists: Any) -> tuple[Ints, Any]:
    """The index of the list each value is in, and the values."""
    counts = np.diff(lists.offsets.to_numpy())
    return np.repeat(np.arange(len(lists)), counts), lists.values


def _numbered(lists: Any) -> tuple[Ints, Any]:
    """The number of each list's only value among the distinct ones; an absent value is empty."""
    counts = np.diff(lists.offsets.to_numpy())
    if counts.max(initial=0) > 1:
        raise ValueError("a field came twice: protobuf merges such, columns cannot")
    encoded = lists.values.dictionary_encode()
    distinct, indices = encoded.dictionary, encoded.indices.to_numpy()
    if counts.all():
        return indices.astype(np.int64), distinct
    numbers = np.full(len(lists), len(distinct))
    numbers[counts == 1] = indices
    return numbers, pa.concat_arrays([distinct, pa.array([b""], distinct.type)])


def _refuse_empty(reading: _Reading, metrics: EncodedMetrics) -> None:
    """A payload of bytes without a metric must at least have the shape of OTLP."""
    counts = np.bincount(metrics.payload, minlength=len(reading.payloads))
    for index in map(int, np.flatnonzero(counts == 0)):
        if reading.left_out[index] or reading.broken[index]:
            continue
        if payload := reading.read(metrics_pb2.MetricsData, index):
            message = metrics_pb2.MetricsData.FromString(payload)
            if not message.resource_metrics or _has_unknown(message):
                reading.refuse(index, not_otlp("no metric, and fields that OTLP does not have"))


def _has_unknown(message: metrics_pb2.MetricsData) -> bool:
    scopes = (scope for resource in message.resource_metrics for scope in resource.scope_metrics)
    levels: tuple[Message, ...] = (message, *message.resource_metrics, *scopes)
    return any(len(UnknownFieldSet(level)) for level in levels)
