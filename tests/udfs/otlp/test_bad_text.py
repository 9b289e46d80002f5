"""Text that is not UTF-8 costs the metric that has it, and no other."""

from typing import Any

import pyarrow as pa
import pytest
from google.protobuf.descriptor import FieldDescriptor
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from opentelemetry.proto.metrics.v1 import metrics_pb2 as otlp

from quotaflow.udfs.otlp import decode
from quotaflow.udfs.otlp.bad_text import BROKEN, COUNTS, metrics_left_out, refusal
from quotaflow.udfs.otlp.codecs import Limits
from quotaflow.udfs.otlp.descriptor import payload_class

from ... import case_tables
from ...cases import cases
from . import otlp_made, otlp_messages
from .otlp_made import attribute, gauge, point
from .otlp_twin import OF_BYTES, comparable
from .test_differential import assert_same

LIMITS = Limits()
SLOW = settings(
    deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


def status_and_rows(*payloads, limits=LIMITS):
    (run,) = decode.decode(pa.array(payloads), pa.array(["none"] * len(payloads)), limits)
    status = run.status.select(["unreadable_reason", "unreadable_metrics"]).to_pylist()
    return [tuple(row.values()) for row in status], run.points.to_pylist()


def spoiled(payload, text, times=1):
    """The payload with `text` made bytes that are not UTF-8, of the same length."""
    assert payload.count(text) == times
    return payload.replace(text, b"\xff" * len(text))


EXEMPLAR = otlp.Exemplar(filtered_attributes=[attribute("bad", string_value="v")])
BAD_METRICS = {
    "name": gauge(point(), name="bad"),
    "unit": gauge(point(), unit="bad"),
    "description": gauge(point(), description="bad"),
    "key": gauge(point(attributes=[attribute("bad", string_value="v")])),
    "value": gauge(point(attributes=[attribute("k", string_value="bad")])),
    "exemplar": gauge(point(exemplars=[EXEMPLAR])),
    "metadata": gauge(point(), metadata=[attribute("bad", string_value="v")]),
}


@cases("times", ("by protobuf", 1), ("by layout", 40))
@pytest.mark.parametrize("bad", BAD_METRICS.values(), ids=BAD_METRICS)
def test_one_string_of_a_metric_costs_that_metric(bad, times):
    good = [gauge(point(as_int=n), name=f"good{n}") for n in (1, 2)]
    payload = otlp_made.payload(good[0], bad, good[1])
    statuses, rows = status_and_rows(*[payload, spoiled(payload, b"bad")] * times)
    assert statuses == [(None, 0), (None, 1)] * times
    names = [row["metric"] for row in rows]
    assert names == ["good1", bad.name, "good2", "good1", "good2"] * times
    assert_same([spoiled(payload, b"bad"), payload])


def of_resource(rack="r", scope="s", url="u", scope_url="u"):
    metrics = [gauge(point(as_int=1), name=f"{rack}{scope}"), gauge(point(), name="other")]
    return otlp.ResourceMetrics(
        resource={"attributes": [attribute("client_rack", string_value=rack)]},
        scope_metrics=[
            otlp.ScopeMetrics(scope={"name": scope}, metrics=metrics, schema_url=scope_url)
        ],
        schema_url=url,
    )


@cases(
    ("around", "left_out"),
    ("resource", {"rack": "BAD"}, 2),
    ("scope", {"scope": "BAD"}, 2),
    ("schema URL of a resource", {"url": "BAD"}, 0),
    ("schema URL of a scope", {"scope_url": "BAD"}, 0),
)
def test_text_around_metrics_costs_the_metrics_that_have_it(around, left_out):
    bad = otlp.MetricsData(resource_metrics=[of_resource(**around)]).SerializeToString()
    bad = bad.replace(b"\x03BAD", b"\x03\xff\xff\xff")
    good = otlp.MetricsData(resource_metrics=[of_resource()]).SerializeToString()
    statuses, rows = status_and_rows(good + bad, bad + good, good)
    assert statuses == [(None, left_out), (None, left_out), (None, 0)]
    expected = ["rs", "other"]
    assert [row["metric"] for row in rows] == expected * 3
    assert_same([good + bad, bad + good, good])


def test_a_payload_may_lose_all_its_metrics():
    payload = otlp_made.payload(gauge(point(), name="bad"))
    assert status_and_rows(spoiled(payload, b"bad")) == ([(None, 1)], [])
    lost = otlp_made.payload(gauge(point()), resource=[attribute("bad")])
    assert status_and_rows(spoiled(lost, b"bad")) == ([(None, 1)], [])


def test_bad_text_without_a_metric_is_not_otlp():
    payload = spoiled(otlp_made.payload(resource=[attribute("bad")]), b"bad")
    assert status_and_rows(payload) == ([("not_otlp", None)], [])


def statuses_of(run):
    names = ("unreadable_reason", *COUNTS)
    return [tuple(row.values()) for row in run.status.select(names).to_pylist()]


BREAKS = {
    "a name longer than the metric": (b"\x0a\x03cut", b"\x0a\x7fcut"),
    "a tag of no wire type": (b"\x0a\x03cut", b"\x0f\x03cut"),
    "the end of a group that never began": (b"\x0a\x03cut", b"\x0c\x03cut"),
    "field zero": (b"\x0a\x03cut", b"\x02\x03cut"),
}


@cases("times", ("by protobuf", 1), ("by layout", 40))
@pytest.mark.parametrize("broken", BREAKS.values(), ids=BREAKS)
def test_a_broken_metric_costs_itself(broken, times):
    good = [gauge(point(as_int=n), name=f"good{n}") for n in (1, 2)]
    bad, cut = (gauge(point(), name=name) for name in ("bad", "cut"))
    whole = otlp_made.payload(*good)
    mixed = otlp_made.payload(good[0], cut, good[1]).replace(*broken)
    worse = spoiled(otlp_made.payload(cut, good[0], bad), b"bad").replace(*broken)
    lost = otlp_made.payload(cut).replace(*broken)
    payloads = [whole, mixed, worse, lost] * times
    (run,) = decode.decode(pa.array(payloads), pa.array(["none"] * len(payloads)), LIMITS)
    expected = [(None, 0, 0, 0), (None, 0, 1, 0), (None, 1, 1, 0), ("not_otlp", None, None, None)]
    assert statuses_of(run) == expected * times
    names = ["good1", "good2", "good1", "good2", "good1"]
    assert [row["metric"] for row in run.points.to_pylist()] == names * times
    assert_same(payloads)


@cases("around", ("a resource", {"rack": "cut"}), ("a scope", {"scope": "cut"}))
def test_what_is_broken_around_metrics_costs_them(around):
    good, cut = (
        otlp.MetricsData(resource_metrics=[of_resource(**each)]).SerializeToString()
        for each in ({}, around)
    )
    cut = cut.replace(b"\x0a\x03cut", b"\x0a\x7fcut", 1)
    (run,) = decode.decode(pa.array([cut + good, cut]), pa.array(["none"] * 2), LIMITS)
    assert statuses_of(run) == [(None, 0, 2, 0), ("not_otlp", None, None, None)]
    assert [row["metric"] for row in run.points.to_pylist()] == ["rs", "other"]
    assert_same([cut + good, cut])


@pytest.mark.parametrize("cut_bytes", [1, 2, 5])
def test_where_a_metric_does_not_end_in_its_payload_nothing_is_read(cut_bytes):
    payload = otlp_made.payload(gauge(point(), name="good"), gauge(point(), name="cut"))
    assert status_and_rows(payload[:-cut_bytes]) == ([("not_otlp", None)], [])


@SLOW
@given(otlp_messages.messages(), st.binary(min_size=1, max_size=40), st.integers(0, 9))
def test_whatever_is_no_metric_costs_nothing_else(message, inside, place):
    """The points of the others are those of the payload without it."""
    assume(message.resource_metrics and message.resource_metrics[0].scope_metrics)
    scope = message.resource_metrics[0].scope_metrics[0]
    scope.metrics.append(gauge(point(), name="good"))
    assume(refusal(otlp.Metric, inside) == BROKEN)
    outline: Any = payload_class().FromString(message.SerializeToString())
    outline.resource_metrics[0].scope_metrics[0].metrics.insert(place, inside)
    for times in (1, 5):
        payloads = [outline.SerializeToString(), message.SerializeToString()]
        runs = [
            next(decode.decode(pa.array([each] * times), pa.array(["none"] * times), LIMITS))
            for each in payloads
        ]
        assert comparable(runs[0].points.to_pylist()) == comparable(runs[1].points.to_pylist())
        counts = [(reason, text, broken) for reason, text, broken, _ in statuses_of(runs[0])]
        assert counts == [
            (reason, text, None if reason else broken + 1)
            for reason, text, broken, _ in statuses_of(runs[1])
        ]
    assert_same(payloads)


def test_metrics_are_counted_before_their_text_is_checked():
    metrics = [gauge(point(), name="bad"), *[otlp.Metric()] * 10]
    payload = spoiled(otlp_made.payload(*metrics, resource=[attribute("worse")]), b"worse")
    assert status_and_rows(payload, limits=Limits(points=10))[0] == [("points_over_limit", None)]
    assert status_and_rows(payload, limits=Limits(points=11))[0] == [(None, 11)]


@SLOW
@given(st.data())
def test_whatever_bytes_replace_one_string_the_points_of_others_are_the_same(data):
    message = data.draw(otlp_messages.messages())
    places = [
        (r, s, m)
        for r, resource in enumerate(message.resource_metrics)
        for s, scope in enumerate(resource.scope_metrics)
        for m, _ in enumerate(scope.metrics)
    ]
    assume(places)
    r, s, m = data.draw(st.sampled_from(places))
    changed = OF_BYTES.FromString(message.SerializeToString())
    metric = changed.resource_metrics[r].scope_metrics[s].metrics[m]
    original = message.resource_metrics[r].scope_metrics[s].metrics[m]
    owner, name = data.draw(st.sampled_from(list(strings(metric, original))))
    bad = data.draw(st.binary(max_size=4).map(lambda tail: b"\xff" + tail))
    setattr(owner, name, bad)
    del message.resource_metrics[r].scope_metrics[s].metrics[m]
    for times in (1, 5):
        payloads = [changed.SerializeToString(), message.SerializeToString()]
        statuses, rows = status_and_rows(*payloads[:1] * times)
        others, expected = status_and_rows(*payloads[1:] * times)
        assert comparable(rows) == comparable(expected)
        assert [reason for reason, _ in statuses] == [reason for reason, _ in others]
    assert_same(payloads)


def strings(message, original):
    """Every string of a message, as its owner in `message` and its name."""
    for field in original.DESCRIPTOR.fields:
        if field.type == FieldDescriptor.TYPE_STRING and not field.is_repeated:
            if field.containing_oneof is None or original.HasField(field.name):
                yield message, field.name
        elif field.message_type and field.is_repeated:
            pairs = zip(getattr(message, field.name), getattr(original, field.name), strict=True)
            for pair in pairs:
                yield from strings(*pair)
        elif field.message_type and original.HasField(field.name):
            yield from strings(getattr(message, field.name), getattr(original, field.name))


@cases("times", ("by protobuf", 1), ("by layout", 40))
def test_a_metric_without_a_name_costs_itself(times):
    nameless = [gauge(point(as_int=n), point(as_int=9), name="") for n in (1, 2)]
    good = [gauge(point(as_int=n), point(as_int=9), name=f"good{n}") for n in (1, 2)]
    mixed = otlp_made.payload(good[0], *nameless, good[1])
    whole, lost = otlp_made.payload(*good), otlp_made.payload(*nameless)
    (run,) = decode.decode(
        pa.array([whole, mixed, lost] * times), pa.array(["none"] * 3 * times), LIMITS
    )
    names = ("unreadable_reason", "unreadable_metrics", "unnamed_metrics")
    statuses = [tuple(row.values()) for row in run.status.select(names).to_pylist()]
    assert statuses == [(None, 0, 0), (None, 0, 2), ("not_otlp", None, None)] * times
    assert [row["metric"] for row in run.points.to_pylist()] == [
        name for _ in range(2 * times) for name in ("good1", "good1", "good2", "good2")
    ]
    assert_same([whole, mixed, lost] * times)


def test_a_metric_of_a_public_report_without_a_name_costs_itself(golden):
    payload = (golden / "otlp" / "name-empty.bin").read_bytes()
    (run,) = decode.decode(pa.array([payload]), pa.array(["none"]), LIMITS)
    assert run.status.column("unnamed_metrics").to_pylist() == [1]
    assert [row["value"] for row in run.points.to_pylist()] == [2.5]


@cases(
    ("bad", "broken", "unnamed", "expected"),
    *case_tables.rows(__file__, "metrics_that_are_left_out_are_counted_by_cause"),
)
def test_metrics_that_are_left_out_are_counted_by_cause(bad, broken, unnamed, expected):
    assert metrics_left_out(bad, broken, unnamed) == expected
