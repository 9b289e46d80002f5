"""Rolled-up rows of `quota_usage` answer as the windows that they replace."""

import json
import math
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotaflow.pipelines import config
from quotaflow.pipelines.maintenance.roll_up import HOUR_S, MINUTE_S, OldRange, RollUp, rolled_up
from quotaflow.pipelines.streaming.sinks import Batch
from quotaflow.pipelines.warehouse import row_writer, views
from quotaflow.pipelines.warehouse.folder_reader import FolderReader
from quotaflow.pipelines.warehouse.sql_dialects import in_duckdb
from quotaflow.pipelines.warehouse.time_ranges import TimeRange
from quotaflow.pipelines.warehouse.warehouse import OpenSession, Warehouse
from quotaflow.schemas.tables.catalog import TABLES

from ...examples import EXPENSIVE
from ...oracle.rules.usage_histogram import MAX_ERROR
from ...rows import Row
from ...rule_rows import database
from ...schemas.views import view_tables
from .quota_windows import MIDNIGHT, NOW, PER, WINDOW_S, days, in_order, table, window

NO_SPARK = cast("OpenSession", None)


def in_range(rows: pa.Table, first_h: int, end_h: int, length_s: int) -> pa.Table:
    """The rows after the hours of a range were rolled up."""
    hours = TimeRange(MIDNIGHT + timedelta(hours=first_h), MIDNIGHT + timedelta(hours=end_h))
    done = rolled_up(rows, OldRange("c1", hours, length_s, rows.num_rows), WINDOW_S, database())
    assert hours.end is not None
    kept = [r for r in rows.to_pylist() if not hours.start <= r["event_time"] < hours.end]
    return pa.concat_tables([table(kept), done])


PERCENTILES = """
SELECT
    quota_type, '{view}' AS of,
    min(CASE WHEN nth >= 0.5 * of_all THEN usage END) AS p50,
    min(CASE WHEN nth >= 0.99 * of_all THEN usage END) AS p99,
    CAST(max(of_all) AS BIGINT) AS windows
FROM (
    SELECT
        quota_type, usage, sum(windows) OVER (PARTITION BY quota_type ORDER BY usage) AS nth,
        sum(windows) OVER (PARTITION BY quota_type) AS of_all
    FROM {view}
)
GROUP BY quota_type
ORDER BY quota_type
"""
SUMS = """
SELECT
    CAST(sum(amount) AS BIGINT) AS amount, CAST(sum(request_count) AS BIGINT) AS requests,
    CAST(sum(windows) AS BIGINT) AS windows, max(peak_usage) AS peak,
    max(quota_bucket_usage) AS bucket_peak, min(headroom) AS headroom,
    CAST(sum(throttled_requests) AS BIGINT) AS throttled,
    sum(throttle_time_ms) AS throttle_time_ms
FROM quota_usage
"""
USAGE_BY_TIME = "SELECT sum(usage * period_s) AS used FROM quota_usage"
WINDOW_VIEWS = ("client_usage_windows", "user_usage_windows")


@cache
def view(name: str) -> str:
    return in_duckdb(views.load()[name].sql)


def answers(rows: pa.Table, *queries: str) -> list[list[Row]]:
    """The answers of DuckDB over these rows, and over the views of windows."""
    over = database().over({"quota_usage": rows})
    # The relation becomes a view with the first query.
    list(over.query("SELECT CAST(1 AS INT) AS n", pa.schema({"n": pa.int32()})))
    for name in WINDOW_VIEWS:
        database().connection.execute(f"CREATE OR REPLACE TEMP VIEW {name} AS {view(name)}")
    tables = [database().connection.sql(sql).to_arrow_table() for sql in queries]
    return [rows.to_pylist() for rows in tables]


AMOUNTS = st.one_of(
    st.integers(0, 10), st.integers(0, 10**6), st.integers(0, 11 * 10**12), st.just(0)
)
"""From nothing to a terabyte a second."""
CLIENTS = st.sampled_from(["orders", "clicks"])


