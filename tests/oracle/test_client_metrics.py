"""The catalogue against Kafka's own clients: names, kinds, and units where Kafka says them."""

import csv
import re
import subprocess

import pytest

from quotaflow.schemas.metrics import JAVA, METRICS

from .kafka_programs import compiled

UNITS = {
    "ns": r"nanosec|\bns\b",
    "ms": r"millisec|\bms\b",
    "By": r"\bbytes\b",
    "s": r"number of seconds|age in seconds",
}
"""Words of Kafka's descriptions that name a unit, the most telling first."""


@pytest.fixture(scope="module")
def pushed(tmp_path_factory):
    """What real clients would push by name: kind, and Kafka's description."""
    command = compiled("ClientMetrics", tmp_path_factory.mktemp("client_metrics"))
    output = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=120)
    lines = (line.split("\t") for line in output.stdout.splitlines())
    return {name: (kind, description) for name, kind, description in lines}


def test_the_golden_names_are_still_those_of_the_jar(pushed, golden):
    with (golden / "otlp/metric_names.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["source"] == "kafka-clients 4.3.1"]
    assert {row["name"]: row["kind"] for row in rows} == {n: k for n, (k, _) in pushed.items()}


def test_all_are_in_the_catalogue_with_their_kind(pushed):
    assert {name: METRICS[name].kind for name in pushed} == {n: k for n, (k, _) in pushed.items()}
    assert all(JAVA in METRICS[name].clients for name in pushed)


def test_units_are_those_that_kafkas_descriptions_name(pushed):
    named = 0
    for name, (_, description) in pushed.items():
        units = [u for u, words in UNITS.items() if re.search(words, description.lower())]
        if units:
            named += 1
            assert METRICS[name].unit.split("/")[0] == units[0], (name, description)
    assert named > 100
