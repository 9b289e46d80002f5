"""`quotaflow upkeep --repair` gives rows back: from the topic, by rules, to queries just once."""

import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from deltalake import DeltaTable

from quotaflow.pipelines.jobs.job import JobEnvironment
from quotaflow.pipelines.maintenance import backfill, repair
from quotaflow.pipelines.streaming import sources
from quotaflow.pipelines.warehouse import delta_files
from quotaflow.pipelines.warehouse.time_ranges import TimeRange, in_spark
from quotaflow.schemas.tables.catalog import TABLES

from . import driver, recorded

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.faults, pytest.mark.timeout(1_800)]

JOBS = ("ingest_request_log", "client_metrics", "fetches", "request_results")
BATCHES = 2
Harm = Callable[[Path], None]


def files(table: Path) -> list[Path]:
    """The data files of a table's newest version."""
    time = TABLES[table.name].time
    listed = delta_files.of_version(DeltaTable(table), table, time)
    return [Path(file.path) for file in listed]


def without_largest_file(table: Path) -> None:
    max(files(table), key=lambda path: path.stat().st_size).unlink()


def with_cut_files(table: Path) -> None:
    for path in files(table):
        path.write_bytes(path.read_bytes()[:-10])


def commits_with_rows(table: Path) -> list[Path]:
    commits = sorted((table / "_delta_log").glob("*.json"))
    return [path for path in commits if '"add"' in path.read_text()]


def without_newest_commit(table: Path) -> None:
    commits_with_rows(table)[-1].write_bytes(b"")


def without_first_rows(table: Path) -> None:
    commits_with_rows(table)[0].write_bytes(b"\x00")


@pytest.fixture(scope="module")
def calm(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A warehouse that all jobs have filled, and its topic."""
    folder = tmp_path_factory.mktemp("calm")
    topic = folder / "topic"
    recorded.write(topic, recorded.dealt(recorded.golden_lines(), BATCHES))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sources, "read_topic", lambda spark, *_: recorded.read(spark, topic))
        driver.keep_few_results()
        made = recorded.setting(spark, folder, JOBS)
        for job in JOBS:
            recorded.run(made, job)
    return folder


@pytest.fixture
def harmed(
    calm: Path, spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> JobEnvironment:
    """A copy of the warehouse, with a topic that a backfill can read."""
    shutil.copytree(calm, tmp_path, dirs_exist_ok=True)

    def between(spark: "SparkSession", _: object, __: str, times: TimeRange) -> "DataFrame":
        records = spark.read.schema(recorded._SQL).parquet(str(tmp_path / "topic"))
        return records.where(times.condition("timestamp", in_spark))

    monkeypatch.setattr(sources, "read_topic_between", between)
    read = (recorded.CLUSTER, {0: 10**9})
    monkeypatch.setattr(backfill, "_read", lambda *_: read)
    monkeypatch.setattr(
        sources, "read_topic", lambda spark, *_: recorded.read(spark, tmp_path / "topic")
    )
    return recorded.setting(spark, tmp_path, JOBS)


def rows(folder: Path) -> dict[str, Counter[str]]:
    """All rows but counts, which also count what came again."""
    every = driver.contents(folder / "warehouse", JOBS)
    return {name: each for name, each in every.items() if name != "pipeline_progress"}


def repaired(harmed: JobEnvironment) -> tuple[list[repair.Repaired], list[str]]:
    reported = list[str]()
    return repair.repair(harmed.conf, (), reported.append), reported


@pytest.mark.parametrize("table", ["requests", "traffic", "quota_usage", "client_metrics"])
@pytest.mark.parametrize(
    "harm", [without_largest_file, with_cut_files, without_newest_commit, without_first_rows]
)
def test_lost_rows_come_again_and_once(
    table: str, harm: Harm, harmed: JobEnvironment, calm: Path, tmp_path: Path
) -> None:
    before = rows(calm)
    assert before[table]
    harm(tmp_path / "warehouse" / table)
    done, reported = repaired(harmed)
    assert [each.table for each in done] == [table], reported
    for job in JOBS:
        recorded.run(harmed, job)
    after = rows(tmp_path)
    for name, expected in before.items():
        assert after[name] == expected, (name, reported)
    assert repaired(harmed)[0] == []
