"""A Python worker that is killed in the middle of a batch: tried again, no point lost or twice."""

import os
import signal
import subprocess
import time
from pathlib import Path

import psutil
import pytest

from ...live.tables_read import contents
from . import recorded
from .command import TIMEOUT_S, conf_file, copied, start
from .conftest import Made, Topic

pytestmark = [pytest.mark.spark, pytest.mark.faults]

JOB = "client_metrics"
_AT_WORK_S = 0.3


def worker_below(pid: int) -> psutil.Process | None:
    """A Python process that Spark forked for its tasks, at work: one that is killed before it gets
    work is replaced without a trace.
    """
    for child in psutil.Process(pid).children(recursive=True):
        try:
            parent = child.parent()
            is_forked = parent is not None and "pyspark.daemon" in parent.cmdline()
            if is_forked and child.cpu_times().user > _AT_WORK_S:
                return child
        except psutil.NoSuchProcess:
            continue
    return None


def kill_one_worker(process: "subprocess.Popen[str]") -> bool:
    """Kill -9 the first worker that is seen; False when the run ended before."""
    while process.poll() is None:
        worker = worker_below(process.pid)
        if worker:
            os.kill(worker.pid, signal.SIGKILL)
            return True
        time.sleep(0.01)
    return False


@pytest.mark.timeout(3_600)
def test_a_worker_that_is_killed_costs_one_try(made: Made, topic: Topic, tmp_path: Path) -> None:
    pushes = [line for line in recorded.golden_lines() if b"PUSH_TELEMETRY" in line]
    topic(recorded.dealt(pushes, 2))
    calm = made("calm", "ingest_request_log", JOB)
    recorded.run(calm, "ingest_request_log")
    folder = tmp_path / "disturbed"
    copy = copied(calm.warehouse.conf.folder, folder)
    recorded.run(calm, JOB)
    with start(conf_file(folder), JOB) as process:
        try:
            killed = kill_one_worker(process)
            output, _ = process.communicate(timeout=TIMEOUT_S)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
    assert (killed, process.returncode) == (True, 0), output
    assert "Python worker exited unexpectedly" in output
    assert "; trying again in 1 s" in output
    names = {"client_metrics"}
    assert (
        contents(copy, names)["client_metrics"]
        == contents(calm.warehouse.conf.folder, names)["client_metrics"]
    )
