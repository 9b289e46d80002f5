"""Kafka's own classes as an oracle: one JVM for the whole test session."""

import subprocess
from collections.abc import Iterator
from typing import IO, Any

import pytest

from .kafka_programs import compiled


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
    command = compiled("Oracle", tmp_path_factory.mktemp("oracle"))
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as jvm:
        yield Oracle(jvm.stdin, jvm.stdout)
