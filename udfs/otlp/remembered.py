"""Encoded names as text: short ones are remembered, because the next push has them too."""

import inspect
from collections.abc import Callable
from functools import lru_cache
from typing import TypeVar

from google.protobuf.message import DecodeError
from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric, NumberDataPoint
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

from quotaflow.udfs.otlp.attributes import Tags, cut, tags
from quotaflow.udfs.otlp.codecs import Limits

_HEADER_FIELDS = {"name", "description", "unit"}
_REMEMBERED, _REMEMBERED_BYTES = 65_536, 512
Header = tuple[str, str]
"""Name and unit of a metric, as sent."""
T = TypeVar("T")


def header(encoded: bytes, limits: Limits) -> Header | None:
    """Name and unit of a metric, given the fields before its data; None if there are others."""
    sent = _remembered(_header, encoded)
    return sent and (cut(sent[0], limits), cut(sent[1], limits))


def attributes(encoded: bytes, limits: Limits) -> Tags | None:
    """The attributes of a data point, given these fields; None if there are others."""
    return _remembered(_attributes, encoded, limits)


def resource(encoded: bytes, limits: Limits) -> Tags:
    """The attributes of a resource; DecodeError if protobuf cannot read it."""
    return _remembered(_resource, encoded, limits)


def scope(encoded: bytes, limits: Limits) -> tuple[str, str]:
    """Name and version of a scope; DecodeError if protobuf cannot read it."""
    name, version = _remembered(_scope, encoded)
    return cut(name, limits), cut(version, limits)


def name_and_unit(metric: Metric, limits: Limits) -> Header:
    """Name and unit, cut to the limit."""
    return cut(metric.name, limits), cut(metric.unit, limits)


def _remembered(read: Callable[..., T], encoded: bytes, *limits: Limits) -> T:
    if len(encoded) > _REMEMBERED_BYTES:
        read = inspect.unwrap(read)
    return read(encoded, *limits)


@lru_cache(_REMEMBERED)
def _header(encoded: bytes) -> Header | None:
    try:
        metric = Metric.FromString(encoded)
    except DecodeError:
        return None
    if any(field.name not in _HEADER_FIELDS for field, _ in metric.ListFields()):
        return None
    return metric.name, metric.unit


@lru_cache(_REMEMBERED)
def _attributes(encoded: bytes, limits: Limits) -> Tags | None:
    try:
        point = NumberDataPoint.FromString(encoded)
    except DecodeError:
        return None
    if any(field.name != "attributes" for field, _ in point.ListFields()):
        return None
    return tags(point.attributes, limits)


@lru_cache(_REMEMBERED)
def _resource(encoded: bytes, limits: Limits) -> Tags:
    return tags(Resource.FromString(encoded).attributes, limits)


@lru_cache(_REMEMBERED)
def _scope(encoded: bytes) -> tuple[str, str]:
    sent = InstrumentationScope.FromString(encoded)
    return sent.name, sent.version
