"""Python in a process of its own: what it imports and changes is not ours."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psutil


def python(code: str, *words: str, **options: Any) -> "subprocess.CompletedProcess[str]":
    """What became of a process that ran this text; `options` are those of `subprocess.run`."""
    command = [sys.executable, "-c", code, *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def printed_by(code: str, *words: str, **options: Any) -> str:
    """What this text prints, in a process that ends well."""
    process = python(code, *words, **options)
    assert process.returncode == 0, process.stderr
    return process.stdout


def working(process: "subprocess.Popen[Any]") -> psutil.Process:
    """The process below this one that computes, once it does."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        for child in psutil.Process(process.pid).children(recursive=True):
            if child.cpu_times().user > 1:
                return child
        time.sleep(0.05)
    raise AssertionError("no child computes")


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
