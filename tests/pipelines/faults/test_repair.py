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
def places(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two warehouses of one topic: in `calm` all jobs are done, in `behind` only the ingest job."""
    folder = tmp_path_factory.mktemp("places")
    first, second = recorded.dealt(recorded.golden_lines(), 2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            sources, "read_topic", lambda spark, *_: recorded.read(spark, folder / "topic")
        )
        driver.keep_few_results()
        made = recorded.setting(spark, folder / "calm", JOBS)
        recorded.write(folder / "topic", [first])
        for job in JOBS:
            recorded.run(made, job)
        recorded.write(folder / "topic", [second])
        recorded.run(made, JOBS[0])
        shutil.copytree(folder / "calm", folder / "behind")
        for job in JOBS[1:]:
            recorded.run(made, job)
    return folder


@pytest.fixture
def harmed(
    request: pytest.FixtureRequest,
    places: Path,
    spark: "SparkSession",
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> JobEnvironment:
    """A copy of a warehouse, whose topic a backfill can read."""
    shutil.copytree(places / request.param, tmp_path, dirs_exist_ok=True)
    topic = places / "topic"

    def between(spark: "SparkSession", _: object, __: str, times: TimeRange) -> "DataFrame":
        records = spark.read.schema(recorded._SQL).parquet(str(topic))
        return records.where(times.condition("timestamp", in_spark))

    monkeypatch.setattr(sources, "read_topic_between", between)
    monkeypatch.setattr(backfill, "_read", lambda *_: (recorded.CLUSTER, {0: 10**9}))
    monkeypatch.setattr(sources, "read_topic", lambda spark, *_: recorded.read(spark, topic))
    return recorded.setting(spark, tmp_path, JOBS)


def rows(folder: Path) -> dict[str, Counter[str]]:
    """All rows but counts, which also count what came again."""
    every = driver.contents(folder / "warehouse", JOBS)
    return {name: each for name, each in every.items() if name != "pipeline_progress"}


def repaired(harmed: JobEnvironment) -> tuple[list[repair.Repaired], list[str]]:
    reported = list[str]()
    return repair.repair(harmed.conf, (), reported.append), reported


@pytest.mark.parametrize(
    ("harmed", "table", "harm"),
    [
        ("calm", "requests", without_largest_file),
        ("calm", "requests", without_newest_commit),
        ("calm", "requests", without_first_rows),
        ("behind", "requests", with_cut_files),
        ("behind", "requests", without_newest_commit),
        ("calm", "traffic", without_newest_commit),
        ("calm", "quota_usage", with_cut_files),
        ("calm", "client_metrics", without_largest_file),
    ],
    indirect=["harmed"],
)
def test_lost_rows_come_again_and_once(
    table: str, harm: Harm, harmed: JobEnvironment, places: Path, tmp_path: Path
) -> None:
    expected = rows(places / "calm")
    assert expected[table]
    harm(tmp_path / "warehouse" / table)
    done, reported = repaired(harmed)
    assert [each.table for each in done] == [table], reported
    for job in JOBS:
        recorded.run(harmed, job)
    after = rows(tmp_path)
    # A job that had read some of the lost rows gets none of them again, so none comes twice.
    is_partly_read = any("has not read all" in text for text in reported)
    assert sum(after["fetches"].values()) <= sum(expected["fetches"].values())
    for name, those in expected.items():
        if name == table or not is_partly_read:
            assert after[name] == those, (name, reported)
    assert repaired(harmed)[0] == []
