"""The shapes of OTLP metrics tables over client_metrics."""

from datetime import date
from typing import Any

import pytest

from ... import case_tables
from ...cases import cases
from ...delta_tables import NOON
from ...rows import Row, at, cumulative, delta, gauge
from .view_tables import picked, view

NOON_NS = int(NOON.timestamp()) * 10**9
STRUCTS = ("gauge", "sum", "histogram", "exponential_histogram", "summary")
COLUMNS = ["record_id", "time", "date", "service_name", "start_time_unix_nano", "time_unix_nano"]
COLUMNS += ["name", "description", "unit", "metric_type", *STRUCTS, "metadata", "resource"]
COLUMNS += ["resource_schema_url", "instrumentation_scope", "metric_schema_url"]

HISTOGRAM = {"histogram_count": 3, "histogram_sum": 6.0, "histogram_min": 1.0, "histogram_max": 3.0}
HISTOGRAM |= {"flags": 0, "temporality": "cumulative"}


def one(point: Row) -> Row:
    (row,) = view("otel_metrics", {"client_metrics": [point]})
    return row


def test_a_gauge() -> None:
    values = {"attributes": {"node_id": "node-1"}, "resource": {"service.name": "o'b\\"}}
    values |= {"flags": 0}
    row = one(gauge(1.000001, "x.avg", 2.5, unit="ms", scope_name="s", **values))
    assert list(row) == COLUMNS
    assert row.pop("record_id").startswith("01795262401000001-")
    scope = dict.fromkeys(("version", "attributes", "dropped_attributes_count"))
    assert row == dict.fromkeys(COLUMNS[1:]) | {
        "time": at(1.000001),
        "date": date(2026, 11, 21),
        "service_name": "o'b\\",
        "time_unix_nano": NOON_NS + 1_000_001_000,
        "name": "org.apache.kafka.x.avg",
        "unit": "ms",
        "metric_type": "gauge",
        "gauge": {"value": 2.5, "exemplars": None, "flags": 0}
        | {"attributes": [("node_id", "node-1")]},
        "resource": {"attributes": [("service.name", "o'b\\")], "dropped_attributes_count": 0},
        "instrumentation_scope": scope | {"name": "s"},
    }


@pytest.mark.parametrize(
    ("labels", "service"),
    [
        ({"resource": {"service.name": "s"}, "application_id": "a", "group_id": "g"}, "s"),
        ({"application_id": "a", "group_id": "g"}, "a"),
        ({"group_id": "g"}, "g"),
        ({"group_id": ""}, "c"),
        ({"client_id": None}, None),
    ],
)
def test_a_service_has_the_name_that_a_kafka_client_gives(labels: Row, service: str | None) -> None:
    assert one(gauge(1, "x.avg", 2.5, **{"client_id": "c"} | labels))["service_name"] == service


@cases(
    ("point", "temporality"),
    ("delta", delta(2, 1, 4), "AGGREGATION_TEMPORALITY_DELTA"),
    ("cumulative", cumulative(2, 1, 4), "AGGREGATION_TEMPORALITY_CUMULATIVE"),
    ("neither", delta(2, 1, 4, temporality=None), "AGGREGATION_TEMPORALITY_UNSPECIFIED"),
)
def test_a_sum_names_its_temporality_as_the_enum(point: Row, temporality: str) -> None:
    row = one(point)
    assert row["sum"]["aggregation_temporality"] == temporality
    assert (row["sum"]["value"], row["sum"]["is_monotonic"]) == (4, True)
    assert row["start_time_unix_nano"] == NOON_NS + 10**9


@cases(("columns", "expected"), *case_tables.rows(__file__, "only_the_struct_of_its_kind_is_there"))
def test_only_the_struct_of_its_kind_is_there(
    columns: dict[str, Any], expected: dict[str, Any]
) -> None:
    row, kind = one(gauge(1, "x", 0.0, **HISTOGRAM, **columns)), columns["kind"]
    assert [name for name in STRUCTS if row[name] is not None] == [kind]
    assert {name: row[kind][name] for name in expected} == expected


def test_ids_stay_the_same_tell_points_apart_and_sort_by_time() -> None:
    points = [
        delta(10, 0, 1),
        delta(9, 0, 1),
        delta(10, 5, 1),
        delta(10, 0, 1, series_id=7),
        delta(10, 0, 1, payload_sha256="other"),
        delta(10, 0, 1, cluster_id="c2"),
    ]
    actual = view("otel_metrics ORDER BY record_id", {"client_metrics": points})
    assert len({row["record_id"] for row in actual}) == len(points)
    assert [row["time"] for row in actual] == sorted(row["time"] for row in actual)
    again = view("otel_metrics", {"client_metrics": points * 2})
    assert {row["record_id"] for row in again} == {row["record_id"] for row in actual}


def test_what_a_broker_refused_is_left_out() -> None:
    points = [delta(10, 0, 1), delta(20, 10, 1, accepted=False)]
    assert picked(view("otel_metrics", {"client_metrics": points}), "time") == [(at(10),)]


@pytest.mark.parametrize(
    ("dropped", "expected"),
    [("12", 12), ("", 0), ("12x", 0), ("-1", 0), ("9999999999", 0), (None, 0)],
)
def test_a_hostile_count_of_dropped_attributes_is_none(dropped: str | None, expected: int) -> None:
    row = one(gauge(1, "x", 1, resource={"otel.dropped_attributes_count": dropped}))
    assert row["resource"]["dropped_attributes_count"] == expected


def test_a_time_without_nanoseconds_is_null() -> None:
    far = NOON.replace(year=2500)
    row = one(delta(1, 0, 1, event_time=far))
    assert (row["time"], row["time_unix_nano"]) == (far, None)
    assert row["start_time_unix_nano"] == NOON_NS
