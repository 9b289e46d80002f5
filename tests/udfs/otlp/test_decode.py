"""The decoder's face: statuses, limits, what a row holds, and the functions Spark maps."""

import hashlib
import math
from datetime import UTC, datetime

import pyarrow as pa
from google.protobuf.wrappers_pb2 import BytesValue
from opentelemetry.proto.metrics.v1 import metrics_pb2 as otlp_pb

from quotaflow.schemas.tables.declared import CLIENT_METRICS
from quotaflow.udfs.otlp import decode as otlp
from quotaflow.udfs.otlp.codecs import Limits
from quotaflow.udfs.otlp.columns import SCHEMA

from ...cases import cases
from .otlp_made import NOW, NOW_NS, attribute, gauge, payload, point

LIMITS = Limits()


def decode(*payloads, limits=LIMITS, codec="none"):
    runs = list(
        otlp.decode(pa.array(payloads, pa.binary()), pa.array([codec] * len(payloads)), limits)
    )
    return pa.Table.from_batches([run.points for run in runs]).to_pylist()


def reasons(*payloads, limits=LIMITS):
    status = otlp.check(pa.array(payloads, pa.binary()), pa.array(["none"] * len(payloads)), limits)
    return status.column("unreadable_reason").to_pylist()


@cases(
    ("data", "reason"),
    ("no bytes at all are legal: no metric matched", b"", None),
    ("a resource without metrics", payload(), None),
    ("a metric without points", payload(gauge()), None),
    ("not even a name, but no point either", payload(gauge(name="")), None),
    ("only a field OTLP does not have", b"\x10\x01", "not_otlp"),
    ("a resource of unknown fields", b"\x0a\x02\x40\x01", "not_otlp"),
    ("text", b"hello, broker", "not_otlp"),
    ("cut off", payload(gauge(point()))[:-1], "not_otlp"),
    ("a point without a name", payload(gauge(point(), name="")), "not_otlp"),
    ("a length near 2^64: ptars would panic", b"\x0a" + b"\xff" * 9 + b"\x01", "not_otlp"),
    ("a resource cut off", b"\x0a\x04\x0a\x02\x0a\x7f", "not_otlp"),
    ("a schema_url that is no UTF-8", b"\x0a\x04\x1a\x02\xff\xfe", "not_otlp"),
)
def test_what_is_otlp(data, reason):
    whole = payload(gauge(point(as_int=1)))
    assert reasons(whole, data, whole) == [None, reason, None]
    assert len(decode(whole, data, whole)) == 2


def test_status_of_each_payload():
    whole, text = payload(gauge(point())), b"hello, broker"
    codecs = pa.array(["none", "none", "zstd", None, "none"])
    status = otlp.check(pa.array([whole, text, text, whole, None], pa.binary()), codecs, LIMITS)
    assert status.schema == otlp.STATUS
    assert status.column("decoded_bytes").to_pylist() == [len(whole), None, None, None, 0]
    assert status.column("payload_sha256").to_pylist() == [
        hashlib.sha256(whole).hexdigest(),
        hashlib.sha256(text).hexdigest(),
        None,
        None,
        hashlib.sha256(b"").hexdigest(),
    ]
    assert status.column("unreadable_reason").to_pylist() == [
        None,
        "not_otlp",
        "corrupt_payload",
        "unknown_codec",
        None,
    ]


def test_no_payloads_have_no_status():
    nothing = pa.array([], pa.binary()), pa.array([], pa.string())
    assert otlp.check(*nothing, LIMITS).num_rows == 0
    assert list(otlp.decode(*nothing, LIMITS)) == []


@cases("times", ("by protobuf", 1), ("by layout", 5))
@cases(
    ("sent", "expected"),
    ("a double", {"as_double": 0.5}, {"value": 0.5, "value_int": None}),
    ("infinity", {"as_double": math.inf}, {"value": math.inf}),
    ("exact integers", {"as_int": 2**53 + 1}, {"value": 2.0**53, "value_int": 2**53 + 1}),
    ("no value", {"flags": 1}, {"value": None, "value_int": None, "flags": 1}),
    ("start 0 is not set", {}, {"event_time": NOW, "start_time": None}),
    ("time 0 is not set", {"time_unix_nano": 0}, {"event_time": None}),
    (
        "the last time there is",
        {"time_unix_nano": 2**64 - 1},
        {"event_time": datetime(2554, 7, 21, 23, 34, 33, 709551, tzinfo=UTC)},
    ),
)
def test_numbers_and_times(times, sent, expected):
    for row in decode(*[payload(gauge(point(**sent)))] * times):
        assert {name: row[name] for name in expected} == expected


