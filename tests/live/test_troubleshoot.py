"""troubleshoot as a process, against a real librdkafka: points come, and the resource goes."""

import json
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import Producer

from quotaflow.demo.broker_config import REQUEST_LOG_TOPIC
from quotaflow.demo.cluster import LocalCluster
from quotaflow.demo.rotated_log import RotatedLog
from quotaflow.demo.shipper import MAX_LINE_BYTES, Shipper
from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.kafka import client_metrics
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.udfs.rules import lease

from ..command_line import in_options
from ..own_process import quotaflow
from ..schemas.views.view_tables import make_answers, make_tables
from . import logged_process, printed_command

PRODUCER = "org.apache.kafka.producer."
SUBSCRIBED = f"{PRODUCER}connection."
_TRIES = 120


@pytest.fixture(scope="module")
def client_id(cluster: LocalCluster) -> Iterator[str]:
    """A librdkafka producer that pushes a little every second, until the end."""
    name = f"rdk-{uuid4().hex[:8]}"
    cluster.subscribe_telemetry(name, SUBSCRIBED, 1_000, f"client_id={name}")
    with Shipper(cluster.librdkafka_properties("shipper"), REQUEST_LOG_TOPIC, cluster.request_logs):
        producer = Producer({**cluster.librdkafka_properties("alice"), "client.id": name})
        producer.poll(0)
        yield name
        producer.flush(5)
        producer.close()
    client_metrics.delete(cluster.client_properties("admin"), name)


def subscription_of(cluster: LocalCluster, client_id: str) -> dict[str, Any]:
    """The first answer of a broker to the client's question what to push, as a row of its table."""
    with ExitStack() as stack:
        # A busy machine reads all lines of a run of tests for longer than a client takes to ask.
        logs = [RotatedLog(path, MAX_LINE_BYTES) for path in cluster.request_logs.values()]
        for log in logs:
            stack.callback(log.close)
        for _ in range(_TRIES):
            for line in [json.loads(line)["r"] for log in logs for line in log.lines() if line]:
                if (row := _subscription(line, client_id)) is not None:
                    return row | {"cluster_id": cluster.cluster_id}
            time.sleep(0.5)
    raise AssertionError(f"{client_id} never asked what to push")


def _subscription(line: dict[str, Any], client_id: str) -> dict[str, Any] | None:
    header, response = line["requestHeader"], line["response"]
    is_answer = header["requestApiKeyName"] == "GET_TELEMETRY_SUBSCRIPTIONS"
    if not is_answer or header["clientId"] != client_id or response["errorCode"] != 0:
        return None
    return {
        "event_time": datetime.now(UTC),
        "client_instance_id": response["clientInstanceId"],
        "client_id": client_id,
        "client_software_name": line["clientInformation"]["softwareName"],
        "client_software_version": line["clientInformation"]["softwareVersion"],
        "error_code": 0,
        "push_interval_ms": response["pushIntervalMs"],
    }


@pytest.fixture
def command(cluster: LocalCluster, client_id: str, conf: Conf, login: list[str]) -> list[str]:
    """The command for that client, on tables that know it."""
    warehouse = Warehouse(conf.warehouse)
    make_tables(warehouse, {"telemetry_subscriptions": [subscription_of(cluster, client_id)]})
    make_answers(warehouse, "SELECT * FROM client_instances")
    options = in_options(*login, f"warehouse.path={conf.warehouse.folder}")
    words = [client_id, "--metrics", PRODUCER, "--interval", "1s", "--json", *options]
    return quotaflow("troubleshoot", *words)


def leases(cluster: LocalCluster) -> list[str]:
    current = client_metrics.read(cluster.client_properties("admin"))
    return [name for name in current if lease.until_s(name)]


@pytest.mark.faults
def test_points_come_each_once_and_the_resource_goes(
    cluster: LocalCluster, client_id: str, command: list[str]
) -> None:
    output = subprocess.run(
        [*command, "--for", "10s", "--yes"], capture_output=True, text=True, check=False
    )
    assert output.returncode == 0, output.stderr
    rows = [json.loads(line) for line in output.stdout.splitlines()]
    assert {(row["client_id"], row["principal"]) for row in rows} == {(client_id, "User:alice")}
    assert any(not row["metric"].startswith(SUBSCRIBED) for row in rows)
    points = {(row["series_id"], row["event_time"], row["start_time"]) for row in rows}
    assert len(points) == len(rows) > 10
    hears, *_, ends = output.stderr.splitlines()
    assert "within 2 s" in hears
    assert f"and {len(rows)} points came" in ends
    assert leases(cluster) == []


@pytest.mark.faults
@pytest.mark.shows("refuses a subscription that would harm a live client")
def test_without_yes_nothing_is_written_and_what_is_shown_can_be_run(
    cluster: LocalCluster, command: list[str]
) -> None:
    output = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    shown = json.loads(output.stdout)
    assert leases(cluster) == []
    for line, current in ((shown["command"], [shown["name"]]), (shown["take_back_command"], [])):
        printed_command.run(cluster, line)
        assert leases(cluster) == current


@pytest.mark.parametrize(
    ("ending", "times"),
    [
        pytest.param(signal.SIGINT, 1, marks=pytest.mark.faults),
        (signal.SIGINT, 5),
        pytest.param(signal.SIGTERM, 5, marks=pytest.mark.faults),
    ],
)
def test_an_end_from_outside_however_often_takes_it_back(
    cluster: LocalCluster, command: list[str], ending: signal.Signals, times: int, tmp_path: Path
) -> None:
    log, subscribed = tmp_path / "stderr", b"requested by client-metrics"
    words = [*command, "--for", "5m", "--yes"]
    with logged_process.logging(words, log, subscribed) as process:
        assert len(leases(cluster)) == 1
        for _ in range(times):
            process.send_signal(ending)
            time.sleep(0.15)
        # Once all is taken back, a further one may kill it.
        killed = {-ending} if times > 1 else set()
        assert process.wait(logged_process.TIMEOUT_S) in {130} | killed, log.read_text()
    assert "is deleted" in log.read_text()
    assert leases(cluster) == []
