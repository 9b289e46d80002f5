"""A session interrupted at any moment of its start leaves no JVM behind."""

import signal
import subprocess
import sys
import time

import psutil
import pytest

START = """
from quotaflow.pipelines import config, session
print("begin", flush=True)
session.get(config.Spark())
"""


def gateways_of(process: "subprocess.Popen[str]") -> list[psutil.Process]:
    return [
        child for child in psutil.Process(process.pid).children(recursive=True) if _is_jvm(child)
    ]


def _is_jvm(child: psutil.Process) -> bool:
    try:
        return "pyspark-shell" in child.cmdline()
    except psutil.NoSuchProcess:  # one that only told its version, gone by now
        return False


@pytest.mark.spark
@pytest.mark.parametrize(
    "wait_s",
    [
        pytest.param(0.0, marks=pytest.mark.faults),
        0.5,
        pytest.param(1.5, marks=pytest.mark.faults),
    ],
)
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
        assert process.wait(60) != 0
        assert psutil.wait_procs(jvms, 20)[1] == []
        assert process.stderr is not None
        assert "KeyboardInterrupt" in process.stderr.read()
