"""Time ranges that a batch of facts affects."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession

from quotaflow.pipelines.compute.affected import AffectedBuckets
from quotaflow.pipelines.compute.result import Result
from quotaflow.pipelines.warehouse.time_ranges import TimeRange, merged, sliced, within_any
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.schemas.tables.declared import REQUESTS
from quotaflow.udfs.engine.rule import Rule

from ...cases import cases

START = datetime(2026, 11, 21, 23, 58, tzinfo=UTC)


def result(carry_s: int = 0) -> Result:
    """Buckets of 10 s, and a rule that remembers 30 s."""
    facts, table = REQUESTS, TABLES["producer_id_rates"]
    rule = Rule(table.name, "SELECT 1", table.arrow)
    return Result(table, facts, 10, 30, rule=rule, carry_s=carry_s)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def ends(time_ranges: Iterable[TimeRange]) -> list[tuple[float, float | None]]:
    def since_start(time: datetime) -> float:
        return (time - START).total_seconds()

    return [(since_start(s.start), since_start(s.end) if s.end else None) for s in time_ranges]


@cases(
    ("starts", "expected"),
    ("a bucket reaches as far as the rule remembers it", [0], [(0, 40)]),
    ("overlapping ranges are one", [0, 10], [(0, 50)]),
    ("so are touching ones", [0, 40], [(0, 80)]),
    ("a gap is not recomputed", [0, 50], [(0, 40), (50, 90)]),
    ("buckets may come in any order", [50, 0, 10], [(0, 90)]),
    ("late and timely rows of one bucket", [0, 0], [(0, 40)]),
)
def test_spans(starts: list[float], expected: list[tuple[float, float]]) -> None:
    assert ends(result().time_ranges(map(at, starts))) == expected


def test_a_sequential_result_runs_from_the_first_touched_bucket_to_the_end() -> None:
    assert ends(result(carry_s=60).time_ranges(map(at, [50, 20]))) == [(20, None)]
    forward = replace(result(), runs_forward=True)
    assert ends(forward.time_ranges(map(at, [50, 20]))) == [(20, None)]
    assert forward.time_ranges([]) == []


def test_a_result_that_trails_computes_again_what_was_a_while_before() -> None:
    trailing = replace(result(), lookahead_s=30)
    assert ends(trailing.time_ranges(map(at, [50, 200]))) == [(20, 90), (170, 240)]


@given(st.lists(st.integers(0, 10_000), min_size=1, max_size=120))
def test_joined_spans_cover_all_are_few_and_stay_apart(starts: list[int]) -> None:
    time_ranges = result().time_ranges(map(at, starts))
    assert len(time_ranges) <= 32
    pairs = ends(time_ranges)
    assert all((a[1] or 0) < b[0] for a, b in pairwise(pairs))
    for start in starts:
        assert any(low <= start and start + 40 <= (high or 0) for low, high in pairs)


def test_the_nearest_spans_are_joined_first_when_there_are_too_many() -> None:
    starts = [100 * i for i in range(33)] + [3_255]
    pairs = ends(result().time_ranges(map(at, starts)))
    assert len(pairs) == 32
    # 3200..3240 and 3255..3295 are 15 s apart, the others 60 s: those two, then the first two.
    assert (pairs[0], pairs[-1]) == ((0, 140), (3_200, 3_295))


def test_a_span_without_an_end_swallows_what_follows() -> None:
    assert ends(merged([TimeRange(at(500), at(600)), TimeRange(at(0))])) == [(0, None)]


def test_what_holds_since_a_time_touches_all_that_follows_its_bucket() -> None:
    assert ends(result().time_ranges([at(0), at(200)], at(105))) == [(0, 40), (100, None)]
    assert ends(result(carry_s=60).time_ranges([at(50)], at(25))) == [(20, None)]
    assert result().time_ranges([]) == []


@cases(
    ("time_range", "time", "date"),
    (
        "open",
        TimeRange(at(0)),
        "t >= timestamp'2026-11-21 23:58:00.000000Z'",
        "d >= date'2026-11-21'",
    ),
    (
        "up to midnight",
        TimeRange(at(0), at(120)),
        "(t >= timestamp'2026-11-21 23:58:00.000000Z' "
        "AND t < timestamp'2026-11-22 00:00:00.000000Z')",
        "(d >= date'2026-11-21' AND d <= date'2026-11-22')",
    ),
)
def test_spans_in_sql(time_range: TimeRange, time: str, date: str) -> None:
    assert (time_range.condition("t"), time_range.date_condition("d")) == (time, date)


@cases(
    ("start", "end", "until", "expected"),
    ("whole slices", 0, 20, 99, [(0, 10), (10, 20)]),
    ("the last one is shorter", 0, 15, 99, [(0, 10), (10, 15)]),
    ("less than one", 0, 5, 99, [(0, 5)]),
    ("nothing", 9, 9, 99, []),
    ("less than nothing", 9, 5, 99, []),
    ("open at its end", 0, None, 15, [(0, 10), (10, None)]),
    ("open, and less than one", 0, None, 3, [(0, None)]),
    ("open, from a time to come", 9, None, 3, [(9, None)]),
)
def test_slices_cover_the_time_from_start_to_end(
    start: int, end: int | None, until: int, expected: list[tuple[float, float | None]]
) -> None:
    stop = None if end is None else at(end)
    slices = sliced(at(start), stop, at(until), timedelta(seconds=10))
    assert ends(slices) == expected


@cases(
    ("kept_since", "time_ranges", "expected"),
    ("the rule looks back to what is gone", 0, [(0, 20)], []),
    ("from where it looks back to what is kept", 0, [(0, 90)], [(30, 90)]),
    ("whole buckets", 1, [(0, 90)], [(40, 90)]),
    ("only what is before is left out", 0, [(0, 20), (30, 40)], [(30, 40)]),
    ("open at its end", 0, [(20, None)], [(30, None)]),
    ("all is kept", -90, [(0, 40)], [(0, 40)]),
)
def test_what_retention_took_the_facts_of_is_not_computed(
    kept_since: int,
    time_ranges: list[tuple[int, int | None]],
    expected: list[tuple[int, int | None]],
) -> None:
    given = [TimeRange(at(start), None if end is None else at(end)) for start, end in time_ranges]
    assert ends(result().computable(given, at(kept_since))) == expected


@given(st.integers(-(10**9), 10**9), st.booleans())
def test_a_bucket_begins_where_the_window_of_its_facts_does(milliseconds: int, up: bool) -> None:
    time = START + timedelta(milliseconds=milliseconds)
    bucket = result().bucket(time, up=up)
    assert bucket.timestamp() % 10 == 0
    past = (time - bucket).total_seconds()
    assert -10 < past <= 0 if up else 0 <= past < 10


def test_facts_before_all_that_is_computed_are_counted() -> None:
    affected = AffectedBuckets(rows_by_bucket={at(0): 3, at(10): 4, at(20): 5})
    assert affected.rows_before([TimeRange(at(10), at(20)), TimeRange(at(20))]) == 3
    assert affected.rows_before([]) == 12
    assert AffectedBuckets().rows_before([]) == 0


@contextmanager
def compiling(spark: SparkSession) -> Iterator[None]:
    """Spark as it is for jobs: tests do without Java of stages."""
    compiled = {"wholeStage": "true", "factoryMode": "CODEGEN_ONLY"}
    settings = {f"spark.sql.codegen.{key}": value for key, value in compiled.items()}
    before = {key: spark.conf.get(key) for key in settings}
    for key, value in settings.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, value in before.items():
            spark.conf.set(key, str(value))


@pytest.mark.spark
def test_the_times_of_a_batch_are_no_part_of_the_java_of_its_stages(spark: SparkSession) -> None:
    seconds = spark.range(int(at(0).timestamp()), int(at(60).timestamp()))
    facts = seconds.selectExpr("timestamp_seconds(id) AS event_time", "id % 7 AS size")

    def rows_where(where: str) -> DataFrame:
        return facts.where(where).selectExpr("size + 1 AS more", "event_time")

    def java(where: str) -> set[str]:
        with compiling(spark):
            stages = rows_where(where)._jdf.queryExecution().debug().codegenToSeq()  # type: ignore[attr-defined]
            return {stages.apply(stage)._2() for stage in range(stages.size())}

    batches = [
        [TimeRange(at(0), at(10)), TimeRange(at(30), at(40))],
        [TimeRange(at(20), at(30)), TimeRange(at(50))],
    ]
    one, other = (within_any(time_ranges, "event_time") for time_ranges in batches)
    assert java(one) == java(other) != set()
    assert java(batches[0][0].condition("event_time")) != java(
        batches[1][0].condition("event_time")
    )
    for time_ranges, where in zip(batches, (one, other), strict=True):
        assert rows_where(where).count() == 20, time_ranges
