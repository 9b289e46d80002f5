"""Points as arrays of numbers: repeated parts, mostly names, are numbered once per batch."""

from dataclasses import dataclass, field

from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric

from quotaflow.udfs.otlp import remembered
from quotaflow.udfs.otlp.arrays import Codes, Ints, Unsigned
from quotaflow.udfs.otlp.attribute_sets import UNREAD, AttributeSets
from quotaflow.udfs.otlp.codecs import Limits
from quotaflow.udfs.otlp.layout import Form


@dataclass(slots=True)
class Names:
    """Every distinct header, attribute set and form of a batch, by number (a dict's order)."""

    limits: Limits
    headers: dict[remembered.Header, int] = field(default_factory=dict)
    attributes: AttributeSets = field(init=False)
    forms: dict[Form, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.attributes = AttributeSets(self.limits)

    def header(self, encoded: bytes) -> int:
        """The number of a metric's header; UNREAD if the bytes are not exactly one."""
        header = remembered.header(encoded, self.limits)
        return UNREAD if header is None else self.headers.setdefault(header, len(self.headers))

    def header_of(self, metric: Metric) -> int:
        """The number of a metric's name and unit."""
        header = remembered.name_and_unit(metric, self.limits)
        return self.headers.setdefault(header, len(self.headers))

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
