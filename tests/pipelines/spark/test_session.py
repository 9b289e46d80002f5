"""A session that is interrupted leaves no JVM; a query stopped within a batch ends as such."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from pyspark.sql import SparkSession

from quotaflow.pipelines import config
from quotaflow.pipelines.errors import MissingToolError
from quotaflow.pipelines.spark import session

from ...own_process import python, quotaflow

START = """
from quotaflow.pipelines import config
from quotaflow.pipelines.spark import session
print("begin", flush=True)
session.get(config.SparkSection())
"""
STOP_WITHIN_A_BATCH = """
import sys
import time

from quotaflow.pipelines import config
from quotaflow.pipelines.spark import session

def batch(rows, batch_id, calls=50):
    if calls:
        batch(rows, batch_id, calls - 1)
    else:
        spark.range(10**13).repartition(2).selectExpr("sum(id * id)").collect()

spark = session.get(config.SparkSection(conf=session.SHORT_LIVED))
rows = spark.readStream.format("rate").load()
writer = rows.writeStream.option("checkpointLocation", sys.argv[1]).foreachBatch(batch)
query = writer.start()
while not spark.sparkContext.statusTracker().getActiveJobsIds():
    time.sleep(0.1)
query.stop()
spark.stop()
"""


def test_a_user_without_a_name_is_one_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pwd.getpwuid", lambda uid: {}[uid])
    with pytest.raises(MissingToolError, match=f"uid {os.getuid()} has none"):
        session.get(config.SparkSection())


def test_a_session_is_opened_by_its_first_use_and_once(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[object] = []

    def get(conf: object, _: object) -> object:
        opened.append(conf)
        return "session"

    monkeypatch.setattr(session, "get", get)
    conf = config.SparkSection()
    open_session = session.opener(conf)
    assert opened == []
    assert [open_session(), open_session()] == ["session"] * 2
    assert opened == [conf]


def gateways_of(process: "subprocess.Popen[str]") -> list[psutil.Process]:
    return [
        child for child in psutil.Process(process.pid).children(recursive=True) if _is_jvm(child)
    ]


def _is_jvm(child: psutil.Process) -> bool:
    try:
        return "pyspark-shell" in child.cmdline()
    except psutil.NoSuchProcess:  # a process of `java -version`, which has ended
        return False


@pytest.mark.spark
@pytest.mark.faults
@pytest.mark.parametrize("wait_s", [0.0, 0.5, 1.5])
def test_ctrl_c_while_spark_starts_leaves_no_process(wait_s: float) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", START],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        while not (jvms := gateways_of(process)):
            assert process.poll() is None
            time.sleep(0.02)
        time.sleep(wait_s)
        process.send_signal(signal.SIGINT)
        assert process.wait(300) != 0
        assert psutil.wait_procs(jvms, 120)[1] == []
        assert process.stderr is not None
        assert "KeyboardInterrupt" in process.stderr.read()


@pytest.mark.faults
@pytest.mark.spark
def test_a_query_stopped_within_a_batch_finds_the_interrupt(tmp_path: Path) -> None:
    done = python(STOP_WITHIN_A_BATCH, str(tmp_path), timeout=300)
    assert done.returncode == 0, done.stderr
    assert "StackOverflowError" not in done.stdout + done.stderr


@pytest.mark.spark
@pytest.mark.faults
def test_a_jvm_that_ended_by_itself_is_told_in_one_line(tmp_path: Path) -> None:
    warehouse = tmp_path / "warehouse"
    run = ["run", "request_results", "--once", "--set", f"warehouse.path={warehouse}"]
    with subprocess.Popen(
        quotaflow(*run),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        while not list(warehouse.glob("*/_delta_log/*.json")):
            assert process.poll() is None
            time.sleep(0.1)
        (jvm,) = gateways_of(process)
        jvm.kill()
        _, stderr = process.communicate(timeout=300)
    assert process.returncode == 1
    assert stderr.splitlines()[-1].startswith("error: Spark's JVM ended by itself (signal 9)")
    assert "Traceback" not in stderr


@pytest.mark.spark
def test_a_page_of_memory_fills_whole_regions_of_the_heap(spark: SparkSession) -> None:
    jvm: Any = spark._jvm
    page_bytes = jvm.org.apache.spark.SparkEnv.get().memoryManager().pageSizeBytes()
    array_bytes = page_bytes + jvm.org.apache.spark.unsafe.Platform.LONG_ARRAY_OFFSET
    assert array_bytes & (array_bytes - 1) == 0


@pytest.mark.spark
def test_once_a_jvm_runs_what_other_threads_print_stays_on_stdout(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    def redirected() -> None:
        pytest.fail("stdout was redirected")

    monkeypatch.setattr(session, "_output_to_stderr", redirected)
    conf = config.SparkSection(driver_memory="3g", conf=session.SHORT_LIVED)
    assert session.get(conf) is spark
