"""Fetches with their sessions from a stream, however it is split, cut off and replayed."""

import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from quotaflow.pipelines import config
from quotaflow.pipelines.config import FetchSessionsSection
from quotaflow.pipelines.facts.fetches import Fetches, arrivals
from quotaflow.pipelines.jobs.job import JobEnvironment
from quotaflow.pipelines.jobs.registry import JOBS
from quotaflow.pipelines.streaming import sinks
from quotaflow.pipelines.streaming.sinks import Batch
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.schemas.tables.declared import REQUESTS

from ...udfs.fetch_rows import part, request
from ...udfs.rules.fetch_broker import Read, played

pytestmark = pytest.mark.spark

Row = dict[str, Any]
MADE = ("requests", "fetches", "fetch_sessions", "pipeline_progress")
BROKERS, STEPS = 3, 60
SECOND_US = 1_000_000


def made_up_requests(dice: random.Random) -> list[Row]:
    """What clients of three brokers had logged, with holes, and requests that are no fetches."""
    keys = "abcdef"

    def step() -> tuple[str, dict[str, tuple[int, int]], list[str], Read]:
        kinds = ["next"] * 12 + ["begin", "end", "evicted", "wrong epoch", "first"]
        requested = {key: (dice.randrange(9), 5) for key in dice.sample(keys, 2)}
        served = {key: dice.randrange(9) for key in dice.sample(keys, 2)}
        read = Read(served, {key: dice.randrange(20) for key in dice.sample(keys, 2)})
        return dice.choice(kinds), requested, dice.sample(keys, dice.randrange(2)), read

    rows: list[Row] = []
    for broker_id in range(1, BROKERS + 1):
        for line, _ in played([step() for _ in range(STEPS)], 2**31 - 1):
            if dice.random() > 0.02:
                rows.append(request(line, 0, broker_id=broker_id, source_partition=broker_id))
    other = {"cluster_id": "c", "broker_id": 1, "api": "PRODUCE", "partitions": [part("a")]}
    rows += [other | {"event_time": n * SECOND_US} for n in range(9)]
    rows.sort(key=lambda row: row["event_time"])
    return [row | {"source_offset": offset} for offset, row in enumerate(rows)]


@pytest.fixture
def warehouse(spark: SparkSession, tmp_path: Path) -> Callable[[str], Warehouse]:
    """Makes warehouses of the tables the job reads and fills."""

    def make(name: str) -> Warehouse:
        made = Warehouse(config.WarehouseSection(path=str(tmp_path / name)))
        made.ensure(lambda: spark, [TABLES[table] for table in MADE])
        return made

    return make


def frame(spark: SparkSession, rows: list[Row]) -> DataFrame:
    return spark.createDataFrame(pa.Table.from_pylist(rows, schema=REQUESTS.arrow))


def arrived(spark: SparkSession, warehouse: Warehouse, rows: list[Row]) -> DataFrame:
    """What a batch of these requests hands to the job."""
    if warehouse.conf.catalog_schema:
        return arrivals(frame(spark, rows), warehouse)
    folder = warehouse.folder("requests") / "of a batch"
    folder.mkdir(exist_ok=True)
    path = folder / f"{uuid4()}.parquet"
    pq.write_table(pa.Table.from_pylist(rows, schema=REQUESTS.arrow), path)
    read = spark.read.schema(REQUESTS.sql_schema).parquet(str(path))
    return arrivals(read, warehouse)


def content(spark: SparkSession, warehouse: Warehouse, table: str) -> list[str]:
    rows = warehouse.read(spark, table).select(TABLES[table].column_names)
    return sorted(repr(row) for row in rows.collect())


def counted(spark: SparkSession, warehouse: Warehouse) -> dict[tuple[str, str, str | None], int]:
    """Rows by target, outcome and reason, as reported over all batches."""
    counts = Counter[tuple[str, str, str | None]]()
    for row in warehouse.read(spark, "pipeline_progress").collect():
        counts[row["target"], row["outcome"], row["reason"]] += row["row_count"]
    return dict(counts)


@contextmanager
def cut_off_at(write: str) -> Iterator[None]:
    def cut_off(*_: object) -> None:
        raise InterruptedError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Batch, write, cut_off)
        yield


@pytest.mark.faults
def test_any_split_and_replay_gives_the_same_rows_and_sessions(
    spark: SparkSession, warehouse: Callable[[str], Warehouse]
) -> None:
    rows = made_up_requests(random.Random(5))
    whole = warehouse("whole")
    conf = config.Conf(warehouse=whole.conf)
    whole.write(frame(spark, rows).write.format("delta").mode("append"), "requests")
    query = JOBS["fetches"].start(JobEnvironment(spark, conf, whole, "c"), sinks.ONCE)
    assert query.awaitTermination(300)

    split, fetches = warehouse("split"), Fetches(FetchSessionsSection())
    for batch_id, (piece, write) in enumerate([(rows[:70], "report"), (rows[70:], "replace_rows")]):
        batch = Batch(split, "fetches", "q", batch_id)
        with cut_off_at(write), pytest.raises(InterruptedError):
            fetches.write(arrived(spark, split, piece), batch)
        fetches.write(arrived(spark, split, piece), batch)
    fetches.write(arrived(spark, split, piece), batch)  # as if it had died after its last write

    for table in ("fetches", "fetch_sessions"):
        assert content(spark, split, table) == content(spark, whole, table)
    fetched = sum(row["api"] == "FETCH" for row in rows)
    for made in (split, whole):
        expected = counted(spark, made)
        assert expected["fetches", "in", None] == expected["fetches", "out", None] == fetched
    states = Counter(row["session_state"] for row in whole.read(spark, "fetches").collect())
    assert states["known"] > fetched / 3
    assert {"full", "known", "unknown", "out_of_order", "refused"} == states.keys()