@st.composite
def histories(draw: st.DrawFn) -> list[Row]:
    """Windows of three hours: few or many, of one or two clients."""
    numbers = draw(
        st.sets(st.integers(0, 3 * 327), min_size=1, max_size=draw(st.sampled_from((5, 60))))
    )
    rows = []
    for number in sorted(numbers):
        for client in sorted(draw(st.sets(CLIENTS, min_size=1))):
            kind = draw(st.sampled_from(sorted(PER)))
            quota = draw(st.sampled_from((None, 1_000.0, 2_000.0)))
            throttled = draw(st.sampled_from((0, 0, 2)))
            rows.append(
                window(
                    number,
                    draw(AMOUNTS),
                    client_id=client,
                    quota_type=kind,
                    quota=quota,
                    quota_level=None if quota is None else draw(st.sampled_from((1, 3, 6))),
                    throttled_requests=throttled,
                    throttle_time_ms=throttled * 1.5,
                    throttled_by=kind if throttled else None,
                )
            )
    return rows


@given(histories(), st.sampled_from(((0, 3), (0, 1), (1, 2), (2, 3))), st.integers(0, 3))
@EXPENSIVE
def test_answers_over_any_time_are_those_over_windows(
    rows: list[Row], minutes: tuple[int, int], hours: int
) -> None:
    windows = table(rows)
    mixed = in_range(in_range(windows, *minutes, MINUTE_S), 0, hours, HOUR_S)
    queries = [SUMS, USAGE_BY_TIME, *(PERCENTILES.format(view=name) for name in WINDOW_VIEWS)]
    sums, used, *percentiles = answers(windows, *queries)
    mixed_sums, mixed_used, *mixed_percentiles = answers(mixed, *queries)
    assert mixed_sums == sums
    assert mixed_used[0] == pytest.approx(used[0], rel=1e-12)
    for before, after in zip(percentiles, mixed_percentiles, strict=True):
        exact = ("quota_type", "of", "windows")
        assert [[row[name] for name in exact] for row in after] == [
            [row[name] for name in exact] for row in before
        ]
        near = [row[name] for row in after for name in ("p50", "p99")]
        true = [row[name] for row in before for name in ("p50", "p99")]
        assert near == pytest.approx(true, rel=MAX_ERROR + 1e-9)


@given(histories())
@EXPENSIVE
def test_hours_of_minutes_are_hours_of_windows(rows: list[Row]) -> None:
    windows = table(rows)
    minutes = in_range(windows, 0, 3, MINUTE_S)
    hours = in_range(windows, 0, 3, HOUR_S)
    assert in_order(in_range(minutes, 0, 3, HOUR_S)) == in_order(hours)
    assert in_order(in_range(hours, 0, 3, HOUR_S)) == in_order(hours)
    assert in_order(in_range(minutes, 0, 3, MINUTE_S)) == in_order(minutes)


def test_a_row_is_unique_by_its_key() -> None:
    rows = [
        window(n, 100 * n, quota=quota, quota_level=3, throttled_requests=n % 2, client_id=client)
        for n, quota in enumerate((1.0, 1.0, 2.0, 2.0))
        for client in ("a", "b")
    ]
    done = in_range(table(rows), 0, 1, HOUR_S).to_pylist()
    keys = Counter(tuple(row[name] for name in TABLES["quota_usage"].key) for row in done)
    assert len(done) == 8
    assert set(keys.values()) == {1}


def test_a_row_covers_the_windows_that_start_in_its_minute() -> None:
    rows = [window(n, 1_100) for n in range(327)]
    minutes = in_range(table(rows), 0, 1, MINUTE_S).to_pylist()
    assert {(row["period_s"], row["windows"]) for row in minutes} == {(55, 5), (66, 6)}
    assert {row["usage"] for row in minutes} == {100.0}
    assert [row["event_time"] for row in minutes] == [
        MIDNIGHT + timedelta(minutes=n) for n in range(60)
    ]
    (hour,) = in_range(table(rows), 0, 1, HOUR_S).to_pylist()
    assert (hour["period_s"], hour["usage"], hour["amount"]) == (3_597, 100.0, 327 * 1_100)


def test_usage_is_over_the_whole_time_and_its_peak_over_a_window() -> None:
    (hour,) = in_range(table([window(0, 1_100), window(9, 3_300)]), 0, 1, HOUR_S).to_pylist()
    assert hour["usage"] == 4_400 / 3_597
    assert (hour["peak_usage"], hour["windows"], hour["request_count"]) == (300.0, 2, 6)
    assert [each["windows"] for each in hour["usage_histogram"]] == [1, 1]


