"""Attributes: any value as text, bounded, and one name for what clients name differently."""

from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue, KeyValueList

from quotaflow.udfs.otlp.attribute_sets import AttributeSets
from quotaflow.udfs.otlp.attributes import Tags, node, tags
from quotaflow.udfs.otlp.codecs import Limits
from quotaflow.udfs.otlp.columns import places

from ...cases import cases

LIMITS = Limits()


def array(*values):
    return AnyValue(array_value=ArrayValue(values=values))


def text(value, limits=LIMITS):
    ((_, shown),) = tags([KeyValue(key="k", value=value)], limits)
    return shown


@cases(
    ("value", "shown"),
    ("text as it is", AnyValue(string_value="az-a"), "az-a"),
    ("empty text", AnyValue(string_value=""), ""),
    ("no value", AnyValue(), None),
    ("boolean", AnyValue(bool_value=True), "true"),
    ("integer", AnyValue(int_value=-1), "-1"),
    ("double", AnyValue(double_value=0.1), "0.1"),
    ("not a number", AnyValue(double_value=float("nan")), "NaN"),
    ("bytes as base64", AnyValue(bytes_value=b"\x00\xff"), "AP8="),
    (
        "array as JSON",
        array(AnyValue(int_value=1), AnyValue(string_value="é"), array()),
        '[1,"é",[]]',
    ),
    (
        "map as JSON, in the order sent",
        AnyValue(
            kvlist_value=KeyValueList(
                values=[KeyValue(key="b", value=AnyValue(bytes_value=b"\xff")), KeyValue(key="n")]
            )
        ),
        '{"b":"/w==","n":null}',
    ),
)
def test_values_as_text(value, shown):
    assert text(value) == shown


def test_nesting_past_the_limit_is_marked():
    assert text(array(array(array())), Limits(nesting=2)) == '[["…"]]'


def test_long_json_is_cut_and_marked():
    assert text(array(*[AnyValue(int_value=7)] * 9), Limits(string_chars=5)) == "[7,7…"


def test_the_last_of_a_repeated_key_wins_and_keys_are_sorted():
    sent = [("b", "1"), ("a", "2"), ("b", "3")]
    pairs = [KeyValue(key=key, value=AnyValue(string_value=value)) for key, value in sent]
    assert tags(pairs, LIMITS) == (("a", "2"), ("b", "3"))


@cases(
    ("sent", "expected"),
    ("Java, a broker", "node-2", (2, "broker")),
    ("Java, broker 0", "node-0", (0, "broker")),
    ("Java, first bootstrap address", "node--1", (None, "bootstrap")),
    ("Java, third bootstrap address", "node--3", (None, "bootstrap")),
    ("Java, coordinator on broker 1", "node-2147483646", (1, "coordinator")),
    ("Java, coordinator on broker 0", "node-2147483647", (0, "coordinator")),
    ("librdkafka, a broker", "3", (3, "broker")),
    ("librdkafka, a bootstrap address or a coordinator", "-1", (None, None)),
    ("no number", "node-", (None, None)),
    ("no INT", "node-9999999999", (None, None)),
    ("digits that are not ASCII", "node-٣", (None, None)),
    ("not sent", None, (None, None)),
)
def test_nodes(sent, expected):
    assert node(sent) == expected


def test_places_of_either_client():
    sets = AttributeSets(LIMITS)
    for tags_ in (
        [("node_id", "node-2"), ("partition", "7"), ("topic", "orders")],
        [("node.id", "2")],
        [("node.id", "3"), ("node_id", "")],
        [("partition", "seven"), ("topic", "")],
    ):
        sets.number_of(Tags(tags_))
    assert {name: column.to_pylist() for name, column in places(sets).items()} == {
        "topic": ["orders", None, None, None],
        "partition": [7, None, None, None],
        "node_id": [2, 2, 3, None],
        "node_kind": ["broker", "broker", "broker", None],
    }
