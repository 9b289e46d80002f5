"""Command lines of quotaflow, run in this process, and what they print."""

import csv
import io
import json
import shlex
import subprocess
import sys
from dataclasses import dataclass
from typing import NamedTuple

import pytest

from quotaflow.pipelines.__main__ import execute
from quotaflow.pipelines.warehouse.warehouse import Warehouse

from .rows import Row


class Printed(NamedTuple):
    """What a command printed."""

    out: str
    err: str

    @property
    def rows(self) -> list[Row]:
        """The objects of --json."""
        return [json.loads(line, parse_constant=pytest.fail) for line in self.out.splitlines()]

    @property
    def csv_rows(self) -> list[dict[str, str]]:
        """The rows of --csv."""
        return list(csv.DictReader(io.StringIO(self.out)))


@dataclass(frozen=True)
class Command:
    """Runs commands, with these options behind the words of each."""

    capsys: pytest.CaptureFixture[str]
    options: tuple[str, ...] = ()

    def __call__(self, *words: str, code: int = 0) -> Printed:
        """What a command prints that ends with this exit code."""
        self.capsys.readouterr()
        ended = execute([*words, *self.options])
        printed = Printed(*self.capsys.readouterr())
        assert ended == code, printed.err
        return printed

    def error(self, *words: str, code: int = 2) -> str:
        """The line of the error, which is all that a command prints."""
        printed = self(*words, code=code)
        assert printed.out == ""
        assert printed.err.startswith("error: ")
        assert printed.err.count("\n") == 1
        return printed.err


def in_options(*pairs: str) -> list[str]:
    """Pairs of key and value as options of a command."""
    return [word for pair in pairs for word in ("--set", pair)]


def read_in_part(*words: str) -> "subprocess.CompletedProcess[str]":
    """A command in a process of its own, of whose output nobody reads more than ten bytes."""
    line = shlex.join([sys.executable, "-m", "quotaflow.pipelines", *words])
    piped = ["bash", "-c", f"set -o pipefail; {line} | head -c 10 >/dev/null"]
    return subprocess.run(piped, capture_output=True, text=True, timeout=120, check=False)


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs commands as they are written."""
    return Command(capsys)


@pytest.fixture
def table_command(capsys: pytest.CaptureFixture[str], warehouse: Warehouse) -> Command:
    """Runs commands over the tables of the test's warehouse."""
    return Command(capsys, tuple(in_options(f"warehouse.path={warehouse.conf.folder}")))
