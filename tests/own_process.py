"""Python in a process of its own: what it imports and changes is not ours."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


def python(code: str, *words: str, **options: Any) -> "subprocess.CompletedProcess[str]":
    """What became of a process that ran this text; `options` are those of `subprocess.run`."""
    command = [sys.executable, "-c", code, *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def printed_by(code: str, *words: str, **options: Any) -> str:
    """What this text prints, in a process that ends well."""
    process = python(code, *words, **options)
    assert process.returncode == 0, process.stderr
    return process.stdout


@contextmanager
def holding(code: str, **options: Any) -> Iterator["subprocess.Popen[str]"]:
    """A process that has printed its first line, until the block ends or its input does."""
    command = [sys.executable, "-c", code]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, text=True, stdin=pipe, stdout=pipe, **options) as process:
        assert process.stdout is not None
        assert process.stdout.readline()
        try:
            yield process
        finally:
            process.kill()


def quotaflow(*words: str) -> list[str]:
    """The command line of a quotaflow command in a process of its own."""
    return [sys.executable, "-m", "quotaflow.pipelines", *words]
