"""A replayed micro-batch writes once: appends, replacements, and both kinds of queries."""

import json
import shutil
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from quotaflow.pipelines import config
from quotaflow.pipelines.spark import failures
from quotaflow.pipelines.streaming import checkpoints, sinks, sources
from quotaflow.pipelines.streaming.sinks import Batch, Count
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.table import DATE, LONG, STRING, TIMESTAMP, Column, Table
from quotaflow.schemas.tables.declared import PIPELINE_PROGRESS

NUMBERS, EVENS = (
    Table(
        name=name,
        comment="Numbers",
        columns=(
            Column("n", LONG, "a number"),
            Column("day", DATE, "a date"),
            Column("cluster_id", STRING, "the cluster it is of"),
            Column("event_time", TIMESTAMP, "when it was"),
        ),
        key=("n",),
        time="day",
    )
    for name in ("numbers", "evens")
)
TIME = datetime(2026, 11, 21, tzinfo=UTC)
Frame = Callable[..., DataFrame]


@pytest.fixture
def frame(spark: SparkSession) -> Frame:
    def make(*numbers: int) -> DataFrame:
        same = {"day": TIME.date(), "cluster_id": "c", "event_time": TIME, "not in the table": 0}
        return spark.createDataFrame(pa.Table.from_pylist([{"n": n, **same} for n in numbers]))

    return make


@pytest.fixture
def warehouse(spark: SparkSession, tmp_path: Path) -> Warehouse:
    warehouse = Warehouse(config.WarehouseSection(path=str(tmp_path)))
    warehouse.ensure(lambda: spark, [NUMBERS, EVENS])
    return warehouse


def content(warehouse: Warehouse, spark: SparkSession, table: str = "numbers") -> list[int]:
    return sorted(row["n"] for row in warehouse.read(spark, table).collect())


def test_the_query_id_is_the_checkpoint_s(tmp_path: Path) -> None:
    (tmp_path / "metadata").write_text(json.dumps({"id": "q1"}), encoding="utf-8")
    assert checkpoints.query_id(tmp_path) == "q1"


@pytest.mark.spark
def test_a_batch_appends_once_per_table_and_query(
    spark: SparkSession, warehouse: Warehouse, frame: Frame
) -> None:
    batch = Batch(warehouse, "job", "q1", 4)
    batch.append(frame(1, 2), NUMBERS)
    batch.append(frame(1, 2), NUMBERS)
    assert content(warehouse, spark) == [1, 2]
    batch.append(frame(2), EVENS)
    assert content(warehouse, spark, "evens") == [2]
    Batch(warehouse, "job", "q1", 5).append(frame(3), NUMBERS)
    Batch(warehouse, "job", "q1", 4).append(frame(1, 2), NUMBERS)
    assert content(warehouse, spark) == [1, 2, 3]
    Batch(warehouse, "job", "q2", 0).append(frame(4), NUMBERS)
    assert content(warehouse, spark) == [1, 2, 3, 4]


@pytest.mark.faults
@pytest.mark.spark
def test_a_replacement_takes_what_matches_away_even_without_rows(
    spark: SparkSession, warehouse: Warehouse, frame: Frame
) -> None:
    Batch(warehouse, "job", "q1", 0).append(frame(1, 5, 6, 9), NUMBERS)
    Batch(warehouse, "job", "q1", 1).replace(frame(5, 7), NUMBERS, "n >= 5 AND n < 9")
    Batch(warehouse, "job", "q1", 1).replace(frame(8), NUMBERS, "n >= 5 AND n < 9")
    assert content(warehouse, spark) == [1, 5, 7, 9]
    Batch(warehouse, "job", "q1", 2).replace(frame(5).where("false"), NUMBERS, "n = 9 OR n = 1")
    assert content(warehouse, spark) == [5, 7]


@pytest.mark.spark
def test_what_a_batch_counted_is_told_once_and_zeros_are_not(
    spark: SparkSession, warehouse: Warehouse
) -> None:
    warehouse.ensure(lambda: spark, [PIPELINE_PROGRESS])
    counts = [Count("in", 3), Count("out", 0, "numbers"), Count("late", 1, "numbers", "too_late")]
    for _ in range(2):
        Batch(warehouse, "job", "q1", 7).report(lambda: spark, counts, "c", TIME)
    rows = [row.asDict() for row in warehouse.read(spark, "pipeline_progress").collect()]
    fixed = {"cluster_id": "c", "job": "job", "query_id": "q1", "batch_id": 7}
    assert all(fixed.items() <= row.items() for row in rows)
    shown = sorted((row["outcome"], row["target"], row["reason"], row["row_count"]) for row in rows)
    assert shown == [("in", None, None, 3), ("late", "numbers", "too_late", 1)]
    assert {row["event_time"].astimezone(UTC) for row in rows} == {TIME}
    replayed = Batch(warehouse, "job", "q1", 7, replayed=True)
    assert replayed.appended(spark, PIPELINE_PROGRESS) == len(rows)


@pytest.mark.spark
def test_a_clock_that_is_ahead_makes_nothing_look_fresh(
    spark: SparkSession, warehouse: Warehouse
) -> None:
    warehouse.ensure(lambda: spark, [PIPELINE_PROGRESS])
    ahead = datetime.now(UTC) + timedelta(days=1)
    Batch(warehouse, "job", "q1", 7).report(lambda: spark, [Count("in", 1)], "c", ahead)
    (row,) = warehouse.read(spark, "pipeline_progress").collect()
    assert row["event_time"].astimezone(UTC) <= datetime.now(UTC)


