"""Commands in processes of their own, whose errors go to a file."""

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from .readers import await_so

TIMEOUT_S = 120.0


@contextmanager
def logging(command: Sequence[str], log: Path, text: bytes) -> Iterator["subprocess.Popen[bytes]"]:
    """A command from when the file has this text; it is killed at the end of the block."""
    given = os.environ | {"PYTHONUNBUFFERED": "1"}
    with (
        log.open("wb") as stderr,
        subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=stderr, env=given) as process,
    ):
        try:
            await_so(lambda: text in log.read_bytes() or process.poll() is not None, TIMEOUT_S)
            assert process.poll() is None, log.read_text("utf-8")
            yield process
        finally:
            process.kill()
