"""Points as arrays of numbers: what repeats, names above all, is numbered once per batch."""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from google.protobuf.message import DecodeError
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric, NumberDataPoint

from quotaflow.udfs.codecs import Limits
from quotaflow.udfs.otlp_attributes import Tags, cut, tags
from quotaflow.udfs.otlp_layout import Form
from quotaflow.udfs.otlp_payloads import Ints

Unsigned = npt.NDArray[np.uint64]
Codes = npt.NDArray[np.int32]
Header = tuple[str, str]
"""Name and unit of a metric, as sent."""

UNREAD = -1
"""The number of bytes that are not what they should be."""

_HEADER_FIELDS = {"name", "description", "unit"}


@dataclass(slots=True)
class Names:
    """Every distinct header, attribute set and form of a batch, by number (a dict's order)."""

    limits: Limits
    headers: dict[Header, int] = field(default_factory=dict)
    attributes: dict[Tags, int] = field(default_factory=dict)
    forms: dict[Form, int] = field(default_factory=dict)

    def header(self, encoded: bytes) -> int:
        """The number of a metric's header; UNREAD where the bytes hold more or less than one."""
        try:
            metric = Metric.FromString(encoded)
        except DecodeError:
            return UNREAD
        if any(field.name not in _HEADER_FIELDS for field, _ in metric.ListFields()):
            return UNREAD
        return self.header_of(metric)

    def header_of(self, metric: Metric) -> int:
        """The number of a metric's name and unit."""
        header = cut(metric.name, self.limits), cut(metric.unit, self.limits)
        return self.headers.setdefault(header, len(self.headers))

    def attribute_set(self, encoded: bytes) -> int:
        """The number of a point's attributes; UNREAD where the bytes hold anything else."""
        try:
            point = NumberDataPoint.FromString(encoded)
        except DecodeError:
            return UNREAD
        if any(field.name != "attributes" for field, _ in point.ListFields()):
            return UNREAD
        return self.attributes_of(tags(point.attributes, self.limits))

    def attributes_of(self, attributes: Tags) -> int:
        """The number of a set of attributes."""
        return self.attributes.setdefault(attributes, len(self.attributes))

    def form(self, form: Form) -> int:
        """The number of a form."""
        return self.forms.setdefault(form, len(self.forms))


@dataclass(frozen=True, slots=True)
class Numbers:
    """The same for each of some points: whose they are, when, what, and the numbers of names."""

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
