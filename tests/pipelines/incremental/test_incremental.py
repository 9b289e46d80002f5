"""A result table equals one pure function of its facts: however split, late, or replayed."""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.window import Window

from quotaflow.pipelines import config
from quotaflow.pipelines.config import AlertsSection, ProducerIdsSection
from quotaflow.pipelines.config.alerts import AlertRule
from quotaflow.pipelines.incremental.maintainer import ResultMaintainer
from quotaflow.pipelines.incremental.result import Result, RuleInputs
from quotaflow.pipelines.results import metric_alert_events
from quotaflow.pipelines.results.producer_ids import producer_id_rates, producer_id_uses
from quotaflow.pipelines.streaming.sinks import Batch
from quotaflow.pipelines.warehouse.time_ranges import EVER, TimeRange, sliced, within_any
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.table import DATE, LONG, TIMESTAMP, Column, Table
from quotaflow.schemas.tables.control import PIPELINE_PROGRESS
from quotaflow.schemas.tables.requests import REQUESTS

START = datetime(2026, 11, 21, 23, 58, tzinfo=UTC)
SECOND = timedelta(seconds=1)
Fact = dict[str, Any]


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


SUMS = Table(
    name="sums",
    comment="Sum of the producer ids of the last 30 s",
    columns=(
        Column("event_date", DATE, "UTC date"),
        Column("event_time", TIMESTAMP, "second"),
        Column("total", LONG, "sum over 30 s"),
    ),
    key=("event_time",),
    time="event_time",
    partitioning=("event_date",),
)
LATENESS_S = 300
_LONG = pytest.mark.faults
CONF = config.Conf(
    results=config.ResultsSection(max_lateness_s=LATENESS_S),
    producer_ids=ProducerIdsSection(
        num_windows=3, filter_window_ms=20_000, filter_items=50, default_quota_per_s=0.5
    ),
    alerts=AlertsSection(
        rules=[
            AlertRule(name="slow", metric="*.queue.time", above=10, clear=9, for_s=20, stale_s=60)
        ]
    ),
)


def sums() -> Result:
    """A rule that is not sequential and remembers 30 s; a fact may not show outside its bucket."""
    return Result(
        table=SUMS,
        facts=REQUESTS,
        bucket_s=10,
        lookback_s=30,
        is_relevant=producer_id_rates.is_sighting,
        prepare=producer_id_rates.sightings,
        compute=_sums,
    )


def _sums(inputs: RuleInputs) -> DataFrame:
    second = F.unix_seconds("event_time").alias("second")
    over = Window.partitionBy(F.lit(1)).orderBy("second").rangeBetween(-30, 0)
    time = F.timestamp_seconds("second")
    seconds = inputs.facts.groupBy(second).agg(F.sum("producer_id").alias("ids"))
    columns = {"event_time": time, "event_date": F.to_date(time), "total": F.sum("ids").over(over)}
    return seconds.withColumns(columns).select(SUMS.column_names)


def maintainer(result: Result) -> ResultMaintainer:
    return ResultMaintainer((result,), CONF)


def rates() -> Result:
    return producer_id_rates.result(CONF.producer_ids)


def uses() -> Result:
    """A rule that counts, and keeps rows for what else came in their minute."""
    return producer_id_uses.result()


def alerts() -> Result:
    """A rule that walks in Python, and remembers more than its last row says."""
    return metric_alert_events.result(CONF.alerts)


class Interrupted(Batch):
    """A batch whose process dies between its two writes."""

    def report(self, *_: object) -> None:
        raise InterruptedError


@dataclass(frozen=True, slots=True)
class Run:
    """A warehouse with facts and results, and one query that follows the facts."""

    spark: SparkSession
    warehouse: Warehouse
    maintainer: ResultMaintainer
    query_id: str = "first"

    @property
    def result(self) -> Result:
        return self.maintainer.results[0]

    def arrive(self, facts: list[Fact]) -> DataFrame:
        frame = as_frame(self.spark, self.result, facts)
        self.warehouse.write(frame.write.format("delta").mode("append"), self.result.facts.name)
        return frame

    def keep(self, facts: DataFrame, batch: Batch) -> None:
        self.maintainer.write(self.maintainer.arrivals(facts), batch)

    def batch(self, number: int, kind: type[Batch] = Batch) -> Batch:
        return kind(self.warehouse, "job", self.query_id, number)

    def table(self) -> list[tuple[Any, ...]]:
        return content(self.warehouse.read(self.spark, self.result.table.name))

    def progress(self) -> dict[str, int]:
        rows = self.warehouse.read(self.spark, PIPELINE_PROGRESS.name)
        of_query = rows.where(F.col("query_id") == self.query_id).groupBy("outcome")
        return {row[0]: row[1] for row in of_query.agg(F.sum("row_count")).collect()}


