"""`quotaflow snapshot` of a real cluster with many topics: the first one, and one without changes.

`python bench/snapshots.py [--topics N] [--replicas N]`. Three brokers and the command
run on this machine; wall and CPU time of the whole command, starting Python included.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from rich.console import Console
from rich.table import Table

from quotaflow.demo.cluster import LocalCluster

PARTITIONS, TOPICS_AT_ONCE = 3, 50
GOAL_S = 60
JAAS = "BENCH_JAAS"
RUNS = ("the first", "one without changes", "client_quotas alone")


def make_topics(cluster: LocalCluster, topics: int, replicas: int) -> None:
    """Topics of three partitions, some at a time: brokers accept few in one request."""
    names = [f"many-{n:05}" for n in range(topics)]
    for first in range(0, topics, TOPICS_AT_ONCE):
        cluster.create_topics(names[first : first + TOPICS_AT_ONCE], PARTITIONS, replicas)


def cost(properties: Mapping[str, str], warehouse: Path, *names: str) -> dict[str, float]:
    """Wall and CPU seconds of one command."""
    shown = {key: value for key, value in properties.items() if key != "sasl.jaas.config"}
    shown["sasl.jaas.config"] = f"env:{JAAS}"
    pairs = [f"kafka.properties.{key}={value}" for key, value in shown.items()]
    options = [word for pair in (*pairs, f"warehouse.path={warehouse}") for word in ("--set", pair)]
    command = [sys.executable, "-m", "quotaflow.pipelines", "snapshot", *names, *options]
    environment = os.environ | {JAAS: properties["sasl.jaas.config"]}
    start, cpu_s = time.perf_counter(), ended_cpu_s()
    subprocess.run(command, check=True, env=environment, stderr=subprocess.DEVNULL)
    return {"wall_s": time.perf_counter() - start, "cpu_s": ended_cpu_s() - cpu_s}


def ended_cpu_s() -> float:
    """CPU seconds of commands that ended: the brokers go on."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ended.ru_utime + ended.ru_stime


def measure(topics: int, replicas: int) -> dict[str, dict[str, float]]:
    """Wall and CPU seconds of each run."""
    with tempfile.TemporaryDirectory() as name, LocalCluster(Path(name) / "cluster") as cluster:
        make_topics(cluster, topics, replicas)
        properties, warehouse = cluster.client_properties("admin"), Path(name) / "warehouse"
        chosen: tuple[tuple[str, ...], ...] = ((), (), ("client_quotas",))
        return {
            run: cost(properties, warehouse, *names)
            for run, names in zip(RUNS, chosen, strict=True)
        }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--topics", type=int, default=1_000)
    parser.add_argument("--replicas", type=int, default=1, help="of each partition")
    given = parser.parse_args()
    runs = measure(given.topics, given.replicas)
    title = f"snapshot, {given.topics:,} topics x {PARTITIONS} partitions x {given.replicas}"
    table = Table("", "seconds", "goal", "CPU seconds", title=title)
    for run, took in runs.items():
        table.add_row(run, f"{took['wall_s']:.1f}", f"under {GOAL_S}", f"{took['cpu_s']:.1f}")
    Console().print(table)
    print(f"load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
