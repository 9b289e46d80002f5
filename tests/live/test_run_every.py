"""`quotaflow run --every` as it runs for days: scraped, stopped by Ctrl-C, and going on."""

import os
import signal
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml
from confluent_kafka import Producer
from prometheus_client.parser import text_string_to_metric_families

from quotaflow.demo.broker_config import REQUEST_LOG_TOPIC
from quotaflow.demo.cluster import LocalCluster
from quotaflow.demo.shipper import Shipper
from quotaflow.pipelines import config
from quotaflow.pipelines.jobs.registry import JOBS
from quotaflow.pipelines.spark import session
from quotaflow.pipelines.streaming import checkpoints
from quotaflow.pipelines.warehouse.warehouse import Warehouse

from ..own_process import quotaflow
from .tables_read import query

pytestmark = [pytest.mark.faults, pytest.mark.timeout(7_200)]
TOPIC = "every"
# First batches of every job, side by side on a machine that others use, and a minute more until
# they are written down.
WORKS_S = 2_400
ENDS_S = 240
SCRAPES_AFTER = 3
READ = {"ingest_request_log", "ingest_receiver", "client_metrics", "fetches"} | {
    *("request_results", "fetch_results", "metric_alerts")
}
"""Jobs that have something to read here."""
Sample = tuple[str, tuple[tuple[str, str], ...]]


@contextmanager
def traffic(cluster: LocalCluster) -> Iterator[Shipper]:
    """A client that writes and pushes metrics, and the broker's log of it, shipped."""
    cluster.create_topics([TOPIC], partitions=1)
    cluster.subscribe_telemetry("every")
    ended = threading.Event()

    def write() -> None:
        producer = Producer(cluster.librdkafka_properties("alice") | {"client.id": "every-alice"})
        while not ended.wait(0.1):
            producer.produce(TOPIC, b"x" * 100)
            producer.poll(0)
        producer.flush(30)

    writer = threading.Thread(target=write)
    login = cluster.librdkafka_properties("shipper")
    with Shipper(login, REQUEST_LOG_TOPIC, cluster.request_logs) as shipper:
        writer.start()
        try:
            yield shipper
        finally:
            ended.set()
            writer.join()


def conf_file(cluster: LocalCluster, folder: Path) -> Path:
    """Conf that names no cluster; the login is in an environment variable."""
    properties = cluster.client_properties("admin")
    settings = {
        "kafka": {"properties": properties | {"sasl.jaas.config": "env:RUN_EVERY_JAAS"}},
        "warehouse": {"path": str(folder / "warehouse")},
        "spark": {"conf": session.SHORT_LIVED},
    }
    file = folder / "conf.yaml"
    file.write_text(yaml.safe_dump(settings))
    return file


@contextmanager
def running(conf: Path, port: int, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The command in a terminal's foreground group of its own; nothing of it outlives the block."""
    every = ("--every", "10s", "--metrics-port", str(port))
    command = quotaflow("run", "--conf", str(conf), *every)
    with (
        log.open("ab") as output,
        subprocess.Popen(command, stdout=output, stderr=output, start_new_session=True) as process,
    ):
        try:
            yield process
        finally:
            # Of a command that ended by itself `interrupt` saw nothing left.
            if process.poll() is None:
                for each in psutil.Process(process.pid).children(recursive=True):
                    each.kill()
                process.kill()


@dataclass
class Scrapes:
    """What Prometheus would have seen of a port, each counter compared with its value before."""

    port: int
    day: date | None = None
    counters: dict[Sample, float] = field(default_factory=dict)
    gauges: dict[Sample, float] = field(default_factory=dict)

    def scrape(self) -> None:
        """Once; counters begin anew with a day of UTC."""
        before = datetime.now(UTC).date()
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=60) as answer:
            assert answer.headers["Content-Type"].startswith("text/plain")
            text = answer.read().decode()
        samples: dict[str, dict[Sample, float]] = {"counter": {}, "gauge": {}}
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                key = sample.name, tuple(sorted(sample.labels.items()))
                assert key not in samples[family.type]
                samples[family.type][key] = sample.value
        if self.day == before:
            fell = {key for key, n in self.counters.items() if samples["counter"].get(key, 0) < n}
            assert not fell
        self.day, self.counters, self.gauges = before, samples["counter"], samples["gauge"]

    def jobs(self, since: float) -> set[str]:
        """Jobs that reported a batch since then, whose tables must exist."""
        name = "quotaflow_job_last_batch_timestamp_seconds"
        last = {
            dict(labels)["quotaflow_job"]: n
            for (metric, labels), n in self.gauges.items()
            if metric == name
        }
        assert not last or self.gauges["quotaflow_up", ()] == 1
        return {job for job, at in last.items() if at >= since}


