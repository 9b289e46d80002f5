"""A Python worker that is killed in the middle of a batch: tried again, no point lost or twice."""

import os
import signal
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


def worker_below(pid: int) -> psutil.Process | None:
    """A Python process that Spark forked for its tasks, at work."""
    for child in psutil.Process(pid).children(recursive=True):
        try:
            is_forked = "pyspark.daemon" in child.cmdline() and child.parent() is not None
            if is_forked and "pyspark.daemon" in child.parent().cmdline():
                return child
        except psutil.NoSuchProcess:
            continue
    return None


@pytest.mark.timeout(900)
def test_a_worker_that_is_killed_costs_one_try(made: Made, topic: Topic, tmp_path: Path) -> None:
    topic(recorded.dealt(recorded.golden_lines(), 4))
    calm = made("calm", "ingest_request_log", JOB)
    recorded.run(calm, "ingest_request_log")
    folder = tmp_path / "disturbed"
    found = copied(calm.warehouse.conf.folder, folder)
    recorded.run(calm, JOB)
    with start(conf_file(folder), JOB) as process:
        killed = 0
        end = time.monotonic() + TIMEOUT_S
        while process.poll() is None and not killed and time.monotonic() < end:
            worker = worker_below(process.pid)
            if worker:
                os.kill(worker.pid, signal.SIGKILL)
                killed += 1
            time.sleep(0.01)
        said, _ = process.communicate(timeout=TIMEOUT_S)
    assert (killed, process.returncode) == (1, 0), said
    assert "Python worker exited unexpectedly" in said
    assert "; trying again in 1 s" in said
    names = {"client_metrics"}
    assert (
        contents(found, names)["client_metrics"]
        == contents(calm.warehouse.conf.folder, names)["client_metrics"]
    )
