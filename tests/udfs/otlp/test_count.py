"""Messages counted in bytes, as many as protobuf would make."""

from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from quotaflow.udfs.otlp.count import more_messages_than

from ...cases import cases
from . import otlp_messages
from .otlp_made import attribute, gauge, payload, point
from .otlp_twin import messages_in

EMPTY_RESOURCE = b"\x0a\x00"


def count(data):
    """By asking: the smallest number that there are no more than."""
    return next(most for most in range(len(data) + 1) if not more_messages_than(most, data))


@given(otlp_messages.messages())
def test_as_many_as_protobuf_makes(message):
    data = message.SerializeToString()
    assert not more_messages_than(messages_in(message), data)
    if messages_in(message):
        assert more_messages_than(messages_in(message) - 1, data)


@given(otlp_messages.messages(), st.data())
def test_never_fewer_than_protobuf_makes_of_damaged_bytes(message, draw):
    data = bytearray(message.SerializeToString())
    for _ in range(draw.draw(st.integers(1, 5)) if data else 0):
        data[draw.draw(st.integers(0, len(data) - 1))] = draw.draw(st.integers(0, 255))
    try:
        made = messages_in(MetricsData.FromString(bytes(data)))
    except DecodeError:
        return
    assert made == 0 or more_messages_than(made - 1, bytes(data))


def test_attributes_and_nested_values_count():
    nested = {"array_value": {"values": [{"int_value": 1}, {"int_value": 2}]}}
    data = payload(gauge(point(attributes=[attribute("k", **nested)])))
    # Resource and scope with their metrics, resource; metric, gauge, point; key, value, array, two.
    assert count(data) == 3 + 3 + 5


@cases(
    "hiding",
    ("a size past the end of its message", b"\x0a\x04\x12\x02\x12\x7f"),
    ("a size that does not end", b"\x0a\x04\x12\x02\x12\xff"),
    ("a number that is missing", b"\x0a\x03\x12\x01\x08"),
    ("eight bytes that are missing", b"\x0a\x03\x12\x01\x09"),
    ("a group", b"\x0a\x02\x0b\x0c"),
)
def test_nothing_hides_behind_what_is_broken(hiding):
    assert more_messages_than(999, hiding + EMPTY_RESOURCE * 1_000)


def test_a_number_without_end_is_no_work():
    assert not more_messages_than(10, b"\x80" * (1 << 20))


def test_deeper_than_protobuf_goes():
    value = b""
    for _ in range(200):
        value = b"\x2a" + _sized(b"\x0a" + _sized(value))
    attributes = b"\x0a" + _sized(b"\x12" + _sized(value))
    data = b"\x0a" + _sized(b"\x0a" + _sized(attributes))
    assert more_messages_than(99, data)
    assert not more_messages_than(101, data)


def _sized(data):
    size, head = len(data), b""
    while size > 0x7F:
        head, size = head + bytes([size & 0x7F | 0x80]), size >> 7
    return head + bytes([size]) + data