class Place:
    """A warehouse with windows of some days, and their roll-up."""

    def __init__(self, folder: Path, *overrides: str, rows_at_once: int = 4) -> None:
        self.conf = config.load(overrides=[f"warehouse.path={folder}", *overrides])
        self.warehouse = Warehouse(self.conf.warehouse)
        tables = (TABLES["quota_usage"], TABLES["pipeline_progress"])
        self.warehouse.ensure(NO_SPARK, tables)
        self.messages: list[str] = []
        self.rolling = RollUp(
            NO_SPARK, self.conf, self.warehouse, self.messages.append, rows_at_once
        )

    def put(self, rows: Iterable[Row]) -> None:
        row_writer.append(NO_SPARK, self.warehouse, TABLES["quota_usage"], table(list(rows)))

    def run(self, now: datetime) -> int:
        due = self.rolling.due(now)
        self.rolling.run(due)
        return len(due)

    def rows(self, sql: str = "SELECT * FROM quota_usage") -> list[Row]:
        return FolderReader(self.warehouse).rows(sql)

    def lengths(self, cluster_id: str = "c1") -> dict[int, set[int | None]]:
        """How long rows are, by days after the first."""
        lengths = defaultdict[int, set[int | None]](set)
        for row in self.rows():
            if row["cluster_id"] == cluster_id:
                lengths[(row["event_time"] - MIDNIGHT).days].add(row["rolled_up_s"])
        return dict(lengths)


@pytest.mark.faults
def test_windows_become_minutes_after_a_day_and_hours_after_seven(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.put(days(10))
    before = place.rows("SELECT sum(amount) AS a, max(peak_usage) AS p FROM quota_usage")
    assert place.run(NOW) > 2
    assert place.lengths() == {0: {3600}, 1: {3600}} | {n: {60} for n in range(2, 8)} | {
        8: {None},
        9: {None},
    }
    assert place.rows("SELECT sum(amount) AS a, max(peak_usage) AS p FROM quota_usage") == before
    assert place.run(NOW) == 0
    assert place.run(NOW + timedelta(days=300)) == 0, "days are counted from the newest window"


def test_each_cluster_goes_by_its_own_newest_window(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.put([*days(10), *days(3, cluster_id="it's \\ $c")])
    place.run(NOW)
    assert place.lengths("it's \\ $c") == {0: {60}, 1: {None}, 2: {None}}
    assert place.lengths()[0] == {3600}


@pytest.mark.faults
@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("upkeep.minutes_after_days=null", {0: {3600}, 1: {3600}, 2: {None}}),
        ("upkeep.hours_after_days=null", {0: {60}, 1: {60}, 2: {60}}),
    ],
)
def test_conf_turns_each_length_off(
    tmp_path: Path, override: str, expected: dict[int, set[int | None]]
) -> None:
    place = Place(tmp_path, override)
    place.put(days(10))
    place.run(NOW)
    assert {n: place.lengths()[n] for n in expected} == expected