@pytest.fixture
def catalog(spark: SparkSession, tmp_path: Path) -> Iterator[Warehouse]:
    """A catalog's schema with the tables the job fills."""
    schema = "spark_catalog.sessions"
    spark.sql(f"CREATE SCHEMA {schema} LOCATION '{tmp_path / 'schema'}'")
    checkpoints = str(tmp_path / "checkpoints")
    made = Warehouse(config.WarehouseSection(catalog_schema=schema, checkpoints=checkpoints))
    made.ensure(lambda: spark, [TABLES[table] for table in MADE])
    yield made
    spark.sql(f"DROP SCHEMA {schema} CASCADE")


@pytest.mark.faults
def test_a_folder_and_a_catalog_have_equal_rows_and_counts(
    spark: SparkSession, warehouse: Callable[[str], Warehouse], catalog: Warehouse
) -> None:
    rows = made_up_requests(random.Random(6))
    fetches = Fetches(FetchSessionsSection(idle_s=20, slots_per_broker=1))
    folder = warehouse("folder")
    for made in (folder, catalog):
        for batch_id, piece in enumerate((rows[:90], rows[90:])):
            batch = Batch(made, "fetches", "q", batch_id)
            # Between the fetches and their sessions.
            with cut_off_at("replace_rows"), pytest.raises(InterruptedError):
                fetches.write(arrived(spark, made, piece), batch)
            fetches.write(arrived(spark, made, piece), batch)
    for table in ("fetches", "fetch_sessions"):
        assert content(spark, folder, table) == content(spark, catalog, table)
    counts = counted(spark, folder)
    assert counts == counted(spark, catalog)
    assert {reason for _, outcome, reason in counts if outcome == "left_out"} == {
        "idle",
        "over_slots",
    }


def started(session_id: int, at_s: int) -> Row:
    return {
        "cluster_id": "c",
        "broker_id": 1,
        "api": "FETCH",
        "event_time": at_s * SECOND_US,
        "session_epoch": 0,
        "session_id": 0,
        "response_session_id": session_id,
        "error_code": 0,
        "partitions": [part("a", 0, 0, 5)],
        "source_offset": session_id,
    }


def test_sessions_idle_too_long_or_too_many_are_dropped_and_counted(
    spark: SparkSession, warehouse: Callable[[str], Warehouse]
) -> None:
    made = warehouse("limited")
    fetches = Fetches(FetchSessionsSection(idle_s=60, slots_per_broker=2))
    rows = [started(1, 0), started(2, 100), started(3, 101), started(4, 102)]
    # The client of session 4 begins another in its place, in the same millisecond.
    rows.append(started(5, 102) | {"session_id": 4})
    rows.append(started(6, 103) | {"broker_id": 2, "session_epoch": -1, "response_session_id": 0})
    rows.append(started(7, 103) | {"broker_id": 2})
    fetches.write(arrived(spark, made, rows), Batch(made, "fetches", "q", 0))
    kept = made.read(spark, "fetch_sessions").collect()
    assert sorted((row["broker_id"], row["session_id"]) for row in kept) == [(1, 3), (1, 5), (2, 7)]
    assert counted(spark, made) == {
        ("fetches", "in", None): 7,
        ("fetches", "out", None): 7,
        ("fetch_sessions", "out", None): 3,
        ("fetch_sessions", "left_out", "idle"): 1,
        ("fetch_sessions", "left_out", "over_slots"): 1,
    }
    fetches.write(arrived(spark, made, [{"api": "PRODUCE"}]), Batch(made, "fetches", "q", 1))
    assert made.read(spark, "fetch_sessions").count() == 3


@pytest.mark.faults
def test_a_clock_far_ahead_makes_no_other_session_idle(
    spark: SparkSession, warehouse: Callable[[str], Warehouse]
) -> None:
    made = warehouse("ahead")
    fetches = Fetches(FetchSessionsSection(idle_s=60))
    ahead = started(1, 0) | {"event_time": int(time.time() + 86_400) * SECOND_US}
    fetches.write(arrived(spark, made, [ahead, started(2, 100)]), Batch(made, "fetches", "q", 0))
    fetches.write(arrived(spark, made, [started(3, 101)]), Batch(made, "fetches", "q", 1))
    kept = made.read(spark, "fetch_sessions").collect()
    assert sorted(row["session_id"] for row in kept) == [1, 2, 3]
