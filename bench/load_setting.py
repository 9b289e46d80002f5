"""The setting of a load: a one-broker cluster, a sender of lines, the command and its memory."""

import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any

import load_lines
import made_context
import psutil
import yaml
from confluent_kafka import Producer

from quotaflow.demo.broker_config import REQUEST_LOG_TOPIC
from quotaflow.demo.cluster import LocalCluster
from quotaflow.pipelines import config
from quotaflow.pipelines.errors import KafkaError
from quotaflow.pipelines.warehouse.folder_reader import FolderReader
from quotaflow.pipelines.warehouse.warehouse import Warehouse

JOBS = ("ingest_request_log", "client_metrics", "fetches", "request_results", "fetch_results")
_Report = Callable[[object, object], None]
_AT_ONCE = 1_000
_CHEAPLY = {
    "linger.ms": 50,
    "compression.type": "lz4",
    "enable.metrics.push": False,
    "delivery.report.only.error": True,
}
_JAAS = "QUOTAFLOW_BENCH_JAAS"
_BEFORE = timedelta(days=1)


@contextmanager
def setting(clients: int) -> Iterator[tuple[LocalCluster, Path]]:
    """A cluster of one broker and the conf file of a warehouse that knows the made-up cluster."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with LocalCluster(folder / "cluster", nodes=1) as cluster:
            properties = cluster.client_properties("admin")
            os.environ[_JAAS] = properties.pop("sasl.jaas.config")
            conf = {
                "kafka": {"properties": properties | {"sasl.jaas.config": f"env:{_JAAS}"}},
                "warehouse": {"path": str(folder / "warehouse")},
                "ingest": {"receiver_topic": None},
            }
            file = folder / "conf.yaml"
            file.write_text(yaml.safe_dump(conf), encoding="utf-8")
            topics = load_lines.topics(clients)
            partitions = dict.fromkeys(topics, range(load_lines.PARTITIONS))
            made_context.write(
                Warehouse(config.load(file).warehouse),
                *(cluster.cluster_id, datetime.now(UTC) - _BEFORE, topics, partitions),
            )
            yield cluster, file


def send(cluster: LocalCluster, lines: Iterator[bytes], per_s: int | None = None) -> int:
    """Send lines to the topic, at full speed or at a pace. Returns how many the broker has."""
    failed: list[str] = []
    login = cluster.librdkafka_properties("admin")
    # It shares the cores with what it loads, so there is no callback per line.
    producer = Producer(login | _CHEAPLY)
    began, sent = time.monotonic(), 0
    while some := list(islice(lines, _AT_ONCE)):
        _queue(producer, some, lambda error, _: failed.append(str(error)))
        sent += len(some)
        if per_s:
            time.sleep(max(0.0, began + sent / per_s - time.monotonic()))
    if producer.flush(60) or failed:
        raise KafkaError(f"the broker did not take every line: {failed[:1]}")
    return sent


def _queue(producer: Producer, lines: list[bytes], failed: _Report) -> None:
    """Produce lines, and retry those that find the queue full."""
    messages: list[dict[str, Any]] = [{"value": line} for line in lines]
    while messages:
        producer.produce_batch(REQUEST_LOG_TOPIC, messages, on_delivery=failed)
        refused = [message["_error"] for message in messages if "_error" in message]
        if any(error.code() != error._QUEUE_FULL for error in refused):
            raise KafkaError(f"a line was not taken: {refused[0]}")
        messages = [{"value": message["value"]} for message in messages if "_error" in message]
        producer.poll(0.1 if messages else 0)


def command(conf: Path, *arguments: str) -> list[str]:
    """The command line of `quotaflow run` over every job of the request log."""
    run = [sys.executable, "-m", "quotaflow.pipelines", "run", *JOBS]
    return [*run, "--conf", str(conf), *arguments]


def ask(conf: Path, query: str) -> list[dict[str, Any]]:
    """Rows of a query over the tables of a conf."""
    return FolderReader(Warehouse(config.load(conf).warehouse)).rows(query)


@contextmanager
def watched(pid: int) -> Iterator[list[float]]:
    """After the block: peak memory in bytes of a process and its descendants, and CPU seconds."""
    seen, ended = [0.0, 0.0], threading.Event()

    def poll() -> None:
        while not ended.wait(1):
            try:
                root = psutil.Process(pid)
                family = [root, *root.children(recursive=True)]
                seen[0] = max(seen[0], sum(_resident(process) for process in family))
                seen[1] = max(seen[1], sum(_cpu_s(process) for process in family))
            except psutil.NoSuchProcess:
                continue

    watcher = threading.Thread(target=poll, daemon=True)
    watcher.start()
    try:
        yield seen
    finally:
        ended.set()
        watcher.join()


def _cpu_s(process: psutil.Process) -> float:
    """CPU seconds of a process and of its children that ended."""
    try:
        used = process.cpu_times()
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return 0.0
    return used.user + used.system + used.children_user + used.children_system


def _resident(process: psutil.Process) -> int:
    try:
        return int(process.memory_full_info().pss)
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return 0
