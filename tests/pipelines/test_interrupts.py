"""A Ctrl-C that falls where Python drops exceptions ends a command all the same."""

import subprocess
import sys
from pathlib import Path

import pytest

_PROGRAM = """
import gc
import signal
import time

from quotaflow.pipelines import interrupts

interrupts.watch()


def press(phase: str, _: object) -> None:
    gc.callbacks.remove(press)
    signal.raise_signal(signal.SIGINT)


try:
    gc.callbacks.append(press)
    gc.collect()
    time.sleep(60)
except KeyboardInterrupt:
    print("came again")
"""


def test_what_a_callback_drops_comes_again(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(_PROGRAM)
    ended = subprocess.run(
        [sys.executable, program], capture_output=True, text=True, check=False, timeout=120
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "came again\n", "")


_COMMAND = """
import signal
import sys

from quotaflow.pipelines import __main__ as program


def failing(*_: object) -> int:
    if sys.argv[1] != "none":
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            pass
    # As DuckDB does, and a half-imported native module (pyo3).
    raise {"RuntimeError": RuntimeError, "PanicException": BaseException}.get(
        sys.argv[1], RuntimeError
    )("Query interrupted")


program._done = failing
program.main()
"""


@pytest.mark.parametrize("raised", ["RuntimeError", "PanicException"])
def test_what_a_library_raises_at_ctrl_c_is_no_traceback(raised: str, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(_COMMAND)
    ended = subprocess.run(
        [sys.executable, program, raised], capture_output=True, text=True, check=False, timeout=120
    )
    assert (ended.returncode, ended.stderr) == (130, "stopped\n")


def test_the_same_error_without_ctrl_c_has_its_traceback(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(_COMMAND)
    ended = subprocess.run(
        [sys.executable, program, "none"], capture_output=True, text=True, check=False, timeout=120
    )
    assert ended.returncode == 1
    assert "RuntimeError: Query interrupted" in ended.stderr
