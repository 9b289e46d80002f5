"""Alerts on client metrics: the readings that a rule names, and events from facts to rows."""

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import example, given
from hypothesis import strategies as st

from quotaflow.pipelines.compute.computation import Computation
from quotaflow.pipelines.compute.local import compute_over
from quotaflow.pipelines.config import AlertsSection, Conf
from quotaflow.pipelines.config.alerts import AlertRule
from quotaflow.pipelines.results.declared import result_of
from quotaflow.pipelines.warehouse.time_ranges import EVER, TimeRange
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.schemas.tables.declared import CLIENT_METRICS
from quotaflow.udfs.alerts import alert_id
from quotaflow.udfs.engine.rule import Files

from ...cases import cases
from ...examples import EXPENSIVE
from ...rule_rows import Rows, compute
from .splits import assert_parts_equal_whole

START = datetime(2026, 11, 21, 23, 58, tzinfo=UTC)
QUEUE_TIME = "org.apache.kafka.producer.record.queue.time.avg"
HOSTILE = "'; DROP TABLE client_metrics; --\\\n\u202e%_!$since"


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def rule(name: str = "slow", metric: str = QUEUE_TIME, **others: Any) -> AlertRule:
    bounds = {"above": 10, "clear": 9, "for_s": 20, "stale_s": 60}
    return AlertRule.model_validate({"name": name, "metric": metric} | bounds | others)


def reading(second: float, value: float | None = 12.0, **others: Any) -> dict[str, Any]:
    row = {"cluster_id": "c", "series_id": 1, "metric": QUEUE_TIME, "value": value}
    return row | {"event_time": at(second), "record_time": at(second)} | others


def alerts_of(*rules: AlertRule) -> Any:
    return result_of("metric_alert_events", Conf(alerts=AlertsSection(rules=list(rules))))


def events(rules: list[AlertRule], readings: Rows, **others: Any) -> Rows:
    rows = compute(alerts_of(*rules), client_metrics=readings, **others)
    return sorted(rows, key=lambda row: (row["event_time"], row["rule"], row["series_id"]))


LABELS = {"of": "x", HOSTILE: HOSTILE}


@cases(
    ("rules", "others", "names"),
    ("the metric's name", [rule()], {}, {"slow"}),
    ("any metric", [rule(metric="*")], {}, {"slow"}),
    ("any text between", [rule(metric="org.*.avg")], {}, {"slow"}),
    ("no text", [rule(metric="*")], {"metric": ""}, {"slow"}),
    ("lines", [rule(metric="*")], {"metric": "a\nb"}, {"slow"}),
    ("not a part of the name", [rule(metric="queue.time")], {}, set()),
    ("case counts", [rule(metric=QUEUE_TIME.upper())], {}, set()),
    ("_ is itself", [rule(metric="a_b")], {"metric": "a.b"}, set()),
    ("_ matches itself", [rule(metric="a_b")], {"metric": "a_b"}, {"slow"}),
    ("% is itself", [rule(metric="a%")], {"metric": "a.b"}, set()),
    ("! matches itself", [rule(metric="a!_%*")], {"metric": "a!_%b"}, {"slow"}),
    ("? and [] are themselves", [rule(metric="a?[b]")], {"metric": "a.b"}, set()),
    ("any text of conf", [rule(metric=HOSTILE)], {"metric": HOSTILE}, {"slow"}),
    ("no value", [rule()], {"value": None}, set()),
    ("NaN", [rule()], {"value": float("nan")}, set()),
    ("infinity", [rule()], {"value": float("inf")}, {"slow"}),
    ("a label, no attributes", [rule(labels={"of": "x"})], {}, set()),
    ("none at all", [rule(labels={"of": "x"})], {"attributes": []}, set()),
    ("label", [rule(labels={"of": "x"})], {"attributes": [("of", "x"), ("b", "c")]}, {"slow"}),
    ("another value", [rule(labels={"of": "x"})], {"attributes": [("of", "y")]}, set()),
    ("a null value", [rule(labels={"of": "x"})], {"attributes": [("of", None)]}, set()),
    ("one of two labels", [rule(labels=LABELS)], {"attributes": [("of", "x")]}, set()),
    ("any label", [rule(labels=LABELS)], {"attributes": list(LABELS.items())}, {"slow"}),
    ("two rules", [rule(), rule("all", "*"), rule("other", "b*")], {}, {"slow", "all"}),
    ("no rules", [], {}, set()),
)
def test_the_readings_that_a_rule_names(
    rules: list[AlertRule], others: dict[str, Any], names: set[str]
) -> None:
    readings = [reading(second, **others) for second in (0, 30)]
    opened = [row for row in events(rules, readings) if row["state"] == "opened"]
    assert {row["rule"] for row in opened} == names


def test_only_readings_that_a_rule_names_are_relevant() -> None:
    """The facts of the rule, which the declaration counts and selects, are those of the text."""
    relevant = alerts_of(rule(labels={"of": "x"}), rule("b", "b*")).relevant
    assert relevant == (
        f"NOT isnan(value) AND ((metric LIKE '{QUEUE_TIME}' ESCAPE '!' AND attributes['of'] = 'x')"
        " OR (metric LIKE 'b%' ESCAPE '!'))"
    )
    assert alerts_of().relevant == "NOT isnan(value) AND (false)"


