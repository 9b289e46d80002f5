"""Kafka's own classes as an oracle: one JVM for the whole test session."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import pytest

from quotaflow.pipelines.spark.jars import kafka_jars
from quotaflow.pipelines.spark.java import SHORT_RUN, compiler, java

SOURCE = Path(__file__).with_name("Oracle.java")


class Oracle:
    """Asks the JVM: all commands of a batch go in, then all its measurements come out."""

    def __init__(self, commands: IO[str], answers: IO[str]) -> None:
        self._commands, self._answers = commands, answers

    def measure(self, commands: list[str]) -> list[float]:
        """What Kafka answers to each `measure` among the commands."""
        self._commands.write("\n".join([*commands, "answer", ""]))
        self._commands.flush()
        measurements = sum(command.startswith("measure ") for command in commands)
        return [float(self._answers.readline()) for _ in range(measurements)]


@pytest.fixture(scope="session")
def oracle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Oracle]:
    classes = tmp_path_factory.mktemp("oracle")
    class_path = os.pathsep.join(map(str, [classes, *kafka_jars()]))
    subprocess.run(
        [*compiler(), "-Xlint:all,-path", "-Werror", "-cp", class_path, "-d", classes, SOURCE],
        check=True,
    )
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    command = [java(), "-Xmx128m", *SHORT_RUN, "-cp", class_path, "Oracle"]
    with subprocess.Popen(command, **pipes) as jvm:
        yield Oracle(jvm.stdin, jvm.stdout)
