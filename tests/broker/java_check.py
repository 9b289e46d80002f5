"""Runs a Java source of this folder against the jar for brokers."""

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from quotaflow.pipelines.spark.jars import kafka_jars
from quotaflow.pipelines.spark.java import compiler, java

from ..broker_jar import broker_jar

_FLAGS = ("-Dsun.stdout.encoding=UTF-8", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


@dataclass(frozen=True, slots=True)
class JavaCheck:
    """A class with a main method whose first argument is the name of a scenario."""

    name: str
    class_path: str

    @classmethod
    def compiled(cls, name: str, folder: Path) -> "JavaCheck":
        """The class of this name, compiled into a folder with the others of this one."""
        class_path = os.pathsep.join(map(str, [folder, broker_jar(), *kafka_jars()]))
        sources = map(str, Path(__file__).parent.glob("*.java"))
        lint = ["-Xlint:all,-path,-processing", "-Werror", "-proc:none"]
        command = [*compiler(), *lint, "-cp", class_path, "-d", str(folder), *sources]
        subprocess.run(command, check=True)
        return cls(name, class_path)

    def lines(self, *arguments: str, given: Sequence[str] = ()) -> list[str]:
        """What it prints for these arguments and lines of its input."""
        flags = [*_FLAGS, "-cp", self.class_path]
        command = [str(java()), *flags, f"quotaflow.{self.name}", *arguments]
        text = "".join(f"{line}\n" for line in given)
        done = subprocess.run(
            command, input=text, stdout=subprocess.PIPE, text=True, check=True, timeout=120
        )
        return done.stdout.split("\n")[:-1]

    def counts(self, *arguments: str) -> dict[str, int]:
        """The counts that it prints, each as a name and a number."""
        words = (line.split() for line in self.lines(*arguments))
        return {pair[0]: int(pair[1]) for pair in words if len(pair) == 2}