def await_batches(process: subprocess.Popen[bytes], seen: Scrapes, log: Path) -> None:
    """Scrape until every job reported a batch, and some times more."""
    began, more = time.time(), SCRAPES_AFTER
    while more:
        assert process.poll() is None, log.read_text(encoding="utf-8")
        assert time.time() < began + WORKS_S, (
            f"only {seen.jobs(began)}: {log.read_text(encoding='utf-8')}"
        )
        time.sleep(16)
        try:
            seen.scrape()
        except urllib.error.URLError:
            continue
        more -= seen.jobs(began) >= READ


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def interrupt(process: subprocess.Popen[bytes], log: Path) -> float:
    """Ctrl-C, as a terminal sends it to all of the group; how many seconds the end took."""
    family = psutil.Process(process.pid).children(recursive=True)
    assert family
    began = time.monotonic()
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(ENDS_S) == 130, log.read_text(encoding="utf-8")
    took_s = time.monotonic() - began
    _, alive = psutil.wait_procs(family, timeout=ENDS_S)
    assert not alive
    return took_s


def batches(folder: Path, table: str) -> dict[str, set[int]]:
    """Numbers of the batches in a table of progress, by query; some read nothing."""
    by_job: dict[str, set[int]] = {}
    for row in query(folder, f"SELECT DISTINCT query_id, batch_id FROM {table}"):
        by_job.setdefault(row["query_id"], set()).add(row["batch_id"])
    return by_job


def unreported(folder: Path) -> dict[str, set[int]]:
    """Batches that counted rows and are done by their checkpoints, not by query_progress."""
    counted, reported = batches(folder, "pipeline_progress"), batches(folder, "query_progress")
    place = Warehouse(config.WarehouseSection(path=str(folder)))
    paths = {job: place.checkpoint(job) for job in JOBS}
    done = {
        job: (checkpoints.query_id(path), newest.batch_id)
        for job, path in paths.items()
        if (newest := checkpoints.committed(path)) is not None
    }
    return {
        job: {n for n in counted[query] if n <= newest} - reported.get(query, set())
        for job, (query, newest) in done.items()
        if query in counted
    }


def outcomes_of_ingest(folder: Path) -> dict[str, Any]:
    sql = "SELECT outcome, sum(row_count) AS n FROM pipeline_progress WHERE "
    sql += "job = 'ingest_request_log' AND (target IS NULL OR target = 'requests') GROUP BY outcome"
    return {row["outcome"]: row["n"] for row in query(folder, sql)}


@pytest.mark.shows("shows its own health: tables, `quotaflow status`, Prometheus, OTLP")
def test_it_is_scraped_stopped_and_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, log = tmp_path / "warehouse", tmp_path / "said"
    with LocalCluster(tmp_path / "cluster", nodes=1) as cluster:
        jaas = cluster.client_properties("admin")["sasl.jaas.config"]
        monkeypatch.setenv("RUN_EVERY_JAAS", jaas)
        conf = conf_file(cluster, tmp_path)
        with traffic(cluster) as shipper:
            for _ in range(2):
                seen = Scrapes(free_port())
                with running(conf, seen.port, log) as process:
                    await_batches(process, seen, log)
                    print(f"ended after {interrupt(process, log):.0f} s")  # noqa: T201
                assert not any(unreported(folder).values()), unreported(folder)
                assert "Traceback" not in log.read_text()
                assert Warehouse(config.WarehouseSection(path=str(folder))).holder() is None
            shipper.drain()
        acked = shipper.counts.acked
        once = quotaflow("run", "--once", "--conf", str(conf))
        subprocess.run(once, check=True, timeout=600)
        on_cluster = {"cluster_id": cluster.cluster_id}
    outcomes = outcomes_of_ingest(folder)
    assert outcomes["in"] == acked == sum(n for name, n in outcomes.items() if name != "in")
    assert query(folder, "SELECT count(*) AS n FROM requests") == [{"n": outcomes["out"]}]
    for table in ("query_progress", "pipeline_progress"):
        assert query(folder, f"SELECT DISTINCT cluster_id FROM {table}") == [on_cluster]