def test_nan_is_kept():
    (row,) = decode(payload(gauge(point(as_double=math.nan))))
    assert math.isnan(row["value"])


@cases(
    ("name", "unit", "expected"),
    ("known", "org.apache.kafka.producer.request.latency.avg", "", ("ms", True)),
    ("sent", "org.apache.kafka.producer.request.latency.avg", "us", ("us", True)),
    ("an application's", "org.apache.kafka.shop.orders.total", "", (None, False)),
    ("another's, unit as sent", "org.example.unheard.of", "1", ("1", False)),
)
def test_unit_and_whether_the_catalogue_has_the_name(name, unit, expected):
    (row,) = decode(payload(gauge(point(), name=name, unit=unit)))
    assert (row["unit"], row["in_catalogue"]) == expected


@cases("times", ("by protobuf", 1), ("by layout", 5))
def test_duplicates_inside_a_payload_appear_once(times):
    metric = gauge(point(as_int=1))
    later = gauge(point(as_int=1, time_unix_nano=NOW_NS + 1_000))
    rows = decode(*[payload(metric, metric, later)] * times)
    assert len(rows) == 2 * times


def test_connections_that_share_a_node_id_are_no_duplicates():
    """librdkafka gives all but its brokers the node.id -1."""
    node = [attribute("node.id", int_value=-1)]
    latencies = [point(as_double=ms, attributes=node) for ms in (1.5, 2.5, 1.5)]
    rows = decode(payload(gauge(*latencies)))
    assert [row["value"] for row in rows] == [1.5, 2.5]


def test_no_number_and_zeros_of_both_kinds_are_no_duplicates():
    zeros = [point(), point(as_double=0.0), point(as_int=0)]
    rows = decode(payload(gauge(*zeros)))
    assert [(row["value"], row["value_int"]) for row in rows] == [
        (None, None),
        (0.0, None),
        (0.0, 0),
    ]


def test_duplicates_are_told_by_what_they_say_not_by_their_bytes():
    """A repeated key, last wins: other bytes, the same resource."""
    once, twice = [attribute("k", string_value="v")], [attribute("k", string_value="v")] * 2
    metric = gauge(point(as_int=1))
    assert len(decode(payload(metric, resource=once) + payload(metric, resource=twice))) == 1


def test_limit_on_points():
    many = payload(gauge(*[point(as_int=i, attributes=[attribute(str(i))]) for i in range(11)]))
    few = payload(gauge(point()))
    limits = Limits(points=10)
    assert reasons(few, many, few, limits=limits) == [None, "points_over_limit", None]
    assert reasons(many, limits=Limits(points=11)) == [None]


def test_a_flood_of_empty_points_is_counted_not_made():
    flood = payload(gauge(*[otlp_pb.NumberDataPoint()] * 200_000))
    assert reasons(flood) == ["points_over_limit"]


def test_a_flood_of_empty_metrics_is_refused():
    flood = payload(*[otlp_pb.Metric()] * 200_000)
    assert reasons(flood) == ["points_over_limit"]
    # Its resource comes in three parts, which protobuf merges.
    (of_resource,) = otlp_pb.MetricsData.FromString(flood).resource_metrics
    parts = b"\n\0\n\0" + of_resource.SerializeToString()
    torn = BytesValue(value=parts).SerializeToString()
    few = payload(gauge(point()))
    assert reasons(few, torn, few) == [None, "points_over_limit", None]


