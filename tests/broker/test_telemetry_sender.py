"""The receiver's queue in a JVM: its heap is bounded, and no exception stops it or leaks bytes."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from quotaflow.demo import java_classes
from quotaflow.pipelines.spark.jars import kafka_jars
from quotaflow.pipelines.spark.java import java, javac

SOURCE = Path(__file__).with_name("TelemetrySenderCheck.java")
BOUND = 16 << 20
Scenario = Callable[[str], dict[str, int]]


@pytest.fixture(scope="module")
def scenario(tmp_path_factory: pytest.TempPathFactory) -> Scenario:
    """Runs one scenario of the Java source; returns what it counted."""
    classes = tmp_path_factory.mktemp("sender")
    jars = kafka_jars()
    class_path = os.pathsep.join(map(str, [classes, java_classes.compiled(jars), *jars]))
    lint = ["-Xlint:all,-path", "-Werror"]
    subprocess.run([javac(), *lint, "-cp", class_path, "-d", classes, SOURCE], check=True)

    def run(name: str) -> dict[str, int]:
        options = ["-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        command = [java(), *options, "-cp", class_path, "quotaflow.TelemetrySenderCheck", name]
        output = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
        lines = (line.split() for line in output.stdout.splitlines())
        return {words[0]: int(words[1]) for words in lines if len(words) == 2}

    return run


def test_long_client_ids_stay_within_the_bound(scenario: Scenario) -> None:
    """10,000 pushes of one byte and a client id of 32 KB would take 320 MiB."""
    assert scenario("headers")["grown"] < 1.25 * BOUND


def test_a_push_that_cannot_be_built_is_counted_and_its_bytes_are_released(
    scenario: Scenario,
) -> None:
    counts = scenario("building")
    assert counts == {
        "memory_errors": 10,
        "received": 20_011,
        "sent": 0,
        "dropped": 0,
        "failed": 20_010,
        "queued": 1,
    }


def test_no_exception_of_the_producer_ends_the_thread(scenario: Scenario) -> None:
    counts = scenario("sending")
    assert counts == {"received": 4, "sent": 1, "dropped": 0, "failed": 3, "queued": 0}