@pytest.mark.spark
def test_times_are_told_in_utc_wherever_the_machine_is(
    spark: SparkSession, warehouse: Warehouse, frame: Frame, monkeypatch: pytest.MonkeyPatch
) -> None:
    warehouse.ensure(lambda: spark, [PIPELINE_PROGRESS])
    monkeypatch.setenv("TZ", "Asia/Shanghai")
    time.tzset()
    try:
        latest = frame(1).agg(F.max("event_time")).collect()[0][0]
        Batch(warehouse, "job", "q1", 7).report(lambda: spark, [Count("in", 1)], "c", latest)
    finally:
        monkeypatch.undo()
        time.tzset()
    times = warehouse.read(spark, "pipeline_progress").select(F.unix_seconds("event_time"))
    assert [row[0] for row in times.collect()] == [TIME.timestamp()]


@pytest.mark.spark
def test_two_parts_of_a_batch_append_to_one_table(
    spark: SparkSession, warehouse: Warehouse, frame: Frame
) -> None:
    warehouse.ensure(lambda: spark, [NUMBERS])
    for _ in range(2):
        Batch(warehouse, "job", "q1", 0).append(frame(1), NUMBERS)
        Batch(warehouse, "job", "q1", 0, "/source").append(frame(2), NUMBERS)
    assert content(warehouse, spark) == [1, 2]


@pytest.mark.spark
@pytest.mark.faults
def test_queries_go_on_after_a_crash_between_writing_and_committing(
    spark: SparkSession, warehouse: Warehouse, frame: Frame
) -> None:
    conf = config.Conf()
    warehouse.ensure(lambda: spark, [COPIES])
    Batch(warehouse, "source", "q0", 0).append(frame(1, 2, 3), NUMBERS)

    def write(rows: DataFrame, batch: Batch) -> None:
        batch.append(rows.where("n % 2 = 0"), EVENS)

    def copy(rows: DataFrame, batch: Batch) -> None:
        batch.append(rows, COPIES)

    def run() -> None:
        rows = sources.read_table(spark, conf.results, warehouse, "numbers")
        queries = [
            sinks.start(rows, "evens", warehouse, write, sinks.ONCE),
            sinks.start(rows, "copies", warehouse, copy, sinks.ONCE),
        ]
        assert all(query.awaitTermination(300) for query in queries)

    run()
    forget_commits(warehouse)
    Batch(warehouse, "source", "q0", 1).append(frame(4, 5, 6), NUMBERS)
    run()
    run()
    assert content(warehouse, spark, "copies") == [1, 2, 3, 4, 5, 6]
    assert content(warehouse, spark, "evens") == [2, 4, 6]


COPIES = Table(name="copies", comment="Copies", columns=NUMBERS.columns, key=("n",), time="day")


@pytest.mark.spark
@pytest.mark.faults
def test_a_column_added_to_a_table_that_is_read_costs_one_start(
    spark: SparkSession, warehouse: Warehouse, frame: Frame
) -> None:
    def write(rows: DataFrame, batch: Batch) -> None:
        batch.append(rows, EVENS)

    def start(trigger: sinks.Trigger) -> StreamingQuery:
        rows = sources.read_table(spark, config.ResultsSection(), warehouse, "numbers")
        return sinks.start(rows, "evens", warehouse, write, trigger)

    Batch(warehouse, "source", "q0", 0).append(frame(1, 2), NUMBERS)
    running = start({"processingTime": "1 second"})
    running.processAllAvailable()
    spark.sql(f"ALTER TABLE {warehouse.target('numbers')} ADD COLUMNS (later STRING)")
    Batch(warehouse, "source", "q0", 1).append(frame(3), NUMBERS)
    with pytest.raises(StreamingQueryException) as stopped:
        running.awaitTermination(300)
    assert failures.is_transient(str(stopped.value))
    assert start(sinks.ONCE).awaitTermination(300)
    assert content(warehouse, spark, "evens") == [1, 2, 3]


def forget_commits(warehouse: Warehouse) -> None:
    """Leave checkpoints as a process that died right after Delta's commit would."""
    for job in ("evens", "copies"):
        shutil.rmtree(warehouse.checkpoint(job) / "commits")
        (warehouse.checkpoint(job) / "commits").mkdir()


@pytest.mark.spark
@pytest.mark.faults
def test_a_catalog_takes_the_same_writes(
    spark: SparkSession, catalog: Warehouse, frame: Frame
) -> None:
    catalog.ensure(lambda: spark, [NUMBERS, EVENS])
    for _ in range(2):
        Batch(catalog, "job", "q1", 0).append(frame(1, 2), NUMBERS)
    Batch(catalog, "job", "q1", 1).replace(frame(3), NUMBERS, "n = 2 OR n = 3")
    assert content(catalog, spark) == [1, 3]
    rows = sources.read_table(spark, config.ResultsSection(), catalog, "numbers")

    def write(rows: DataFrame, batch: Batch) -> None:
        batch.append(rows, EVENS)

    query = sinks.start(rows, "evens", catalog, write, sinks.ONCE)
    assert query.awaitTermination(300)
    assert content(catalog, spark, "evens") == [1, 3]