@pytest.fixture
def run(spark: SparkSession, tmp_path: Path) -> Callable[[Result], Run]:
    def make(result: Result) -> Run:
        warehouse = Warehouse(config.WarehouseSection(path=str(tmp_path)))
        warehouse.ensure(spark, [result.facts, PIPELINE_PROGRESS, result.table])
        return Run(spark, warehouse, maintainer(result))

    return make


def as_frame(spark: SparkSession, result: Result, facts: list[Fact]) -> DataFrame:
    return spark.createDataFrame(pa.Table.from_pylist(facts, schema=result.facts.arrow))


def content(frame: DataFrame) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in frame.collect()), key=str)


def whole(spark: SparkSession, result: Result, facts: list[Fact]) -> list[tuple[Any, ...]]:
    """The pure function over all of these facts at once."""
    seen = result.relevant_facts(as_frame(spark, result, facts))
    return content(result.compute(RuleInputs(seen)))


def is_late(fact: Fact) -> bool:
    delay: timedelta = fact["record_time"] - fact["event_time"]
    return delay > timedelta(seconds=LATENESS_S)


def made_up(dice: random.Random, rows: int = 300) -> list[Fact]:
    """Facts of some principals around midnight, a day apart, and far apart; some come late."""
    seconds = [0, 3, 30, 118, 121, 300, 900, 86_390, 86_410, 180_000, 180_060]
    facts = []
    for number in range(rows):
        time = at(dice.choice(seconds) + dice.randrange(12_000) / 1_000)
        delay_s = dice.choice([0, 1, 60, LATENESS_S, *([LATENESS_S + 1] if number % 3 else [])])
        facts.append(
            {
                "cluster_id": "c",
                "broker_id": dice.choice([1, 2]),
                "principal": f"User:{dice.choice('abcd')}",
                "event_time": time,
                "record_time": time + delay_s * SECOND,
                "producer_id": dice.choice([number, number % 20]),
                "error_code": dice.choice([0, 0, 0, None, 51]),
                "api": (api := dice.choice(["INIT_PRODUCER_ID", "END_TXN", "PRODUCE"])),
                "client_id": f"client-{dice.randrange(3)}",
            }
            | ({"producer_id": None} if api == "PRODUCE" else {})
        )
    return facts


def made_up_readings(dice: random.Random) -> list[Fact]:
    """Readings of two series around the bound of a rule, in hours far apart; some come late."""
    times_s = dice.sample(
        [t * 7 for t in (*range(300), *range(900, 1_200), *range(9_000, 9_300))], 500
    )
    return [
        {
            "cluster_id": "c",
            "series_id": number % 2,
            "metric": dice.choice(["a.queue.time", "a.queue.time", "b_queue.time"]),
            "value": dice.choice([4.0, 8.5, 9.5, 11.0, 12.0, 12.0, 12.0, float("nan")]),
            "client_id": f"client {time_s}",
            "attributes": [("of", "x")],
            "event_time": at(time_s),
            "record_time": at(time_s) + dice.choice([0, 1, 60, 60, LATENESS_S + 1]) * SECOND,
        }
        for number, time_s in enumerate(times_s)
    ]


def split(dice: random.Random, facts: list[Fact], batches: int) -> list[list[Fact]]:
    """The facts in a random order, cut at random; so most batches hold facts of every time."""
    shuffled = dice.sample(facts, len(facts))
    cuts = sorted(dice.sample(range(1, len(facts)), batches - 1))
    return [shuffled[a:b] for a, b in zip([0, *cuts], [*cuts, len(facts)], strict=True)]


