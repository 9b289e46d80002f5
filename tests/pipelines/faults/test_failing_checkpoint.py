"""Checkpoints that cannot be written: Spark's own failure injection, at every file of a batch."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from quotaflow.pipelines.jars import jar_set
from quotaflow.pipelines.job import Setting
from quotaflow.pipelines.jobs import JOBS

from ...live.tables_read import contents
from . import recorded
from .command import copied
from .conftest import Made, Topic

pytestmark = [pytest.mark.spark, pytest.mark.faults]

INGEST = "ingest_request_log"
_STATE = "org.apache.spark.sql.execution.streaming.state"
_STOPPED = (StreamingQueryException, Py4JJavaError)
_CREATE, _CLOSE = "failureCreateAtomicRegex", "createAtomicDelayCloseRegex"
# In the order they are written: what cannot be created, or is begun and not ended in time.
FAILURES = (
    (_CREATE, "metadata"),
    (_CREATE, "offsets/0"),
    (_CREATE, "commits/0"),
    (_CLOSE, "offsets/1"),
    (_CREATE, "state/.*/2[.]delta"),
    (_CLOSE, "commits/1"),
    (_CLOSE, "state/.*/3[.]delta"),
    (_CREATE, "commits/2"),
)


class Injected:
    """Spark's FailureInjectionCheckpointFileManager under one folder."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        (jar,) = jar_set("spark-tests-jars", Path(__file__).parent)
        classic: Any = spark.newSession()
        self.spark: SparkSession = classic
        self._jvm = classic._jvm
        # Tasks must see the very class the driver sees: it holds what is to fail.
        loader = self._jvm.java.lang.Thread.currentThread().getContextClassLoader()
        loader.addURL(self._jvm.java.net.URL(f"file:{jar}"))
        manager = f"{_STATE}.FailureInjectionCheckpointFileManager"
        self.spark.conf.set("spark.sql.streaming.checkpointFileManagerClass", manager)
        self.folder = folder
        self._state = self._states.registerTempPath(str(folder))

    @property
    def _states(self) -> Any:
        return getattr(self._jvm, f"{_STATE}.FailureInjectionFileSystem")

    @contextmanager
    def failing(self, how: str, file: str) -> Iterator[None]:
        """Within, this file of a checkpoint cannot be written."""
        self._set(how, [f".*/{file}"])
        yield
        self._set(how, [])

    @contextmanager
    def blind(self) -> Iterator[None]:
        """Within, nobody can tell whether a file exists."""
        getattr(self._state, "shouldFailExist_$eq")(True)
        yield
        getattr(self._state, "shouldFailExist_$eq")(False)

    def close_what_was_left(self) -> int:
        """Let writers that seemed dead end after all; returns how many there were."""
        streams = self._state.delayedStreams()
        for number in range(streams.size()):
            with suppress(Py4JJavaError):
                streams.apply(number).close()
        return int(streams.size())

    def forget(self) -> None:
        self._states.removePathFromTempToInjectionState(str(self.folder))

    def _set(self, how: str, patterns: list[str]) -> None:
        listed = self._jvm.java.util.ArrayList()
        for pattern in patterns:
            listed.add(pattern)
        as_seq = self._jvm.org.apache.spark.api.python.PythonUtils.toSeq(listed)
        getattr(self._state, f"{how}_$eq")(as_seq)


@pytest.fixture
def injected(spark: SparkSession, tmp_path: Path) -> Iterator[Injected]:
    made = Injected(spark, tmp_path / "disturbed")
    yield made
    made.forget()


def failures_of(job: str) -> list[tuple[str, str]]:
    return [each for each in FAILURES if job == "client_metrics" or "state" not in each[1]]


def disturb(setting: Setting, injected: Injected, job: str) -> None:
    """Run a job to its end through every failure; each stops it once."""
    within: list[Callable[[], Any]] = [
        partial(injected.failing, how, file) for how, file in failures_of(job)
    ]
    for failing in (injected.blind, *within):
        with failing(), pytest.raises(_STOPPED, match="Fake File"):
            recorded.run(setting, job)
    recorded.run(setting, job)


@pytest.mark.timeout(1_800)
@pytest.mark.parametrize(
    ("job", "batches"),
    # A file source that was stopped before its plan was kept takes two files at once.
    [(INGEST, 5), ("client_metrics", 3), ("fetches", 3)],
)
def test_a_checkpoint_that_fails_at_any_file_changes_no_table(
    made: Made, topic: Topic, injected: Injected, job: str, batches: int
) -> None:
    topic(recorded.dealt(recorded.golden_lines(), batches))
    calm = made("calm", INGEST, job)
    if job != INGEST:
        recorded.run(calm, INGEST)
        copied(calm.warehouse.conf.folder, injected.folder)
    disturbed = made(injected.folder.name, job, own=injected.spark)
    recorded.run(calm, job)
    disturb(disturbed, injected, job)
    filled = {table.name for table in JOBS[job].fills}
    expected = contents(calm.warehouse.conf.folder, filled)
    assert contents(disturbed.warehouse.conf.folder, filled) == expected
    assert injected.close_what_was_left() > 1
    recorded.run(disturbed, job)
    assert contents(disturbed.warehouse.conf.folder, filled) == expected
