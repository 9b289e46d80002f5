"""Several results on the same facts: one that fails, and what they look up."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from quotaflow.pipelines import config
from quotaflow.pipelines.incremental import result_state
from quotaflow.pipelines.incremental.maintainer import ResultMaintainer
from quotaflow.pipelines.incremental.result import LookupTable, Result, RuleInputs
from quotaflow.pipelines.results.as_of import with_since
from quotaflow.pipelines.streaming.sinks import Batch
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.table import DATE, LONG, STRING, TIMESTAMP, Column, Table
from quotaflow.schemas.tables.control import PIPELINE_PROGRESS
from quotaflow.schemas.tables.requests import REQUESTS
from quotaflow.schemas.tables.snapshots import CONFIGS

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def result_table(name: str) -> Table:
    return Table(
        name=name,
        comment="Requests per minute, and the config that stands",
        columns=(
            Column("event_date", DATE, "UTC date"),
            Column("event_time", TIMESTAMP, "minute"),
            Column("requests", LONG, "requests of the minute"),
            Column("config", STRING, "the newest value set before the minute"),
        ),
        key=("event_time",),
        time="event_time",
        partitioning=("event_date",),
    )


def result(name: str, broken: list[bool] | None = None, *, reaches_back: bool = False) -> Result:
    def compute(inputs: RuleInputs) -> DataFrame:
        if broken and broken[0]:
            return inputs.facts.select(F.raise_error(F.lit("no such rule")).alias("event_time"))
        minute = F.date_trunc("minute", "event_time")
        counts = inputs.facts.groupBy(minute.alias("minute")).agg(F.count("*").alias("requests"))
        seen = inputs.lookups["configs"]
        if reaches_back:
            seen = with_since(seen).withColumn("event_time", F.col("since"))
        configs = seen.select("event_time", "config_value")
        joined = counts.join(configs, F.col("event_time") <= F.col("minute"), "left")
        newest = F.max_by("config_value", "event_time").alias("config")
        rows = (
            joined.groupBy("minute", "requests")
            .agg(newest)
            .withColumn("event_time", F.col("minute"))
        )
        return rows.withColumn("event_date", F.to_date("minute"))

    return Result(
        table=result_table(name),
        facts=REQUESTS,
        bucket_s=60,
        lookback_s=0,
        prepare=lambda requests: requests.select("cluster_id", "event_time"),
        compute=compute,
        lookups=(LookupTable(CONFIGS, reaches_back=reaches_back),),
    )


class Query:
    """A query of results over a warehouse of its own."""

    def __init__(self, spark: SparkSession, folder: Path, *results: Result) -> None:
        self.spark = spark
        self.results = results
        self.batches = 0
        self.warehouse = Warehouse(config.WarehouseSection(path=str(folder)))
        made = [r.table for r in results]
        self.warehouse.ensure(spark, [REQUESTS, CONFIGS, PIPELINE_PROGRESS, *made])

    def put(self, table: Table, *rows: dict[str, Any]) -> DataFrame:
        content = pa.Table.from_pylist([{"cluster_id": "c"} | row for row in rows], table.arrow)
        frame = self.spark.createDataFrame(content)
        self.warehouse.write(frame.write.format("delta").mode("append"), table.name)
        return frame

    def requests_at(self, *minutes: int) -> None:
        times = [NOON + timedelta(minutes=minute) for minute in minutes]
        self._batch(self.put(REQUESTS, *({"event_time": t, "record_time": t} for t in times)))

    def again(self, *minutes: int) -> None:
        """A batch of requests that are in the table already."""
        times = [NOON + timedelta(minutes=minute) for minute in minutes]
        requests = self.warehouse.read(self.spark, REQUESTS.name)
        self._batch(requests.where(F.col("event_time").isin(times)))

    def _batch(self, frame: DataFrame) -> None:
        maintainer = ResultMaintainer(self.results, config.Conf())
        batch = Batch(self.warehouse, "job", "query", self.batches)
        maintainer.write(maintainer.arrivals(frame), batch)
        self.batches += 1

    def refresh(self) -> None:
        batch = Batch(self.warehouse, "job", "query", 1_000, "/refresh")
        ResultMaintainer(self.results, config.Conf()).refresh(self.spark, batch)

    def rows(self, name: str) -> list[tuple[int, int, str | None]]:
        frame = self.warehouse.read(self.spark, name).orderBy("event_time")
        minute = (F.unix_seconds("event_time") - int(NOON.timestamp())) / 60
        return [tuple(r) for r in frame.select(minute.cast("int"), "requests", "config").collect()]

    def state_lines(self) -> list[str]:
        return result_state.not_up_to_date(self.warehouse.checkpoint("job"))

    def counts(self, outcome: str) -> list[tuple[Any, ...]]:
        rows = self.warehouse.read(self.spark, PIPELINE_PROGRESS.name)
        of_outcome = rows.where(F.col("outcome") == outcome).orderBy("batch_id", "target")
        return [tuple(r) for r in of_outcome.select("batch_id", "target", "row_count").collect()]


@pytest.mark.spark
def test_a_result_that_fails_is_told_and_made_good_while_the_others_go_on(
    spark: SparkSession, tmp_path: Path
) -> None:
    broken = [True]
    query = Query(spark, tmp_path, result("good"), result("bad", broken))
    query.requests_at(0, 5)
    assert query.rows("good") == [(0, 1, None), (5, 1, None)]
    assert query.rows("bad") == []
    (line,) = query.state_lines()
    assert line.startswith("bad is not up to date since 2026-11-21 12:00:00 UTC")
    assert query.counts("failed") == [(0, "bad", 2)]

    broken[0] = False
    query.requests_at(9)
    assert query.rows("bad") == query.rows("good") == [(0, 1, None), (5, 1, None), (9, 1, None)]
    assert query.state_lines() == []


@pytest.mark.spark
def test_what_a_rule_looks_up_touches_all_since_it_holds(
    spark: SparkSession, tmp_path: Path
) -> None:
    query = Query(spark, tmp_path, result("good"))
    query.requests_at(0, 5, 7)
    query.put(
        CONFIGS,
        {"event_time": NOON + timedelta(minutes=4), "config_value": "x", "is_removed": False},
    )
    assert query.rows("good")[1:] == [(5, 1, None), (7, 1, None)]
    query.requests_at(1)
    assert query.rows("good") == [(0, 1, None), (1, 1, None), (5, 1, "x"), (7, 1, "x")]
    version = query.warehouse.read(spark, "good").inputFiles()
    query.put(
        CONFIGS,
        {"event_time": NOON + timedelta(minutes=6), "config_value": "y", "is_removed": False},
    )
    query.refresh()
    assert query.rows("good")[2:] == [(5, 1, "x"), (7, 1, "y")]
    query.requests_at(2)
    unchanged = set(version) & set(query.warehouse.read(spark, "good").inputFiles())
    assert unchanged, "what was seen once touches nothing again"


@pytest.mark.spark
def test_what_was_seen_first_may_reach_back_to_all_before_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    query = Query(spark, tmp_path, result("good", reaches_back=True))
    query.requests_at(0, 5)
    first, later = (
        {"event_time": NOON + timedelta(minutes=minute), "config_value": value, "is_removed": False}
        for minute, value in ((4, "x"), (5, "y"))
    )
    query.put(CONFIGS, first)
    query.refresh()
    assert query.rows("good") == [(0, 1, "x"), (5, 1, "x")]
    query.put(CONFIGS, later)
    query.requests_at(7)
    assert query.rows("good") == [(0, 1, "x"), (5, 1, "y"), (7, 1, "y")]


@pytest.mark.spark
def test_a_replay_takes_what_came_to_be_known_since(spark: SparkSession, tmp_path: Path) -> None:
    query = Query(spark, tmp_path, result("good", reaches_back=True))
    query.requests_at(0)
    checkpoint = query.warehouse.checkpoint("job")
    remembered = result_state.load(checkpoint)
    query.requests_at(5)
    query.put(
        CONFIGS,
        {"event_time": NOON + timedelta(minutes=4), "config_value": "x", "is_removed": False},
    )
    # Killed when it had replaced rows, before it remembered anything.
    result_state.save(checkpoint, remembered)
    query.batches = 1
    query.again(5)
    assert query.rows("good") == [(0, 1, "x"), (5, 1, "x")]


@pytest.mark.spark
def test_what_looks_up_a_result_that_failed_is_made_good_with_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    broken = [True]
    bad, other = result("bad", broken), result("other")
    reader = replace(
        result("reader"), lookups=(*bad.lookups, LookupTable(bad.table, valid_from=None))
    )
    query = Query(spark, tmp_path, bad, reader, other)
    query.requests_at(0)
    assert [line.split(" ")[0] for line in query.state_lines()] == ["bad", "reader"]
    assert "it looks up bad, which failed" in query.state_lines()[1]
    version = query.warehouse.read(spark, "reader").inputFiles()
    broken[0] = False
    query.requests_at(9)
    assert query.state_lines() == []
    assert not set(version) & set(query.warehouse.read(spark, "reader").inputFiles())


@pytest.mark.spark
def test_a_batch_fails_when_every_rule_does(spark: SparkSession, tmp_path: Path) -> None:
    query = Query(spark, tmp_path, result("bad", [True]))
    with pytest.raises(Exception, match="no such rule"):
        query.requests_at(0)
