"""A folder's table that Spark made with clustering becomes one that delta-rs writes, in place."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from quotaflow.pipelines import config
from quotaflow.pipelines.spark import frames
from quotaflow.pipelines.streaming import sinks, sources
from quotaflow.pipelines.streaming.sinks import Batch
from quotaflow.pipelines.warehouse import clustering
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas import ddl
from quotaflow.schemas.table import LONG, STRING, TIMESTAMP, Column, Table

pytestmark = pytest.mark.spark

TABLE = Table(
    name="numbers",
    comment="Numbers",
    columns=(
        Column("cluster_id", STRING, "cluster"),
        Column("event_time", TIMESTAMP, "when"),
        Column("n", LONG, "a number"),
    ),
    key=("n",),
    time="event_time",
    clustering=("event_time", "n"),
)
NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
EACH_FILE = config.Conf(results=config.ResultsSection(max_bytes_per_trigger=1))


def arrow(*numbers: int) -> pa.Table:
    rows = [{"cluster_id": "c", "event_time": NOON + timedelta(minutes=n), "n": n} for n in numbers]
    return pa.Table.from_pylist(rows, schema=TABLE.arrow)


@pytest.fixture
def clustered(spark: SparkSession, warehouse: Warehouse) -> Path:
    """The folder of a table as releases made it, with rows in four files."""
    spark.sql(ddl.create(TABLE, warehouse.target(TABLE.name)))
    batch = Batch(warehouse, "ingest", "of the release", 0)
    batch.append(frames.from_arrow(spark, arrow(0, 1, 2, 3)).repartition(4, "n"), TABLE)
    return warehouse.folder(TABLE.name)


def content(spark: SparkSession, warehouse: Warehouse) -> list[int]:
    return sorted(row["n"] for row in warehouse.read(spark, TABLE.name).collect())


def writers(folder: Path) -> list[str]:
    """Who made each commit, the oldest first."""
    return [commit.get("engineInfo", "")[:8] for commit in reversed(DeltaTable(folder).history())]


class Reader:
    """A query that reads the table file by file, and fails at a batch if one is given."""

    def __init__(self, spark: SparkSession, warehouse: Warehouse, name: str) -> None:
        self.spark, self.warehouse, self.name = spark, warehouse, name
        self.numbers: list[int] = []

    def start(self, trigger: sinks.Trigger, *, fails_at: int | None = None) -> StreamingQuery:
        def write(rows: DataFrame, batch: Batch) -> None:
            if batch.batch_id == fails_at:
                raise InterruptedError
            self.numbers += [row["n"] for row in rows.collect()]

        rows = sources.read_table(self.spark, EACH_FILE, self.warehouse, TABLE.name)
        return sinks.start(rows, self.name, self.warehouse, write, trigger)


@pytest.mark.faults
def test_queries_of_a_table_continue_after_its_migration(
    spark: SparkSession, warehouse: Warehouse, clustered: Path
) -> None:
    running, stopped = (Reader(spark, warehouse, name) for name in ("running", "stopped"))
    with pytest.raises(StreamingQueryException):
        stopped.start(sinks.ONCE, fails_at=2).awaitTermination(300)
    assert 0 < len(stopped.numbers) < 4
    query = running.start({"processingTime": "1 second"})
    query.processAllAvailable()
    table_id = DeltaTable(clustered).metadata().id
    assert clustering.is_clustered(DeltaTable(clustered))

    warehouse.ensure(lambda: spark, [TABLE])
    live = DeltaTable(clustered)
    assert (live.metadata().id, clustering.is_plain(live)) == (table_id, True)
    assert content(spark, warehouse) == [0, 1, 2, 3]
    warehouse.ensure(lambda: spark, [TABLE])
    assert DeltaTable(clustered).version() == live.version()

    of_ingest = Batch(warehouse, "ingest", "of the release", 1)
    of_ingest.append_rows(lambda: spark, arrow(4), TABLE)
    Batch(warehouse, "ingest", "of the release", 2).append(
        frames.from_arrow(spark, arrow(5)), TABLE
    )
    of_ingest.append_rows(lambda: spark, arrow(4), TABLE)
    Batch(warehouse, "ingest", "of the release", 0).append_rows(lambda: spark, arrow(0), TABLE)
    assert content(spark, warehouse) == [0, 1, 2, 3, 4, 5]
    assert writers(clustered)[-2:] == ["delta-rs", "Apache-S"]

    query.processAllAvailable()
    query.stop()
    assert stopped.start(sinks.ONCE).awaitTermination(300)
    assert sorted(running.numbers) == sorted(stopped.numbers) == [0, 1, 2, 3, 4, 5]
    DeltaTable(clustered).create_checkpoint()
    spark.sql(f"OPTIMIZE {warehouse.target(TABLE.name)}")
    of_ingest.append_rows(lambda: spark, arrow(4), TABLE)
    assert content(spark, warehouse) == [0, 1, 2, 3, 4, 5]


@pytest.mark.faults
def test_a_crash_between_the_two_commits_heals(
    spark: SparkSession, warehouse: Warehouse, clustered: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(*_: object) -> None:
        raise InterruptedError

    monkeypatch.setattr(clustering, "_commit", crash)
    with pytest.raises(InterruptedError):
        warehouse.ensure(lambda: spark, [TABLE])
    monkeypatch.undo()
    assert clustering.is_clustered(DeltaTable(clustered))
    Batch(warehouse, "ingest", "of the release", 1).append_rows(lambda: spark, arrow(4), TABLE)
    assert writers(clustered)[-1] == "Apache-S", "until then Spark writes"
    warehouse.ensure(lambda: spark, [TABLE])
    assert clustering.is_plain(DeltaTable(clustered))
    assert content(spark, warehouse) == [0, 1, 2, 3, 4]


@pytest.mark.faults
def test_a_table_with_another_feature_stays_and_spark_writes_it(
    spark: SparkSession, warehouse: Warehouse, clustered: Path
) -> None:
    target = warehouse.target(TABLE.name)
    spark.sql(f"ALTER TABLE {target} SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')")
    before = DeltaTable(clustered)
    warehouse.ensure(lambda: spark, [TABLE])
    assert DeltaTable(clustered).version() == before.version()
    for _ in range(2):
        batch = Batch(warehouse, "ingest", "of the release", 1)
        batch.append_rows(lambda: spark, arrow(4), TABLE)
    assert content(spark, warehouse) == [0, 1, 2, 3, 4]
    assert writers(clustered)[-1] == "Apache-S"
    changes = f"table_changes_by_path('{clustered}', {before.version() + 1})"
    assert [row["n"] for row in spark.sql(f"SELECT n FROM {changes}").collect()] == [4]
    warehouse.set_property(
        lambda: spark, TABLE.name, "quotaflow.kept_since", "2026-11-21T00:00:00+00:00"
    )
    assert warehouse.kept_since(spark, TABLE.name) == NOON.replace(hour=0)
    assert writers(clustered)[-1] == "Apache-S"
    assert DeltaTable(clustered).protocol() == before.protocol()
