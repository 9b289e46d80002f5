"""Points as arrays of numbers: repeated parts, mostly names, are numbered once per batch."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypeVar

import numpy as np
import numpy.typing as npt
from google.protobuf.message import DecodeError
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric, NumberDataPoint

from quotaflow.udfs.otlp.attributes import Tags, cut, tags
from quotaflow.udfs.otlp.codecs import Limits
from quotaflow.udfs.otlp.layout import Form
from quotaflow.udfs.otlp.payloads import Ints

Unsigned = npt.NDArray[np.uint64]
Codes = npt.NDArray[np.int32]
Header = tuple[str, str]
"""Name and unit of a metric, as sent."""

UNREAD = -1
"""The number of bytes that are not as expected."""

_HEADER_FIELDS = {"name", "description", "unit"}
_REMEMBERED, _REMEMBERED_BYTES = 65_536, 512
T = TypeVar("T")


def _name_and_unit(metric: Metric, limits: Limits) -> Header:
    return cut(metric.name, limits), cut(metric.unit, limits)


@lru_cache(_REMEMBERED)
def _header(encoded: bytes, limits: Limits) -> Header | None:
    try:
        metric = Metric.FromString(encoded)
    except DecodeError:
        return None
    if any(field.name not in _HEADER_FIELDS for field, _ in metric.ListFields()):
        return None
    return _name_and_unit(metric, limits)


@lru_cache(_REMEMBERED)
def _attributes(encoded: bytes, limits: Limits) -> Tags | None:
    try:
        point = NumberDataPoint.FromString(encoded)
    except DecodeError:
        return None
    if any(field.name != "attributes" for field, _ in point.ListFields()):
        return None
    return tags(point.attributes, limits)


def _remembered(read: Callable[[bytes, Limits], T], encoded: bytes, limits: Limits) -> T:
    """`read` of the bytes, cached if they are short, because the next push has them too."""
    if len(encoded) > _REMEMBERED_BYTES:
        read = inspect.unwrap(read)
    return read(encoded, limits)


@dataclass(slots=True)
class Names:
    """Every distinct header, attribute set and form of a batch, by number (a dict's order)."""

    limits: Limits
    headers: dict[Header, int] = field(default_factory=dict)
    attributes: dict[Tags, int] = field(default_factory=dict)
    forms: dict[Form, int] = field(default_factory=dict)

    def header(self, encoded: bytes) -> int:
        """The number of a metric's header; UNREAD if the bytes are not exactly one."""
        header = _remembered(_header, encoded, self.limits)
        return UNREAD if header is None else self.headers.setdefault(header, len(self.headers))

    def header_of(self, metric: Metric) -> int:
        """The number of a metric's name and unit."""
        return self.headers.setdefault(_name_and_unit(metric, self.limits), len(self.headers))

    def attribute_set(self, encoded: bytes) -> int:
        """The number of a point's attributes; UNREAD if the bytes hold anything else."""
        attributes = _remembered(_attributes, encoded, self.limits)
        return UNREAD if attributes is None else self.attributes_of(attributes)

    def attributes_of(self, attributes: Tags) -> int:
        """The number of a set of attributes."""
        return self.attributes.setdefault(attributes, len(self.attributes))

    def form(self, form: Form) -> int:
        """The number of a form."""
        return self.forms.setdefault(form, len(self.forms))


@dataclass(frozen=True, slots=True)
class Numbers:
    """Columns of some points: their metric, times, value, and the numbers of their names."""

    metric: Ints
    start_ns: Unsigned
    time_ns: Unsigned
    bits: Unsigned
    header: Codes
    attributes: Codes
    form: Codes


@dataclass(frozen=True, slots=True)
class Part:
    """Points read together; `slot` is the place of each among the points of its metric."""

    numbers: Numbers
    slot: Ints | int
