"""Events of queries from the listener: none is lost, and none of other queries is taken."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from quotaflow.pipelines.config import Conf, WarehouseSection
from quotaflow.pipelines.jobs import progress_log
from quotaflow.pipelines.jobs.job import Job, JobEnvironment
from quotaflow.pipelines.jobs.progress_log import ProgressLog
from quotaflow.pipelines.streaming import listener
from quotaflow.pipelines.streaming.listener import BATCH, QueryListener
from quotaflow.pipelines.warehouse.warehouse import Warehouse

from ..streaming.test_query_progress import KAFKA, PROGRESS

JOB = Job("job", "does", "requests", (), start=cast(Any, None))
QUERY = cast(Any, SimpleNamespace(id="q1", runId="r1", recentProgress=[]))
BEFORE = PROGRESS["batchId"] - 1


@pytest.fixture
def messages() -> list[str]:
    return []


@pytest.fixture
def log(messages: list[str], tmp_path: Path) -> ProgressLog:
    """A log that follows one start of one job, and has nowhere to write."""
    conf = Conf(warehouse=WarehouseSection(path=str(tmp_path)))
    offsets = Warehouse(conf.warehouse).checkpoint(JOB.name) / "offsets"
    offsets.mkdir(parents=True)
    (offsets / str(BEFORE)).touch()
    environment = JobEnvironment(cast(Any, None), conf, Warehouse(conf.warehouse), "c1")
    made = ProgressLog(environment, messages.append, QueryListener())
    made.follow(JOB, QUERY)
    return made


def progress(rows: int = 819, **others: Any) -> Any:
    """The progress that Spark reports for a batch."""
    sources = [KAFKA | {"numInputRows": rows}]
    return SimpleNamespace(json=json.dumps(PROGRESS | {"sources": sources} | others))


def tell(listener: QueryListener, rows: int = 819, **others: Any) -> None:
    listener.onQueryProgress(cast(Any, SimpleNamespace(progress=progress(rows, **others))))


def end(listener: QueryListener, run_id: str = "r1") -> None:
    listener.onQueryTerminated(cast(Any, SimpleNamespace(runId=run_id)))


def test_batches_are_told_counted_and_kept_once(log: ProgressLog, messages: list[str]) -> None:
    tell(log.listener)
    tell(log.listener, timestamp="2026-11-22T01:45:00.000Z")
    tell(log.listener, rows=1, batchId=5)
    end(log.listener)
    assert log.finish(JOB) == 819 + 819 + 1
    assert messages[0] == "job: batch 4, 819 rows in 2.6 s"
    assert list(log.unwritten) == [("q1", 4), ("q1", 5)]


def test_batches_without_rows_are_looks_that_found_nothing(
    log: ProgressLog, messages: list[str]
) -> None:
    tell(log.listener, rows=0)
    idle = SimpleNamespace(id="q1", runId="r1", timestamp="2026-11-22T02:00:00.000Z")
    log.listener.onQueryIdle(cast(Any, idle))
    log.take()
    (row,) = log.unwritten.values()
    assert (row["input_rows"], row.get("batch_id"), row["event_time"].hour) == (0, None, 2)
    assert messages == []


def test_other_queries_of_the_session_are_not_ours(log: ProgressLog, messages: list[str]) -> None:
    tell(log.listener, runId="of somebody else")
    end(log.listener, "of somebody else")
    end(log.listener)
    assert log.finish(JOB) == 0
    assert (log.unwritten, messages) == ({}, [])


@pytest.fixture
def no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which news come later than they are waited for."""
    monkeypatch.setattr(progress_log, "_FINAL_PROGRESS_TIMEOUT_S", 0.05)


class EndedQuery:
    """A query whose session died."""

    id, runId = "q1", "r1"  # noqa: N815  Spark's name

    @property
    def recentProgress(self) -> list[Any]:  # noqa: N802  Spark's name
        raise PySparkException("the session is gone")


