"""Payloads taken apart: the resources, scopes and metrics they hold, and who cannot be read."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from google.protobuf.message import DecodeError, Message
from google.protobuf.unknown_fields import UnknownFieldSet
from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope
from opentelemetry.proto.metrics.v1 import metrics_pb2
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

from quotaflow.udfs.codecs import Limits, UnreadableError
from quotaflow.udfs.otlp_descriptor import payload_class, payload_handler, point_class

Ints = npt.NDArray[np.int64]
Unreadable = dict[int, UnreadableError]
_LEAST_POINT_BYTES = 2


@dataclass(frozen=True, slots=True)
class Metrics:
    """Every metric of a batch of payloads as bytes, with where it came from.

    `resource` and `scope` number the distinct ones in `resources` and `scopes`.
    """

    metrics: pa.BinaryArray
    payload: Ints
    resource: Ints
    scope: Ints
    resources: list[Resource]
    scopes: list[InstrumentationScope]


def split(payloads: list[bytes], unreadable: Unreadable, limits: Limits) -> Metrics:
    """Take every readable payload apart; who is not OTLP or too much goes to `unreadable`."""
    read = _parsed(payloads, unreadable)
    try:
        metrics = _split(read)
    except ValueError:
        metrics = _split([_canonical(i, payload, unreadable) for i, payload in enumerate(read)])
    except DecodeError:
        for i, payload in enumerate(read):
            read[i] = _read(metrics_pb2.MetricsData, i, payload, unreadable)
        return split(read, unreadable, limits)
    _refuse_empty(read, metrics, unreadable)
    _refuse_many(read, metrics, unreadable, limits)
    return metrics


def not_otlp(detail: object) -> UnreadableError:
    """Bytes that are no OTLP metrics, with what protobuf said."""
    return UnreadableError("not_otlp", str(detail))


def _parsed(payloads: list[bytes], unreadable: Unreadable) -> list[bytes]:
    """The payloads, with nothing in the place of those that protobuf cannot read."""
    read, parse = list(payloads), payload_class().FromString
    for index, payload in enumerate(payloads):
        try:
            parse(payload)
        except DecodeError as error:
            unreadable[index], read[index] = not_otlp(error), b""
    return read


def _read(kind: type[Message], index: int, payload: bytes, unreadable: Unreadable) -> bytes:
    """The payload if protobuf can read it as `kind`, else nothing and the reason noted."""
    try:
        kind().MergeFromString(payload)
    except DecodeError as error:
        unreadable[index] = not_otlp(error)
        return b""
    return payload


def _canonical(index: int, payload: bytes, unreadable: Unreadable) -> bytes:
    """The same message with what came twice merged and unknown fields left out."""
    message = metrics_pb2.MetricsData()
    message.MergeFromString(_read(metrics_pb2.MetricsData, index, payload, unreadable))
    message.DiscardUnknownFields()
    return message.SerializeToString()


def _split(payloads: list[bytes]) -> Metrics:
    rows = payload_handler().array_to_record_batch(_binary(payloads)).column(0)
    payload, resource_metrics = _unnest(rows)
    resource, resources = _numbered(resource_metrics.field("resource"))
    parent, scope_metrics = _unnest(resource_metrics.field("scope_metrics"))
    scope, scopes = _numbered(scope_metrics.field("scope"))
    scope_parent, metrics = _unnest(scope_metrics.field("metrics"))
    of_resource = parent[scope_parent]
    return Metrics(
        metrics,
        payload[of_resource],
        resource[of_resource],
        scope[scope_parent],
        [Resource.FromString(encoded) for encoded in resources],
        [InstrumentationScope.FromString(encoded) for encoded in scopes],
    )


def _binary(payloads: list[bytes]) -> pa.BinaryArray:
    """The payloads as an Arrow array: joined at once, which is faster than one by one."""
    offsets = np.zeros(len(payloads) + 1, np.int32)
    np.cumsum(_sizes(payloads), out=offsets[1:])
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(b"".join(payloads))]
    return pa.Array.from_buffers(pa.binary(), len(payloads), buffers)


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
    numbers = np.full(len(lists), len(encoded.dictionary))
    numbers[counts == 1] = encoded.indices.to_numpy()
    return numbers, [*encoded.dictionary.to_pylist(), b""]


def _refuse_empty(payloads: list[bytes], metrics: Metrics, unreadable: Unreadable) -> None:
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


def _refuse_many(
    payloads: list[bytes], metrics: Metrics, unreadable: Unreadable, limits: Limits
) -> None:
    """Refuse a payload of too many metrics or points before they are made into objects."""
    counts = np.bincount(metrics.payload, minlength=len(payloads))
    large = np.flatnonzero(_sizes(payloads) > _LEAST_POINT_BYTES * limits.points)
    for index in (int(index) for index in large if index not in unreadable):
        seen = int(counts[index])
        try:
            if seen <= limits.points:
                seen = _points(metrics.metrics.filter(pa.array(metrics.payload == index)))
        except DecodeError as error:
            unreadable[index] = not_otlp(error)
        if seen > limits.points:
            detail = f"{seen} metrics or points, at most {limits.points}"
            unreadable[index] = UnreadableError("points_over_limit", detail)


def _points(metrics: pa.BinaryArray) -> int:
    points = 0
    for metric in metrics:
        counted = point_class().FromString(metric.as_py())
        points += sum(len(form.data_points) for _, form in counted.ListFields())
    return points
