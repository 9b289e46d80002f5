"""A Python worker that is killed in the middle of a batch: tried again, no point lost or twice."""

import os
import subprocess
from pathlib import Path

import pytest

from ...live.tables_read import contents
from . import recorded
from .command import command, conf_file, copied
from .conftest import Made, Topic

pytestmark = [pytest.mark.spark, pytest.mark.faults]

JOB = "client_metrics"
TIMEOUT_S = 280
# A timer of CPU time goes off while a worker is at work: Spark replaces one that waits for work
# without a trace.
DIES_AT_WORK = """
import os, signal, sys

def die(*_):
    try:
        os.close(os.open({flag!r}, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return
    os.kill(os.getpid(), signal.SIGKILL)

def set_timer():
    signal.signal(signal.SIGVTALRM, die)
    signal.setitimer(signal.ITIMER_VIRTUAL, 0.3)

if "pyspark.daemon" in sys.orig_argv:
    os.register_at_fork(after_in_child=set_timer)
"""
"""What Python runs as it starts, in a process that forks workers: the first one kills itself."""


@pytest.mark.timeout(3_600)
def test_a_worker_that_is_killed_costs_one_try(made: Made, topic: Topic, tmp_path: Path) -> None:
    pushes = [line for line in recorded.golden_lines() if b"PUSH_TELEMETRY" in line]
    topic(recorded.dealt(pushes, 2))
    calm = made("calm", "ingest_request_log", JOB)
    recorded.run(calm, "ingest_request_log")
    folder = tmp_path / "disturbed"
    copy = copied(calm.warehouse.conf.folder, folder)
    recorded.run(calm, JOB)
    flag = tmp_path / "killed"
    (tmp_path / "sitecustomize.py").write_text(DIES_AT_WORK.format(flag=str(flag)))
    done = subprocess.run(
        command(conf_file(folder), JOB),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        timeout=TIMEOUT_S,
    )
    assert (flag.exists(), done.returncode) == (True, 0), done.stdout
    assert "Python worker exited unexpectedly" in done.stdout
    assert "; trying again in 1 s" in done.stdout
    names = {"client_metrics"}
    assert (
        contents(copy, names)["client_metrics"]
        == contents(calm.warehouse.conf.folder, names)["client_metrics"]
    )
