"""Layouts: usual encodings have one, everything unusual is left to protobuf."""

from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.metrics.v1 import metrics_pb2 as otlp

from quotaflow.udfs.otlp.layout import Form, layout

from ...cases import cases

TOPIC = KeyValue(key="topic", value=AnyValue(string_value="orders"))
POINT = otlp.NumberDataPoint(
    start_time_unix_nano=1, time_unix_nano=2, as_double=3.0, attributes=[TOPIC], flags=1
)


def gauge(*points, **fields):
    return otlp.Metric(name="m", gauge=otlp.Gauge(data_points=points), **fields).SerializeToString()


def test_where_things_lie():
    encoded = gauge(POINT, description="d", unit="ms")
    (slot,) = layout(encoded).slots
    header = layout(encoded).header

    def part(byte_range):
        return encoded[byte_range.start : byte_range.stop]

    assert part(header) == otlp.Metric(name="m", description="d", unit="ms").SerializeToString()
    assert part(slot.start) == (1).to_bytes(8, "little")
    assert part(slot.time) == (2).to_bytes(8, "little")
    assert part(slot.attributes) == otlp.NumberDataPoint(attributes=[TOPIC]).SerializeToString()
    assert slot.form == Form("gauge", flags=1, number="double")


def test_the_mask_covers_all_but_numbers_and_names():
    first = gauge(POINT)
    second = gauge(otlp.NumberDataPoint(time_unix_nano=9, as_double=-1.0, attributes=[TOPIC]))
    assert layout(first).mask != layout(second).mask
    other = otlp.NumberDataPoint()
    other.CopyFrom(POINT)
    other.as_double = -5.5
    mask, both = layout(first).mask, zip(first, gauge(other), strict=True)
    assert all(a == b for (a, b), fixed in zip(both, mask, strict=True) if fixed)


def test_sums_and_several_points():
    data = otlp.Sum(data_points=[POINT, POINT], aggregation_temporality=1, is_monotonic=True)
    read = layout(otlp.Metric(name="m", sum=data).SerializeToString())
    assert [slot.form for slot in read.slots] == [Form("sum", 1, True, 1, "double")] * 2


EXEMPLARS = otlp.NumberDataPoint(exemplars=[otlp.Exemplar()])


@cases(
    "encoded",
    ("nothing", b""),
    ("no data", otlp.Metric(name="m").SerializeToString()),
    ("no points", gauge()),
    ("exemplars", gauge(EXEMPLARS)),
    ("very many points", gauge(*[POINT] * 65)),
    ("another kind of metric", otlp.Metric(summary=otlp.Summary()).SerializeToString()),
    ("a gauge that comes twice", gauge(POINT) + gauge(POINT)),
    ("a name after the data", gauge(POINT) + b"\x0a\x01n"),
    ("an unknown field", b"\x40\x01" + gauge(POINT)),
    ("a number cut off", b"\x2a\x0b\x0a\x09\x21" + bytes(7)),
    ("time twice", b"\x2a\x16\x0a\x14" + (b"\x19" + bytes(8)) * 2 + b"\x40\x00"),
    ("a double and an integer", b"\x2a\x14\x0a\x12\x21" + bytes(8) + b"\x31" + bytes(8)),
    ("a length of five bytes", b"\x2a\x80\x80\x80\x80\x00"),
    ("a length cut off", b"\x2a\xff"),
    ("a tag of two bytes", b"\xaa\x00\x00"),
)
def test_what_is_left_to_protobuf(encoded):
    assert layout(encoded) is None
