"""Runs a Java source of this folder against the jar for brokers."""

import os
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from quotaflow.pipelines.spark.jars import kafka_jars
from quotaflow.pipelines.spark.java import SHORT_RUN, compiler, java

from ..broker_jar import broker_jar

_FLAGS = ("-Dsun.stdout.encoding=UTF-8", "-Xmx512m", *SHORT_RUN)

_FOLDERS: list[tempfile.TemporaryDirectory[str]] = []


@dataclass(frozen=True, slots=True)
class JavaCheck:
    """A class with a main method whose first argument is the name of a scenario."""

    name: str

    def lines(self, *arguments: str, given: Sequence[str] = ()) -> list[str]:
        """What it prints for these arguments and lines of its input: asked again, the same."""
        return _printed(self.name, arguments, "".join(f"{line}\n" for line in given)).copy()

    def counts(self, *arguments: str) -> dict[str, int]:
        """The counts that it prints, each as a name and a number."""
        words = (line.split() for line in self.lines(*arguments))
        return {pair[0]: int(pair[1]) for pair in words if len(pair) == 2}


@cache
def _class_path() -> str:
    """The jar, what it needs, and the sources of this folder, compiled once for a process."""
    folder = tempfile.TemporaryDirectory(prefix="java-checks-")
    _FOLDERS.append(folder)
    class_path = os.pathsep.join(map(str, [folder.name, broker_jar(), *kafka_jars()]))
    sources = map(str, Path(__file__).parent.glob("*.java"))
    lint = ["-Xlint:all,-path,-processing", "-Werror", "-proc:none"]
    command = [*compiler(), *lint, "-cp", class_path, "-d", folder.name, *sources]
    subprocess.run(command, check=True)
    return class_path


@cache
def _printed(name: str, arguments: tuple[str, ...], text: str) -> list[str]:
    command = [str(java()), *_FLAGS, "-cp", _class_path(), f"quotaflow.{name}", *arguments]
    done = subprocess.run(
        command, input=text, stdout=subprocess.PIPE, text=True, check=True, timeout=120
    )
    return done.stdout.split("\n")[:-1]
