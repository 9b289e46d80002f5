"""Java share consumers at work: one gives records back, one refuses them, one is throttled.

Their lines are read from the brokers' logs as ingest reads them, which needs no Spark session.
"""

import signal
import subprocess
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Producer
from kafka.admin import ConfigResource, ConfigResourceType

from quotaflow.demo import request_lines
from quotaflow.demo.cluster import LocalCluster
from quotaflow.demo.traffic_java import JavaClient
from quotaflow.demo.traffic_stage import Stage

from . import drive, quota_limits

TOPIC = "deliveries"
RECORDS, BYTES_EACH = 1_200, 500
REFUSED, RETURNED = 50, 1_500
"""Records that a member takes before it ends; what is returned comes again."""
QUOTA = 20_000
RETURNS, REFUSES, THROTTLED = "java-returns", "java-refuses", "java-throttled"
THROTTLED_USER = "ivan"
_TOOL = "consumer.ConsoleShareConsumer"
_PATIENCE_MS = 30_000
"""The first group of a cluster waits for its state topic to be made."""
_NEXT_FETCHES_S = 2.0
_STATES = ("SHARE_FETCH", "SHARE_ACKNOWLEDGE")
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Scene:
    """Rows of `requests` of these consumers."""

    cluster: LocalCluster
    requests: list[Row]


def prepare(cluster: LocalCluster, topic: str, groups: Sequence[str], **configs: str) -> None:
    """A topic with records, and groups that read it from its beginning."""
    cluster.create_topics([topic], partitions=1)
    _produce(cluster, topic)
    values = {"share.auto.offset.reset": "earliest", **configs}
    with cluster.admin() as admin:
        admin.alter_configs([ConfigResource(ConfigResourceType.GROUP, g, values) for g in groups])


def _produce(cluster: LocalCluster, topic: str) -> None:
    login = cluster.librdkafka_properties("alice")
    producer = Producer({**login, "batch.size": 50_000, "linger.ms": 20, "client.id": "delivers"})
    for _ in range(RECORDS):
        producer.produce(topic, b"x" * BYTES_EACH)
        producer.poll(0)
    assert producer.flush(30) == 0


def play(cluster: LocalCluster) -> Scene:
    """All three side by side; the quota is removed after."""
    prepare(cluster, TOPIC, (RETURNS, REFUSES, THROTTLED))
    began_ms = request_lines.now_ms()
    with (
        quota_limits.consumer_byte_rate(cluster, THROTTLED_USER, QUOTA),
        ThreadPoolExecutor(3, "share") as pool,
    ):
        each = [
            pool.submit(_consume, cluster, "grace", RETURNS, "--release", *_at_most(RETURNED)),
            pool.submit(_consume, cluster, "heidi", REFUSES, "--reject", *_at_most(REFUSED)),
            pool.submit(_consume_until_throttled, cluster),
        ]
        for client in each:
            client.result()
    return Scene(cluster, logged(cluster, began_ms))


def logged(cluster: LocalCluster, began_ms: int) -> list[Row]:
    """Rows of requests of share consumers since then."""
    time.sleep(request_lines.LOGGED_AFTER_S)
    lines = (
        line
        for line in request_lines.logged(cluster)
        if line["ts"] >= began_ms and line["r"]["requestHeader"]["requestApiKeyName"] in _STATES
    )
    return drive.parsed(cluster, lines).to_pylist()


def _consume_until_throttled(cluster: LocalCluster) -> None:
    """A member that takes what its quota leaves, and then waits."""
    stage = Stage(cluster, 0, 0)
    with ThreadPoolExecutor(1) as pool:
        client = JavaClient(stage, THROTTLED_USER, THROTTLED)
        at_work = pool.submit(client.run, _TOOL, *_where(TOPIC, THROTTLED), config={})
        output = cluster.folder / "clients" / f"{THROTTLED}.log"
        deadline = time.monotonic() + _PATIENCE_MS / 1_000
        while time.monotonic() < deadline and not at_work.done():
            if output.exists() and b"x" * BYTES_EACH in output.read_bytes():
                time.sleep(_NEXT_FETCHES_S)
                break
            time.sleep(request_lines.LOGGED_AFTER_S)
        stage.stop.set()
        at_work.result()


def _at_most(records: int) -> tuple[str, str]:
    return ("--max-messages", str(records))


def _where(topic: str, group: str) -> tuple[str, ...]:
    return ("--topic", topic, "--group", group, "--timeout-ms", str(_PATIENCE_MS))


def _consume(cluster: LocalCluster, user: str, group: str, *args: str, topic: str = TOPIC) -> None:
    """A member until it has enough, or nothing came for a while."""
    client = JavaClient(Stage(cluster, 0, 0), user, group)
    client.run(_TOOL, *_where(topic, group), *args, config={})


def stop_one(cluster: LocalCluster, group: str, lock_ms: int) -> list[Row]:
    """A member that stops with records in hand, another that gets them, and their requests."""
    prepare(cluster, group, (group,), **{"share.record.lock.duration.ms": str(lock_ms)})
    began_ms = request_lines.now_ms()
    properties = cluster.properties_file("heidi")
    command = cluster.java_command(
        *("quotaflow.Tethered", f"org.apache.kafka.tools.{_TOOL}", "--topic", group),
        *("--group", group, "--bootstrap-server", cluster.bootstrap_servers),
        *("--command-config", str(properties)),
    )
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, **pipes) as process:  # type: ignore[call-overload]
        assert process.stdout is not None
        assert process.stdout.readline(), "nothing came"
        process.send_signal(signal.SIGSTOP)
        try:
            time.sleep(lock_ms / 1_000)
            _consume(cluster, "grace", group, *_at_most(RECORDS), topic=group)
        finally:
            process.kill()
    return logged(cluster, began_ms)