def test_the_columns_of_an_event() -> None:
    client = {"client_instance_id": "i", "principal": "User:a", "client_address": "10.0.0.1"}
    software = {"client_software_name": "librdkafka", "client_software_version": "2.16.0"}
    of_reading = client | software | {"unit": "ms", "attributes": [("of", "x")], "broker_id": 3}
    readings = [
        reading(0, 11, client_id="first", **of_reading),
        reading(10, 15, client_id="second", **of_reading),
        reading(30.25, 12, client_id="third", **of_reading),
        reading(40, 8, client_id="fourth", **of_reading),
    ]
    opened, closed = events([rule(subscribe_interval_s=5)], readings)
    assert list(opened) == TABLES["metric_alert_events"].column_names
    assert opened == of_reading | {
        "cluster_id": "c",
        "event_date": START.date(),
        "event_time": at(30.25),
        "alert_id": alert_id("c", "slow", 1, int(START.timestamp() * 1_000)),
        "rule": "slow",
        "severity": "warning",
        "owner": None,
        "watched": None,
        "shown": None,
        "state": "opened",
        "reason": None,
        "first_breach": at(0),
        "last_reading": at(30.25),
        "bound": 10.0,
        "value": 12.0,
        "peak_value": 15.0,
        "points": 3,
        "subscribe_metrics": "org.apache.kafka.producer.",
        "subscribe_interval_ms": 5_000,
        "series_id": 1,
        "metric": QUEUE_TIME,
        "client_id": "third",
    }
    changed = {
        "event_time": at(40),
        "last_reading": at(40),
        "state": "closed",
        "reason": "cleared",
        "client_id": "fourth",
    }
    assert closed == opened | changed | {"value": 8.0, "points": 4}


def test_of_readings_at_one_time_the_lowest_counts() -> None:
    """Of equal ones the first by its columns, in any order of the facts."""
    readings = [
        reading(0, 11),
        reading(30, 12, client_id="b"),
        reading(30, 12, client_id="a"),
        reading(30, 13),
    ]
    for seed in range(4):
        opened, closed = events([rule()], random.Random(seed).sample(readings, 4))
        assert (opened["value"], opened["client_id"], closed["client_id"]) == (12, "a", "a")


def test_nan_in_a_file_is_no_reading(tmp_path: Path) -> None:
    """The statistics of a file say nothing about NaN, and DuckDB takes them for the bounds."""
    readings = [reading(at_s, value) for at_s, value in ((0, 11), (10, float("nan")), (30, 12))]
    computation = Computation(alerts_of(rule()), (EVER,))
    rows = pa.Table.from_pylist(readings, schema=CLIENT_METRICS.arrow)
    pq.write_table(rows, tmp_path / "facts.parquet")
    carried = TABLES["metric_alert_events"].arrow.empty_table()
    files = Files((str(tmp_path / "facts.parquet"),), CLIENT_METRICS.arrow)
    for facts in (files, rows):
        relations = {"client_metrics": facts, "carried_rows": carried}
        opened, _ = compute_over(computation, relations).to_pylist()
        assert (opened["event_time"], opened["points"]) == (at(30), 2)


def test_an_alert_of_a_removed_rule_goes_stale() -> None:
    opened, _ = events([rule()], [reading(0), reading(30)])
    (closed,) = compute(
        alerts_of(rule("other")),
        [TimeRange(at(120))],
        client_metrics=[reading(0), reading(30)],
        carried_rows=[opened],
    )
    assert (closed["alert_id"], closed["state"], closed["reason"]) == (
        opened["alert_id"],
        "closed",
        "stale",
    )
    assert (closed["last_reading"], closed["event_time"]) == (at(30), at(30 + 3_600))
    assert [closed[name] for name in ("bound", "subscribe_metrics", "subscribe_interval_ms")] == [
        None,
        None,
        None,
    ]


@st.composite
def steady_readings(draw: st.DrawFn) -> Rows:
    """Readings of two series, steadily past the bounds of a rule or not, for some hours."""
    readings, second = list[dict[str, Any]](), 0
    for _ in range(draw(st.integers(0, 10))):
        step_s, value = draw(st.sampled_from([(7, 12.0), (20, 8.5), (900, 8.0), (3_000, 7.0)]))
        for _ in range(draw(st.integers(1, 8))):
            second += step_s
            others = {"series_id": draw(st.sampled_from([1, 1, 1, 2])), "client_id": f"at {second}"}
            metric = draw(st.sampled_from(["a.queue.time"] * 5 + ["b_queue.time"]))
            readings.append(reading(second, value, metric=metric, **others))
        second += draw(st.sampled_from([0, 0, 61, 4_001, 9_000]))
    return draw(st.permutations(readings))


RULES = (
    rule(metric="*.queue.time"),
    rule("low", "*", above=None, clear=None, below=9, for_s=0, stale_s=4_000),
)


@EXPENSIVE
@given(readings=steady_readings(), minute=st.integers(0, 600))
def test_readings_after_a_time_change_no_event_up_to_it(readings: Rows, minute: int) -> None:
    """So an event that is written ahead of its time is true once the time has come."""
    now = at(60 * minute)

    def events_by_now(rows: Rows) -> Rows:
        return [row for row in events(list(RULES), rows) if row["event_time"] <= now]

    by_now = [row for row in readings if row["event_time"] <= now]
    assert events_by_now(by_now) == events_by_now(readings)


@EXPENSIVE
@example(readings=[reading(20 * n, client_id=f"at {n}") for n in range(900)], minutes={1, 280})
@given(readings=steady_readings(), minutes=st.sets(st.integers(0, 600), min_size=1, max_size=3))
def test_parts_of_time_and_parts_of_series_equal_the_whole(
    readings: Rows, minutes: set[int]
) -> None:
    cuts = [at(60 * minute) for minute in sorted(minutes)]
    assert_parts_equal_whole(alerts_of(*RULES), cuts, client_metrics=readings)
