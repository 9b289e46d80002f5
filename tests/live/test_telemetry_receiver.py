"""The broker-side receiver: what clients push reaches the topic, and nothing it meets hurts."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import Message, Producer
from kafka.admin import ConfigResource, ConfigResourceType
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from quotaflow.demo import brokers
from quotaflow.demo.broker_config import TELEMETRY_TOPIC, server_properties
from quotaflow.demo.cluster import LocalCluster
from quotaflow.pipelines.errors import KafkaError

from ..cases import cases
from . import quiet_clients
from .jmx import jmx
from .readers import await_so

ENDS = ("Sent", "Dropped", "Failed")
COUNTS = ("Received", *ENDS, "QueueSize")


@contextmanager
def pushing_client(cluster: LocalCluster, client_id: str) -> Iterator[None]:
    """A librdkafka producer that does nothing but push telemetry, until the end."""
    producer = Producer({**cluster.librdkafka_properties("alice"), "client.id": client_id})
    producer.poll(0)
    yield
    producer.flush(5)


def pushes(cluster: LocalCluster, client_id: str, timeout_s: float = 30) -> list[Message]:
    """The first two pushes of this client on the topic."""
    login, group = cluster.librdkafka_properties("admin"), f"test-{uuid4().hex}"
    messages: list[Message] = []
    deadline = time.monotonic() + timeout_s
    with quiet_clients.reader(login, TELEMETRY_TOPIC, group) as consumer:
        while len(messages) < 2 and time.monotonic() < deadline:
            message = consumer.poll(1)
            if message and ("client_id", client_id.encode()) in (message.headers() or []):
                messages.append(message)
    return messages


def counts(cluster: LocalCluster, broker_id: int) -> dict[str, int]:
    beans = jmx(cluster, broker_id, "quotaflow:type=TelemetryReceiver")
    values = {name.rsplit(":", 1)[-1]: value for name, value in beans.items()}
    return {name: int(values[name]) for name in COUNTS}


def test_a_push_reaches_the_topic_with_all_its_headers(cluster: LocalCluster, golden: Path) -> None:
    client_id = f"rdk-{uuid4().hex[:8]}"
    cluster.subscribe_telemetry("everything", interval_ms=1000)
    with pushing_client(cluster, client_id):
        messages = pushes(cluster, client_id)
    assert len(messages) == 2
    names = list(json.loads((golden / "plugin_headers.json").read_text())[0])
    for message in messages:
        headers: dict[str, Any] = dict(message.headers() or [])
        assert list(headers) == names
        assert message.key() == headers["client_instance_id"]
        assert headers["principal"] == b"User:alice"
        assert headers["listener"] == headers["security_protocol"] == b"SASL_PLAINTEXT"
        assert headers["content_type"] == b"OTLP"
        assert headers["push_interval_ms"] == b"1000"
        assert int(headers["broker_id"]) in cluster.racks
        assert int(headers["client_source_port"]) > 0
        assert MetricsData.FromString(message.value() or b"").resource_metrics


def test_every_push_is_counted_once(cluster: LocalCluster) -> None:
    client_id = f"rdk-{uuid4().hex[:8]}"
    cluster.subscribe_telemetry("everything", interval_ms=1000)
    with pushing_client(cluster, client_id):
        pushes(cluster, client_id)
    of_brokers: list[dict[str, int]] = []

    def is_settled() -> bool:
        of_brokers[:] = [counts(cluster, broker_id) for broker_id in cluster.racks]
        return all(each["Received"] == sum(each[name] for name in ENDS) for each in of_brokers)

    await_so(is_settled)
    assert sum(of_one["Sent"] for of_one in of_brokers) >= 2
    assert {of_one["Dropped"] + of_one["Failed"] for of_one in of_brokers} == {0}


def test_kafkas_own_beans_are_still_there(cluster: LocalCluster) -> None:
    beans = jmx(cluster, 1, "kafka.server:type=socket-server-metrics,*")
    assert any("connection-count" in name for name in beans)


def one_broker(
    folder: Path, monkeypatch: pytest.MonkeyPatch, receiver: dict[str, str]
) -> LocalCluster:
    """A cluster of one whose receiver is configured otherwise."""

    def changed(*args: Any) -> dict[str, str]:
        prefixed = {f"quotaflow.telemetry.{key}": value for key, value in receiver.items()}
        return server_properties(*args) | prefixed

    monkeypatch.setattr(brokers, "server_properties", changed)
    return LocalCluster(folder / "one", nodes=1)


@pytest.mark.faults
@cases(
    ("receiver", "counted_as"),
    ("a full queue drops", {"queue.max.bytes": "1"}, "Dropped"),
    ("no topic fails", {"topic": "nowhere", "producer.max.block.ms": "100"}, "Failed"),
)
def test_a_push_that_cannot_be_kept_is_counted_and_the_client_goes_on(
    receiver: dict[str, str], counted_as: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with one_broker(tmp_path, monkeypatch, receiver) as cluster:
        cluster.subscribe_telemetry("everything", interval_ms=200)
        with pushing_client(cluster, "rdk"):
            time.sleep(6)
        of_it = counts(cluster, 1)
        pushed = cluster.request_logs[1].read_text().count('"requestApiKeyName":"PUSH_TELEMETRY"')
        logged = cluster.request_logs[1].with_name("server.log").read_text()
    assert of_it["Received"] >= 2
    assert of_it[counted_as] == of_it["Received"] <= pushed
    assert of_it["Sent"] == 0
    assert 1 <= logged.count("Client telemetry: ") <= 2


@pytest.mark.faults
def test_a_receiver_taken_out_and_put_back_at_run_time_counts_anew(tmp_path: Path) -> None:
    jmx_reporter = "org.apache.kafka.common.metrics.JmxReporter"
    with LocalCluster(tmp_path / "one", nodes=1) as cluster:
        cluster.subscribe_telemetry("everything", interval_ms=200)
        with pushing_client(cluster, "rdk"):
            assert len(pushes(cluster, "rdk")) == 2
            set_reporters(cluster, jmx_reporter)
            with pytest.raises(KafkaError, match="No matched attributes"):
                counts(cluster, 1)
            set_reporters(cluster, f"{jmx_reporter},quotaflow.TelemetryReceiver")
            time.sleep(4)
        of_it = counts(cluster, 1)
        logged = cluster.request_logs[1].with_name("server.log").read_text()
    assert of_it["Sent"] >= 1
    assert of_it["Dropped"] == of_it["Failed"] == 0
    assert logged.count("Client telemetry: ") <= 1  # what was queued when it was taken out


def set_reporters(cluster: LocalCluster, reporters: str) -> None:
    resource = ConfigResource(ConfigResourceType.BROKER, "1", {"metric.reporters": reporters})
    with cluster.admin() as admin:
        assert admin.alter_configs([resource]) == {"broker": {"1": "OK"}}


@pytest.mark.parametrize(
    ("receiver", "message"),
    [
        pytest.param({"queue.max.bytes": "0"}, "queue.max.bytes: Value must be", id="a bound of 0"),
        pytest.param({"que.max.bytes": "9"}, "unknown que.max.bytes, known are", id="misspelled"),
        *(
            pytest.param(
                {key: value}, key.removeprefix("producer."), id=key, marks=pytest.mark.faults
            )
            for key, value in (
                ("queue.max.records", "many"),
                ("topic", ""),
                ("bootstrap.servers", ""),
                ("producer.acks", "5"),
            )
        ),
    ],
)
def test_a_config_that_cannot_be_right_stops_the_start_and_is_named(
    receiver: dict[str, str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = one_broker(tmp_path, monkeypatch, receiver)
    with pytest.raises(KafkaError) as error:
        cluster.__enter__()
    assert message in str(error.value)
    assert "TelemetryReceiver" in str(error.value)
    assert cluster.pids == {}
