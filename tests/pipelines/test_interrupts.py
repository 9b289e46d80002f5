"""A Ctrl-C that falls where Python drops exceptions ends a command all the same."""

import subprocess
import sys
from pathlib import Path

_PROGRAM = """
import gc
import signal
import time

from quotaflow.pipelines import interrupts

interrupts.repeat_dropped()


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