EXEMPLARS = otlp_pb.NumberDataPoint(exemplars=[otlp_pb.Exemplar()] * 10)
QUANTILES = otlp_pb.SummaryDataPoint(
    quantile_values=[otlp_pb.SummaryDataPoint.ValueAtQuantile()] * 10
)
BUCKETS = otlp_pb.ExponentialHistogramDataPoint(
    positive={"bucket_counts": [1] * 200}, negative={"bucket_counts": [1] * 120}
)
BOUNDS = otlp_pb.HistogramDataPoint(bucket_counts=[1] * 160, explicit_bounds=[1.0] * 160)


@cases(
    "data",
    ("exemplars", {"gauge": otlp_pb.Gauge(data_points=[EXEMPLARS])}),
    ("quantiles", {"summary": otlp_pb.Summary(data_points=[QUANTILES])}),
    (
        "exponential buckets",
        {"exponential_histogram": otlp_pb.ExponentialHistogram(data_points=[BUCKETS])},
    ),
    ("buckets", {"histogram": otlp_pb.Histogram(data_points=[BOUNDS])}),
)
def test_what_a_point_brings_along_counts_as_points(data):
    many, few = payload(otlp_pb.Metric(name="m", **data)), payload(gauge(point()))
    assert reasons(few, many, few, limits=Limits(points=11)) == [None] * 3
    assert reasons(few, many, few, limits=Limits(points=10)) == [None, "points_over_limit", None]
    mixed = payload(gauge(point()), otlp_pb.Metric(name="m", **data))
    assert reasons(mixed, limits=Limits(points=11)) == ["points_over_limit"]


def test_resources_and_scopes_are_counted_before_they_are_made():
    resources = otlp_pb.MetricsData(resource_metrics=[otlp_pb.ResourceMetrics()] * 11)
    scopes = otlp_pb.ResourceMetrics(scope_metrics=[otlp_pb.ScopeMetrics()] * 11)
    for many in (resources, otlp_pb.MetricsData(resource_metrics=[scopes])):
        data = many.SerializeToString()
        assert reasons(data, limits=Limits(points=10)) == ["points_over_limit"]
        assert reasons(data, limits=Limits(points=11)) == [None]


def test_attributes_left_out_are_counted_not_made():
    attributes = [attribute("k", int_value=1)] * 100
    (row,) = decode(payload(gauge(point(attributes=attributes))), limits=Limits(attributes=2))
    assert row["attributes"] == [("k", "1"), ("otel.dropped_attributes_count", "98")]


def test_limit_on_text_repeated_in_rows():
    """A resource is repeated in every row of its points: little on the wire, much in the table."""
    points = [point(as_int=i, time_unix_nano=NOW_NS + 1_000 * i) for i in range(1_000)]
    resource = [attribute("k", string_value="x" * 1_000)]
    data = payload(gauge(*points), resource=resource)
    assert reasons(data, limits=Limits(flat_bytes=1_000_000)) == ["rows_over_limit"]
    assert reasons(data) == [None]


@cases("times", ("by protobuf", 1), ("by layout", 5))
def test_too_long_and_too_many_are_cut_and_marked(times):
    attributes = [attribute(str(i), string_value="longer than that") for i in range(5)]
    data = payload(gauge(point(attributes=attributes), name="a long name", unit="a long unit"))
    for row in decode(*[data] * times, limits=Limits(attributes=2, string_chars=6)):
        assert row["metric"] == row["unit"].replace("unit", "name") == "a lon…"
        assert row["attributes"] == [
            ("0", "longe…"),
            ("1", "longe…"),
            ("otel.dropped_attributes_count", "3"),
        ]


def test_runs_are_bounded_and_parents_are_right(monkeypatch):
    monkeypatch.setattr(otlp, "_RUN_BYTES", 100)
    data = [payload(gauge(point(as_int=i))) for i in range(20)]
    runs = list(otlp.decode(pa.array(data), pa.array(["none"] * 20), LIMITS))
    assert len(runs) > 2
    values = [
        (p, v) for r in runs for p, v in zip(r.parent, r.points.column("value_int"), strict=True)
    ]
    assert [(p.as_py(), v.as_py()) for p, v in values] == [(i, i) for i in range(20)]


def test_decoded_columns_are_columns_of_client_metrics():
    assert [field.type for field in SCHEMA] == [
        CLIENT_METRICS.arrow.field(name).type for name in SCHEMA.names
    ]
