"""What a scheduled run costs on a small cluster, by part: in a JVM that has just started, and warm.

`python bench/batch.py [--json] [--rounds N]`. A real cluster of three brokers serves the clients of
the demo for a minute. Then one process runs every job once over their request log, takes a
snapshot, and checks the tables: round after round, each with new tables. The first round is cold.
CPU seconds of this process, its JVM and its Python workers, without the brokers: the same on a
machine with other load.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import yaml
from cpu import cpu_s
from rich.console import Console
from rich.table import Table

from quotaflow.demo import story, traffic
from quotaflow.demo.broker_config import REQUEST_LOG_TOPIC
from quotaflow.demo.cluster import LocalCluster
from quotaflow.demo.shipper import Shipper
from quotaflow.pipelines import config
from quotaflow.pipelines.jobs import runner
from quotaflow.pipelines.quality import check
from quotaflow.pipelines.snapshots import take
from quotaflow.pipelines.spark import session

SEED, SCALE = 7, 1.0
PARTS = ("session", "ingest", "fetches", "snapshot", "results", "check")
JAAS = "BENCH_JAAS"


@contextmanager
def logged() -> Iterator[dict[str, object]]:
    """A cluster whose request log has what the demo's clients did; the conf that reads it."""
    with tempfile.TemporaryDirectory() as name, LocalCluster(Path(name) / "cluster") as cluster:
        login = cluster.librdkafka_properties("shipper")
        with Shipper(login, REQUEST_LOG_TOPIC, cluster.request_logs) as shipper:
            traffic.run(cluster, SEED, SCALE, quiet)
            shipper.drain()
        properties = cluster.client_properties("admin")
        os.environ[JAAS] = properties.pop("sasl.jaas.config")
        properties["sasl.jaas.config"] = f"env:{JAAS}"
        yield {"kafka": {"properties": properties}, "racks": {"127.0.0.1/32": "az-a"}}


def quiet(_: str) -> None:
    """Report nothing."""


def round_costs(conf: config.Conf) -> dict[str, float]:
    """CPU seconds of each part over the whole request log, into new tables."""
    facts, results = story.in_two(conf)
    ingest = [job for job in facts if job != "fetches"]
    checked = check.CheckRequest(names=[], folder=None)
    parts: dict[str, Callable[[], object]] = {
        "session": lambda: session.get(conf.spark).range(1).count(),
        "ingest": lambda: runner.run(conf, ingest, None, quiet),
        "fetches": lambda: runner.run(conf, ["fetches"], None, quiet),
        "snapshot": lambda: take.take(conf, datetime.now(UTC), quiet),
        "results": lambda: runner.run(conf, results, None, quiet),
        "check": lambda: check.check(conf, checked, datetime.now(UTC), quiet),
    }
    took = {}
    for part, run in parts.items():
        before_s = cpu_s()
        run()
        took[part] = cpu_s() - before_s
    return took


def measure_here(file: str, rounds: int) -> None:
    """What the measured process runs: a line of JSON for each round."""
    given = yaml.safe_load(Path(file).read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as name:
        for number in range(rounds):
            warehouse = {"path": str(Path(name) / str(number))}
            conf = config.Conf.model_validate(given | {"warehouse": warehouse})
            print(json.dumps(round_costs(conf)), flush=True)


def measure(rounds: int) -> list[dict[str, float]]:
    """The costs of each round, from a process of its own, which the brokers are not part of."""
    with logged() as conf, tempfile.TemporaryDirectory() as name:
        file = Path(name) / "conf.yaml"
        file.write_text(yaml.safe_dump(conf), encoding="utf-8")
        command = [sys.executable, __file__, "--measure", str(file), "--rounds", str(rounds)]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="CPU seconds as JSON")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        measure_here(options.measure, options.rounds)
        return
    rounds = measure(options.rounds)
    if options.json:
        json.dump(rounds, sys.stdout, indent=2)
        return
    table = Table("CPU s", "cold", *(f"round {n}" for n in range(2, len(rounds) + 1)))
    for part in PARTS:
        table.add_row(part, *(f"{costs[part]:.1f}" for costs in rounds))
    table.add_row("all", *(f"{sum(costs.values()):.1f}" for costs in rounds))
    Console().print(table)


if __name__ == "__main__":
    main()