def test_what_was_rolled_up_is_counted(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.put(days(10))
    place.run(NOW)
    counted = place.rows("SELECT outcome, sum(row_count) AS n FROM pipeline_progress GROUP BY 1")
    rolled = [row for row in place.rows() if row["rolled_up_s"]]
    before = [row for row in days(10) if row["event_time"] < MIDNIGHT + timedelta(days=8)]
    assert {row["outcome"]: row["n"] for row in counted} == {"in": len(before), "out": len(rolled)}
    assert place.messages[0] == (
        "quota_usage: 3 rows of 2026-11-01 00:00 to 2026-11-01 01:00 were rolled up to 1 row of "
        "hours"
    )


def test_each_roll_up_is_counted_also_after_a_clock_went_back_and_the_log_names_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Place(tmp_path)
    for cluster_id, clock_s in (("c1", 2_000_000_000), ("c2", 1_900_000_000)):
        monkeypatch.setattr("time.time_ns", lambda clock_s=clock_s: clock_s * 10**9)
        place.put(days(3, cluster_id=cluster_id))
        place.run(NOW)
    counted = place.rows("SELECT DISTINCT cluster_id FROM pipeline_progress")
    assert sorted(row["cluster_id"] for row in counted) == ["c1", "c2"]
    log = (tmp_path / "pipeline_progress" / "_delta_log").glob("*.json")
    actions = [json.loads(line) for commit in log for line in commit.read_text().splitlines()]
    assert [each for each in actions if "txn" in each] == []


VIEWS = {
    "throttled_clients": (
        "cluster_id, hour, principal, client_id, quota_type, throttled_by, throttled_requests, "
        "request_count, throttle_time_ms, broker_count, share_requests"
    ),
    "quota_headroom": "*",
}


@pytest.mark.faults
def test_views_answer_over_rolled_up_rows_as_over_windows(tmp_path: Path) -> None:
    place = Place(tmp_path)
    causes = ("producer_byte_rate", "request_percentage", None)
    rows = [
        row
        | {"client_id": client, "quota": 90.0, "quota_level": 3, "quota_bucket_user": "alice"}
        | {"throttled_requests": n % 3 // 2, "throttle_time_ms": n % 3 // 2 * 1.5}
        | {"throttled_by": causes[n % 5 % 3] if n % 3 == 2 else None}
        | {"share_requests": n % 4, "is_lower_bound": n % 4 > 0}
        for n, row in enumerate(days(10))
        for client in ("orders", "clicks")
    ]
    place.put(rows)
    queries = [f"SELECT {columns} FROM {name}" for name, columns in VIEWS.items()]
    before = [sorted(place.rows(sql), key=str) for sql in queries]
    place.run(NOW)
    assert [sorted(place.rows(sql), key=str) for sql in queries] == before
    assert all(before)


ADVICE_SUMS = ("advice", "quota", "quota_level", "peak_usage", "windows", "windows_in_force")


def test_quotas_are_advised_from_rolled_up_rows_as_from_windows(tmp_path: Path) -> None:
    place = Place(tmp_path, "upkeep.hours_after_days=3", rows_at_once=5_000)
    place.warehouse.ensure(NO_SPARK, [TABLES[name] for name in ADVICE_TABLES])
    dice = random.Random(3)
    own = {"quota_level": 1, "quota": 1.0}
    rows = [
        row
        | {"principal": principal, "client_id": client, "broker_id": broker}
        | (own if client == "own" else limit)
        for principal, limit in USERS.items()
        for client, broker in (("orders", 1), ("clicks", 1), ("clicks", 2), ("own", 1))
        for n in range(0, 6 * 7_854, 131)
        for row in [window(n, int(10 ** dice.uniform(0, 9)), **thrown(dice))]
    ]
    place.put(rows)
    advice = "SELECT * FROM quota_advice ORDER BY user, quota_type"
    before = view_tables.rows(place.warehouse, advice)
    place.run(NOW)
    after = view_tables.rows(place.warehouse, advice)
    for name in (*ADVICE_SUMS, "throttled_windows", "until"):
        assert [row[name] for row in after] == [row[name] for row in before], name
    for name in ("percentile_usage", "recommended"):
        near = pytest.approx([row[name] for row in before], rel=0.05)
        assert [row[name] for row in after] == near, name
    assert {row["advice"] for row in before} == {"set", "raise"}
    assert {row["rolled_up_s"] for row in place.rows()} == {None, 60, 3_600}


ADVICE_TABLES = (
    *("settings", "fetch_sizes", "config_changes", "config_alterations", "configs"),
    "client_quotas",
)
USERS = {"User:alice": {"quota": None}, "User:bob": {"quota": 5e4, "quota_level": 3}}


def thrown(dice: random.Random) -> Row:
    """Throttled or not."""
    if dice.random() < 0.5:
        return {}
    return {"throttled_requests": 1, "throttled_by": "producer_byte_rate"}


class Killed(BaseException):
    """The process ends here."""


@pytest.mark.faults
@pytest.mark.parametrize("survived", [0, 1, 3])
@pytest.mark.parametrize("at", ["replace", "report"])
def test_a_kill_at_any_write_leaves_each_window_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: str, survived: int
) -> None:
    expected, place = Place(tmp_path / "whole"), Place(tmp_path / "killed")
    for each in (expected, place):
        each.put(days(4))
    expected.run(NOW)
    sums = "SELECT sum(amount) AS a, sum(windows) AS w, max(peak_usage) AS p FROM quota_usage"
    writes, left = (row_writer.replace, Batch.report), [survived]

    def killing(write: Callable[..., Any], *args: Any) -> Any:
        if not left[0]:
            raise Killed
        left[0] -= 1
        return write(*args)

    with monkeypatch.context() as patched:
        if at == "replace":
            patched.setattr(row_writer, "replace", lambda *args: killing(writes[0], *args))
        else:
            patched.setattr(Batch, "report", lambda *args: killing(writes[1], *args))
        with pytest.raises(Killed):
            place.run(NOW)
    assert place.rows(sums) == expected.rows(sums)
    place.run(NOW)
    assert in_order(table(place.rows())) == in_order(table(expected.rows()))
    assert math.isclose(place.rows(sums)[0]["p"], max(r["peak_usage"] for r in days(4)))
