"""Secrets that conf names by reference are in nothing a run leaves, says or shows to `ps`."""

import json
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread

import psutil
import pytest
import yaml
from confluent_kafka import Producer

from quotaflow.demo.broker_config import REQUEST_LOG_TOPIC, TELEMETRY_TOPIC
from quotaflow.demo.cluster import LocalCluster
from quotaflow.pipelines.spark import session

from ..cases import cases
from ..command_line import in_options
from ..own_process import quotaflow
from ..planted import files_with
from .guarded import guarded
from .java_left import await_none

pytestmark = [pytest.mark.faults, pytest.mark.timeout(1_800)]

_PAUSE_S, _ENDS_S = 0.05, 300
_DONE, _FAILED, _WRONG_USE, _CHANGES_WAIT = 0, 1, 2, 3
# Nothing listens there.
_NOBODY = "127.0.0.1:1"


@dataclass
class Bench:
    """A conf whose secrets stand in the environment alone, and a folder for all that is left."""

    folder: Path
    conf: Path
    planted: dict[str, str]
    seen: list[str] = field(default_factory=list)

    def run(self, *words: str, **changed: str) -> int:
        """A command in a process of its own; what it says is kept in files, to be searched."""
        command = quotaflow(*words, "--conf", str(self.conf))
        places = {"TMPDIR": self.folder / "tmp", "QUOTAFLOW_HOME": self.folder / "home"}
        env = os.environ | self.planted | {k: str(v) for k, v in places.items()} | changed
        name = f"{len(list(self.folder.glob('*.said'))):02}-{words[0]}"
        with (self.folder / f"{name}.said").open("wb") as log:
            done = subprocess.run(
                command, env=env, stdout=log, stderr=subprocess.STDOUT, check=False, timeout=600
            )
        return done.returncode

    def last_output(self) -> str:
        return max(self.folder.glob("*.said")).read_text(errors="replace")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with guarded(tmp_path_factory.mktemp("guarded") / "cluster") as cluster:
        yield cluster


@pytest.fixture(scope="module")
def bench(
    cluster: LocalCluster, golden: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Bench]:
    folder = tmp_path_factory.mktemp("left")
    for name in ("tmp", "events"):
        (folder / name).mkdir()
    login = cluster.librdkafka_properties("admin")
    _fill(login, golden)
    planted = {
        "PLANTED_PASSWORD": login.pop("sasl.password"),
        "PLANTED_KEY": secrets.token_urlsafe(32),
        "PLANTED_URL": f"http://{_NOBODY}/{secrets.token_urlsafe(24)}",
    }
    bench = Bench(folder, _conf(folder, login), planted)
    with _watched(bench):
        yield bench


def _conf(folder: Path, login: dict[str, str]) -> Path:
    of_spark = session.SHORT_LIVED | {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": f"file:{folder / 'events'}",
        "spark.eventLog.compress": "false",
        "spark.ui.enabled": "true",
    }
    sections = {
        "kafka": {"properties": login | {"sasl.password": "env:PLANTED_PASSWORD"}},
        "warehouse": {"path": str(folder / "warehouse")},
        "privacy": {"key": "env:PLANTED_KEY"},
        "alerts": {"receivers": [{"name": "hook", "url": "env:PLANTED_URL"}]},
        "spark": {"conf": of_spark},
    }
    file = folder / "conf.yaml"
    file.write_text(yaml.safe_dump(sections), encoding="utf-8")
    return file


def _fill(login: dict[str, str], golden: Path) -> None:
    """Lines of a real cluster, a line nobody can read, and a payload that is none."""
    producer = Producer(login | {"enable.metrics.push": False})
    headers = [("broker_id", b"1")]
    for file in sorted((golden / "lines").glob("*.jsonl")):
        for line in file.read_bytes().splitlines():
            producer.produce(REQUEST_LOG_TOPIC, line, headers=headers)
    producer.produce(REQUEST_LOG_TOPIC, b"torn", headers=headers)
    producer.produce(TELEMETRY_TOPIC, b"\xff", headers=headers)
    assert producer.flush(60) == 0


@contextmanager
def _watched(bench: Bench) -> Iterator[None]:
    """Look at the command line of every process there is, as long as anything runs."""
    is_over = Event()

    def watch() -> None:
        while not is_over.is_set():
            # Processes end while they are inspected, and those are skipped.
            for process in psutil.process_iter(["cmdline"]):
                shown = " ".join(process.info["cmdline"] or ())
                bench.seen += [name for name, text in bench.planted.items() if text in shown]
            time.sleep(_PAUSE_S)

    watcher = Thread(target=watch, name="process list")
    watcher.start()
    try:
        yield
    finally:
        is_over.set()
        watcher.join()


def assert_nothing_left(bench: Bench, *others: str) -> None:
    # Spark's JVM outlives its command by a moment, in which it renames files of its event log.
    assert await_none(bench.folder, _ENDS_S) == []
    assert files_with(bench.folder, [*bench.planted.values(), *others]) == []
    assert bench.seen == []


def test_the_search_would_find_them(bench: Bench) -> None:
    command = [sys.executable, "-c", "import time; time.sleep(2)", bench.planted["PLANTED_KEY"]]
    subprocess.run(command, check=True)
    assert set(bench.seen) == {"PLANTED_KEY"}
    bench.seen.clear()


@pytest.mark.shows("keeps credentials out of every table, file and output")
def test_a_whole_run_leaves_no_secret_in_any_file_output_or_process_list(bench: Bench) -> None:
    assert bench.run("run", "--once") == _DONE, bench.last_output()
    assert bench.run("snapshot") == _DONE, bench.last_output()
    assert bench.run("plan", "--save") in {_DONE, _CHANGES_WAIT}, bench.last_output()
    assert bench.run("report", "--out", str(bench.folder / "report.html")) == _DONE, (
        bench.last_output()
    )
    query, checked = ("sql", "SELECT * FROM quarantine"), ("check", "--table", "requests")
    for words in (("doctor",), ("status",), ("tables",), checked, ("notify",), query):
        bench.run(*words)
    events = [file for file in (bench.folder / "events").rglob("events*") if file.is_file()]
    logged = [json.loads(line) for file in events for line in file.read_text().splitlines()]
    kinds = {each["Event"].rpartition(".")[2] for each in logged}
    assert {"SparkListenerEnvironmentUpdate", "SparkListenerSQLExecutionStart"} <= kinds
    assert_nothing_left(bench)


@cases(
    ("words", "changed", "code", "message"),
    ("refused", (), {"PLANTED_PASSWORD": "wrong-7f3e9-4c1d"}, _FAILED, "login"),
    ("key", (), {"PLANTED_KEY": "short-7f3e9"}, _WRONG_USE, "at least 32"),
    ("away", ("kafka.properties.bootstrap.servers=" + _NOBODY,), {}, _FAILED, "no broker"),
    ("in Spark", ("kafka.properties.metadata.max.age.ms=odd",), {}, _FAILED, "failed"),
    ("literal", ("kafka.properties.sasl.password=literal-7f3e9",), {}, _WRONG_USE, "plain"),
)
def test_a_run_that_fails_says_no_secret(
    bench: Bench, words: tuple[str, ...], changed: dict[str, str], code: int, message: str
) -> None:
    options = in_options(*words)
    is_literal = any("literal" in pair for pair in words)
    assert bench.run("run", "ingest_request_log", "--once", *options, **changed) == code
    assert message in bench.last_output()
    assert_nothing_left(bench, *changed.values(), *(["literal-7f3e9"] if is_literal else []))
