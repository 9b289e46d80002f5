"""Configurations of broker/ on an OpenTelemetry Collector 0.165 that is built from Go modules.

Needs Go and its module proxy; the first build takes minutes, later ones use Go's cache.
"""

import base64
import json
import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import urllib3
import yaml
from confluent_kafka import Consumer, Message
from prometheus_client.parser import text_string_to_metric_families

from quotaflow.demo.cluster import LocalCluster
from quotaflow.demo.ports import LOOPBACK, free_ports
from quotaflow.udfs.facts import telemetry_pushes

from ..record_batches import parsed, record_batch
from ..udfs.facts.test_collector_records import points, records
from ..udfs.otlp.test_differential import SAMPLES
from . import fetched, forwarded, quiet_clients
from .odd_lines import OddLines

# The first run builds the program.
pytestmark = [pytest.mark.faults, pytest.mark.timeout(3_600)]

SENT = "org.apache.kafka.producer.record.send.total"
BUILDER = "go.opentelemetry.io/collector/cmd/builder@v0.165.0"
OF_ROUTE = ("form", "record_time", "event_time", "stated_time")


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program."""
    folder = tmp_path_factory.mktemp("collector")
    shutil.copy(Path(__file__).parent / "collector-builder.yaml", folder / "builder.yaml")
    command = [fetched.from_go(BUILDER), "--config", "builder.yaml"]
    subprocess.run(command, cwd=folder, check=True, timeout=1_800)
    return folder / "out" / "otelcol"


def settings(name: str, cluster: LocalCluster, folder: Path) -> dict[str, Any]:
    """The file for operators with its EDIT lines edited: paths, brokers and login."""
    whole: dict[str, Any] = yaml.safe_load((files("quotaflow.broker") / name).read_text("utf-8"))
    login = cluster.librdkafka_properties("shipper")
    sides = [whole["exporters"]["kafka"]]
    if "kafka" in whole["receivers"]:
        sides.append(whole["receivers"]["kafka"])
    for side in sides:
        side["brokers"] = cluster.bootstrap_servers.split(",")
        side["auth"]["sasl"] |= {
            "mechanism": login["sasl.mechanism"],
            "username": login["sasl.username"],
        }
        del side["tls"]
    if "filelog" in whole["receivers"]:
        whole["receivers"]["filelog"]["include"] = [str(folder / "requests.jsonl")]
        whole["extensions"]["file_storage"]["directory"] = str(folder / "positions")
        (folder / "positions").mkdir()
    # Else it opens a port.
    whole["service"]["telemetry"] = {"metrics": {"level": "none"}}
    return whole


@contextmanager
def running(
    program: Path, whole: dict[str, Any], folder: Path, cluster: LocalCluster | None = None
) -> Iterator[None]:
    conf = folder / "collector.yaml"
    conf.write_text(yaml.safe_dump(whole), encoding="utf-8")
    environment = dict(os.environ)
    if cluster is not None:
        password = cluster.librdkafka_properties("shipper")["sasl.password"]
        environment |= dict.fromkeys(("SHIPPER_PASSWORD", "COLLECTOR_PASSWORD"), password)
    command = [program, "--config", conf]
    subprocess.run([program, "validate", "--config", conf], env=environment, check=True)
    with subprocess.Popen(command, env=environment) as process:
        yield
        assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        assert process.wait(300) == 0


def rows_of(messages: list[Message]) -> list[dict[str, Any]]:
    headers = [{k: v.decode() for k, v in message.headers() or ()} for message in messages]
    return parsed([message.value() for message in messages], headers=headers)


def read(reader: Consumer, lines: int) -> list[dict[str, Any]]:
    """The rows of at least so many lines, and of what comes within two seconds behind them."""
    messages: list[Message] = []
    while len(rows_of(messages)) < lines and (message := reader.poll(60)) is not None:
        assert message.error() is None
        messages.append(message)
    while (message := reader.poll(2)) is not None:
        messages.append(message)
    return rows_of(messages)


def comparable(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {k: v for k, v in row.items() if k not in OF_ROUTE and not k.startswith("source_")}
        for row in rows
    ]


def test_every_line_is_read_once_over_rotations(
    collector: Path, cluster: LocalCluster, golden: Path, tmp_path: Path
) -> None:
    topic = "lines-by-collector"
    cluster.create_topics([topic], partitions=1, configs={"max.message.bytes": "8388608"})
    lines = (golden / "lines" / "slice_envelope_n1.jsonl").read_bytes().splitlines()
    made = OddLines(lines[0])
    login = cluster.librdkafka_properties("admin")
    conf = settings("otel-collector-logs.yaml", cluster, tmp_path)
    conf["exporters"]["kafka"]["logs"]["topic"] = topic
    log = tmp_path / "requests.jsonl"
    with log.open("ab") as file:
        file.writelines(line + b"\n" for line in (*lines, made.long, made.secret))
    with (
        running(collector, conf, tmp_path, cluster),
        quiet_clients.reader(login, topic, topic) as reader,
    ):
        first = read(reader, len(lines) + 1)
        log.rename(tmp_path / "requests.1.jsonl")
        log.write_bytes(b"".join(line + b"\n" for line in (made.odd, made.own, made.alike)))
        second = read(reader, 2)
    expected = parsed([*lines, made.long, made.odd, made.alike], headers={"broker_id": "1"})
    assert comparable([*first, *second]) == comparable(expected)
    assert {row["form"] for row in first} == {"wrapped (OTLP logs)"}


def test_pushes_give_the_receivers_points(
    collector: Path, cluster: LocalCluster, golden: Path, tmp_path: Path
) -> None:
    source, target = "pushes-for-collector", "points-by-collector"
    cluster.create_topics([source, target], partitions=1)
    producer = quiet_clients.producer(cluster, "admin")
    rows = (golden / "collector" / "receiver.jsonl").read_text("utf-8").splitlines()
    for row in map(json.loads, rows):
        headers = [(key, base64.b64decode(value)) for key, value in row["headers"].items()]
        producer.produce(source, base64.b64decode(row["value"]), headers=headers)
    assert producer.flush(30) == 0
    login = cluster.librdkafka_properties("admin")
    conf = settings("otel-collector-metrics.yaml", cluster, tmp_path)
    conf["receivers"]["kafka"]["metrics"]["topics"] = [source]
    conf["exporters"]["kafka"]["metrics"]["topic"] = target
    expected = points(records(golden, "receiver"), telemetry_pushes.from_receiver)
    collected: list[dict[str, Any]] = []
    values: list[bytes] = []
    with (
        running(collector, conf, tmp_path, cluster),
        quiet_clients.reader(login, target, target) as reader,
    ):
        while len(collected) < len(expected) and (message := reader.poll(60)) is not None:
            assert message.error() is None
            values.append(message.value())
            batch: pa.RecordBatch = record_batch(values)
            collected = points(batch, telemetry_pushes.from_collector)
    assert collected == expected


def test_forwarded_points_are_series_of_who_pushed_them_and_sums_are_cumulative(
    collector: Path, golden: Path, tmp_path: Path
) -> None:
    (ports,) = free_ports(1, random.SystemRandom())
    took, shown = f"{LOOPBACK}:{ports.client}", f"{LOOPBACK}:{ports.internal}"
    as_labels = {"resource_to_telemetry_conversion": {"enabled": True}}
    parts: dict[str, dict[str, Any]] = {
        "receivers": {"otlp": {"protocols": {"http": {"endpoint": took}}}},
        "processors": {"deltatocumulative": {}},
        "exporters": {"prometheus": {"endpoint": shown, **as_labels}},
    }
    pipeline = {name: list(kinds) for name, kinds in parts.items()}
    service = {"telemetry": {"metrics": {"level": "none"}}, "pipelines": {"metrics": pipeline}}
    now_us = time.time_ns() // 1_000
    rows = [forwarded.points_of(golden, time_us=now_us + s * 1_000_000) for s in (-2, -1)]
    with running(collector, parts | {"service": service}, tmp_path):
        for part in rows:
            forwarded.send(part, f"http://{took}/v1/metrics")
        text = urllib3.request("GET", f"http://{shown}/metrics").data.decode()
    families = list(text_string_to_metric_families(text))
    samples = [sample for family in families for sample in family.samples]
    named = [each.labels for each in samples if "kafka_principal" in each.labels]
    pushed = {(f"User:{number}", f"i{number}") for number in range(len(SAMPLES))}
    assert {(labels["kafka_principal"], labels["instance"]) for labels in named} == pushed
    (sent,) = {
        row["value"]
        for row in rows[0].to_pylist()
        if row["metric"] == SENT and row["client_instance_id"] == "i1"
    }
    assert [each.value for each in samples if each.name == SENT.replace(".", "_")] == [2 * sent]