def by_time(_dice: random.Random, facts: list[Fact], batches: int) -> list[list[Fact]]:
    """The facts in the order of their records."""
    ordered = sorted(facts, key=lambda fact: fact["record_time"])
    size = -(-len(facts) // batches)
    return [ordered[i : i + size] for i in range(0, len(facts), size)]


@pytest.mark.spark
@pytest.mark.parametrize(
    ("result", "cut"),
    [
        # In record order the last batches affect few buckets: ranges stay apart, rows are carried.
        pytest.param(rates, by_time, id="sequential rule, facts in record order"),
        pytest.param(
            alerts,
            by_time,
            id="sequential walk, facts in record order",
            marks=_LONG,
        ),
        pytest.param(rates, split, id="sequential rule, facts in any order", marks=_LONG),
        pytest.param(uses, split, id="rows of a minute, facts in any order", marks=_LONG),
        pytest.param(alerts, split, id="sequential walk, facts in any order", marks=_LONG),
        pytest.param(sums, by_time, id="lookback, facts in record order", marks=_LONG),
        pytest.param(sums, split, id="lookback, facts in any order", marks=_LONG),
    ],
)
def test_any_split_gives_the_same_table_as_the_function_over_all(
    run: Callable[[Result], Run],
    spark: SparkSession,
    result: Callable[[], Result],
    cut: Callable[..., list[list[Fact]]],
) -> None:
    dice = random.Random(f"{result.__name__} {cut.__name__}")
    facts = made_up_readings(dice) if result is alerts else made_up(dice)
    under = run(result())
    batches = cut(dice, facts, 4)
    # Ingest may be ahead: a batch may find facts in the table that a later one brings.
    frames = [under.arrive(batches[0]), under.arrive(batches[1])]
    under.keep(frames[0], under.batch(0))
    under.keep(frames[0], under.batch(0))
    with pytest.raises(InterruptedError):
        under.keep(frames[1], under.batch(1, Interrupted))
    frames.append(under.arrive(batches[2]))
    under.keep(frames[1], under.batch(1))
    under.keep(frames[2], under.batch(2))
    under.keep(under.arrive(batches[3]), under.batch(3))

    timely = [fact for fact in facts if not is_late(fact)]
    assert under.table() == whole(spark, under.result, timely)
    concerns = under.result.is_relevant
    assert concerns
    shown = as_frame(spark, under.result, facts).where(concerns())
    late = sum(is_late(row.asDict()) for row in shown.collect())
    counted = under.progress()
    assert (counted["in"], counted["late"]) == (shown.count(), late)
    assert late > 10


@pytest.mark.spark
@_LONG
def test_a_rebuild_takes_late_facts_in_and_a_lost_checkpoint_changes_nothing(
    run: Callable[[Result], Run], spark: SparkSession
) -> None:
    facts, under = made_up(random.Random(7)), run(rates())
    frame = under.arrive(facts)
    again = replace(under, query_id="second")
    under.keep(frame, under.batch(0))
    streamed = under.table()
    again.keep(frame, again.batch(0))
    assert under.table() == streamed
    rebuild, expected = replace(under, query_id="rebuild"), whole(spark, under.result, facts)
    days = [*sliced(at(-120), None, at(86_400), timedelta(days=1)), EVER]
    for number, time_range in enumerate(days):
        written = under.maintainer.rebuild(rebuild.batch(number), spark, time_range).total()
        # Up to the newest row, a slice after the other and all at once are the same.
        if time_range.end is None:
            assert under.table() == expected
    assert (written, len(days)) == (len(expected), 3)
    assert expected != streamed


@pytest.mark.spark
def test_a_batch_of_nothing_relevant_or_of_late_facts_leaves_the_result_alone(
    run: Callable[[Result], Run],
) -> None:
    under = run(sums())
    dice = random.Random(3)
    error = [fact | {"error_code": 51} for fact in made_up(dice, 5)]
    request = {"api": "INIT_PRODUCER_ID", "error_code": 0, "producer_id": 7}
    late = [
        fact | request | {"record_time": fact["event_time"] + 2 * LATENESS_S * SECOND}
        for fact in made_up(dice, 5)
    ]
    under.keep(under.arrive(error), under.batch(0))
    assert (under.table(), under.progress()) == ([], {})
    under.keep(under.arrive(late), under.batch(1))
    assert (under.table(), under.progress()) == ([], {"in": 5, "late": 5})


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
