"""However the process that started a cluster ends, no broker is left."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from .java_left import await_none, java_below


def start(folder: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "quotaflow.demo.cluster_command", "--folder", str(folder)]
    return subprocess.Popen([*command, "--nodes", "1"], stderr=subprocess.PIPE, text=True)


def await_up(process: subprocess.Popen[str]) -> str:
    output = ""
    for line in process.stderr or ():
        output += line
        if "Ctrl-C" in line:
            break
    return output


def test_kill_9_of_the_parent_leaves_no_broker(tmp_path: Path) -> None:
    with start(tmp_path / "c") as process:
        await_up(process)
        assert len(java_below(tmp_path)) == 1
        os.kill(process.pid, signal.SIGKILL)
        assert await_none(tmp_path, 60) == []


@pytest.mark.parametrize(
    "ending", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.faults)]
)
def test_a_running_cluster_ends_cleanly(ending: signal.Signals, tmp_path: Path) -> None:
    with start(tmp_path / "c") as process:
        output = await_up(process)
        assert "127.0.0.1:" in output
        assert "password" not in output
        process.send_signal(ending)
        assert process.wait(120) == 0
        assert java_below(tmp_path) == []


@pytest.mark.parametrize(
    "after_s",
    [
        pytest.param(0.3, marks=pytest.mark.faults),
        1.0,
        pytest.param(2.0, marks=pytest.mark.faults),
        4.0,
    ],
)
def test_ctrl_c_while_it_starts_leaves_no_process(after_s: float, tmp_path: Path) -> None:
    with start(tmp_path / "c") as process:
        time.sleep(after_s)
        process.send_signal(signal.SIGINT)
        process.wait(120)
        assert await_none(tmp_path, 60) == []


@pytest.mark.faults
@pytest.mark.parametrize("after_s", [0.0, 0.2])
def test_a_second_ctrl_c_while_it_stops_leaves_no_process(after_s: float, tmp_path: Path) -> None:
    with start(tmp_path / "c") as process:
        await_up(process)
        process.send_signal(signal.SIGINT)
        time.sleep(after_s)
        process.send_signal(signal.SIGINT)
        process.wait(120)
        assert await_none(tmp_path, 60) == []