@pytest.mark.usefixtures("no_time")
def test_a_query_that_ends_without_a_word_is_not_waited_for_for_ever(
    log: ProgressLog, messages: list[str]
) -> None:
    log.follow(JOB, cast(Any, EndedQuery()))
    assert log.finish(JOB) == 0
    assert log.finish(JOB) == 0
    assert messages == ["job: its last batches were not reported, and are not counted"]


@pytest.mark.usefixtures("no_time")
def test_what_comes_too_late_the_query_is_asked_for_and_it_counts_once(
    log: ProgressLog, messages: list[str]
) -> None:
    recent = [progress(batchId=4), progress(rows=1, batchId=5)]
    log.follow(JOB, cast(Any, SimpleNamespace(id="q1", runId="r1", recentProgress=recent)))
    tell(log.listener)
    assert log.finish(JOB) == 819 + 1
    tell(log.listener, rows=1, batchId=5)
    end(log.listener)
    log.take()
    assert log.finish(JOB) == 819 + 1
    assert list(log.unwritten) == [("q1", 4), ("q1", 5)]
    assert messages == ["job: batch 4, 819 rows in 2.6 s", "job: batch 5, 1 row in 2.6 s"]


@pytest.mark.spark
@pytest.mark.usefixtures("no_time")
def test_a_real_query_tells_itself_what_no_listener_heard(
    spark: SparkSession, log: ProgressLog, tmp_path: Path
) -> None:
    for _ in range(2):
        spark.range(5).write.mode("append").parquet(str(tmp_path / "rows"))
    rows = spark.readStream.schema("id bigint").option("maxFilesPerTrigger", 1)
    writer = rows.parquet(str(tmp_path / "rows")).writeStream.format("noop")
    checkpoint = str(log.environment.warehouse.checkpoint("other"))
    query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
    assert query.awaitTermination(300)
    other = replace(JOB, name="other")
    log.follow(other, query)
    log.reached[str(query.runId)] = -1, ""
    assert log.finish(other) == 10
    assert {row["job"] for row in log.unwritten.values()} == {"other"}


@pytest.mark.usefixtures("no_time")
def test_batches_that_nobody_knows_any_more_are_told_to_be_missing(
    log: ProgressLog, messages: list[str]
) -> None:
    recent = [progress(rows=1, batchId=9), progress(rows=1, batchId=10)]
    log.follow(JOB, cast(Any, SimpleNamespace(id="q1", runId="r1", recentProgress=recent)))
    tell(log.listener, batchId=6)
    assert log.finish(JOB) == 819 + 2
    missing = [line for line in messages if "not reported" in line]
    assert missing == ["job: 2 batches were not reported, and are not counted"] * 2


def test_the_end_of_an_earlier_start_is_not_that_of_this_one(log: ProgressLog) -> None:
    log.follow(JOB, cast(Any, SimpleNamespace(id="q1", runId="r2", recentProgress=[])))
    end(log.listener, "r1")
    tell(log.listener, runId="r2")
    end(log.listener, "r2")
    assert log.finish(JOB) == 819


def test_a_job_that_found_nothing_has_looked(log: ProgressLog) -> None:
    log.record_idle(QUERY)
    assert list(log.unwritten) == [("q1", None)]


def test_what_cannot_be_written_waits_with_a_bound_and_jobs_go_on(
    log: ProgressLog, messages: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress_log, "_MAX_UNWRITTEN", 2)
    for batch_id in range(4, 7):
        tell(log.listener, batchId=batch_id)
    log.take()
    log.write()
    lost = "query_progress lacks 3 rows, 1 permanently: query_progress: cannot write: "
    assert messages[-1].startswith(lost)
    assert list(log.unwritten) == [("q1", 5), ("q1", 6)]


def test_news_that_find_no_room_are_counted_and_hold_nobody_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(listener, "_MAX_WAITING", 2)
    full = QueryListener()
    for _ in range(5):
        tell(full)
    assert full.lost == 3
    assert [event.kind for event in (full.take(), full.take()) if event] == [BATCH, BATCH]
    assert full.take() is None
