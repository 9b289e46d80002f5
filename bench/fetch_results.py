"""FETCH lines per second from requests to results: sessions, preferred replicas, fetch sizes.

`python bench/fetch_results.py [--json] [--lines N]`. Lines of a hundred sessions of 20 and of 200
partitions are in a Delta table, as ingest writes them. One micro-batch of each job of the demo over
them is timed, tables included: `fetches` with its sessions rebuilt (KIP-227), then
`preferred_replicas` (KIP-392) and `fetch_sizes` (KIP-74). Lines per second of wall time on two
cores, the best of the runs of each case, and the CPU time that a line takes in `fetches`, of this
process and its descendants (goal 15 us). For comparison the time Spark needs to sum the bytes of
partitions of the same lines by minute and client without a sink: no session, no lookup.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

import made_context
import numpy as np
import pyarrow as pa
from cpu import cpu_s
from fetch_lines import IDS, SESSIONS, START_US, batches
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from rich.console import Console
from rich.table import Table

from quotaflow.pipelines import config
from quotaflow.pipelines.facts import fetches
from quotaflow.pipelines.incremental.maintainer import ResultMaintainer
from quotaflow.pipelines.results.declared import result_of
from quotaflow.pipelines.spark import session
from quotaflow.pipelines.streaming.sinks import Batch
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.schemas.tables.control import PIPELINE_PROGRESS
from quotaflow.schemas.tables.fetches import FETCH_SESSIONS, FETCHES
from quotaflow.schemas.tables.requests import REQUESTS

DURATION_S = 600
GOAL_PER_S = 100_000
TIMES_AS_MANY, TIMES_AS_LONG = 10, 11
FILLED = (
    FETCHES,
    FETCH_SESSIONS,
    TABLES["preferred_replicas"],
    TABLES["fetch_sizes"],
    PIPELINE_PROGRESS,
)
SEEN = datetime.fromtimestamp(START_US / 1e6, UTC)


@dataclass(frozen=True, slots=True)
class Case:
    """What a case takes: seconds of each job and of the sum, and the size of what they write."""

    lines: int
    fetches_s: float
    fetches_cpu_s: float
    results_s: float
    sum_s: float
    sessions: int
    session_bytes: int
    result_rows: int

    @property
    def lines_per_s(self) -> float:
        """Through sessions and both results."""
        return self.lines / (self.fetches_s + self.results_s)

    @property
    def fetches_cpu_us(self) -> float:
        """CPU time of a line in `fetches`."""
        return self.fetches_cpu_s / self.lines * 1e6


def fill(warehouse: Warehouse, lines: int, partitions: int) -> int:
    """Write requests and a snapshot of their cluster. Returns the number of lines."""
    given = pa.Table.from_batches(batches(lines, partitions))
    count = given.num_rows
    spread = DURATION_S * 1_000_000 * given["session_epoch"].to_numpy() // max(count // SESSIONS, 1)
    order = pa.array(np.arange(count))
    made = {
        "event_time": pa.array(START_US + spread),
        "record_time": pa.array(START_US + spread),
        "api": pa.array(["FETCH"] * count),
        "api_version": pa.array([17] * count),
        "rack_id": pa.array([made_context.RACKS[n % 3] for n in given["session"].to_pylist()]),
        "client_address": pa.array(["10.0.0.1"] * count),
        "source_topic": pa.array(["log"] * count),
        "source_partition": pa.array([0] * count),
        "source_offset": order,
        "min_bytes": pa.array([1] * count),
        "max_wait_ms": pa.array([500] * count),
    }
    columns = {name: given[name] for name in given.column_names} | made
    made_context.fill(warehouse, REQUESTS.name, _requests(columns, count))
    topics = {id_: f"t{n}" for n, id_ in enumerate(IDS)}
    numbers = {id_: range(n, partitions, len(IDS)) for n, id_ in enumerate(IDS)}
    made_context.write(warehouse, "c", SEEN, topics, numbers)
    return count


def _requests(columns: dict[str, pa.Array], count: int) -> pa.Table:
    shape = REQUESTS.arrow
    arrays = [
        columns[f.name].cast(f.type) if f.name in columns else pa.nulls(count, f.type)
        for f in shape
    ]
    return pa.Table.from_arrays(arrays, schema=shape)


def run(spark: SparkSession, folder: Path, lines: int, partitions: int) -> Case:
    """One micro-batch of both jobs over a new warehouse."""
    conf = config.Conf(warehouse=config.WarehouseSection(path=str(folder)))
    warehouse = Warehouse(conf.warehouse)
    count = fill(warehouse, lines, partitions)
    warehouse.ensure(lambda: spark, list(FILLED))
    requests = warehouse.read(spark, REQUESTS.name)
    sum_s = _seconds(lambda: _sum(requests))
    follow, arrived = fetches.Fetches(conf.fetch_sessions), fetches.arrivals(requests, warehouse)
    before_s = cpu_s()
    fetches_s = _seconds(lambda: follow.write(arrived, Batch(warehouse, "f", "f", 0)))
    fetches_cpu_s = cpu_s() - before_s
    results = (result_of("preferred_replicas"), result_of("fetch_sizes", conf))
    fetched = warehouse.read(spark, FETCHES.name)
    maintainer = ResultMaintainer(results, conf)
    arrived = maintainer.arrivals(fetched)
    results_s = _seconds(lambda: maintainer.write(arrived, Batch(warehouse, "r", "r", 0)))
    rows = [warehouse.read(spark, r.table.name).count() for r in results]
    state = warehouse.folder(FETCH_SESSIONS.name).glob("*.parquet")
    sessions = warehouse.read(spark, FETCH_SESSIONS.name).count()
    if fetched.count() != count or sessions != SESSIONS or not all(rows):
        raise ValueError(f"{fetched.count()} fetches, {sessions} sessions, rows {rows}")
    size = sum(file.stat().st_size for file in state)
    return Case(count, fetches_s, fetches_cpu_s, results_s, sum_s, sessions, size, sum(rows))


def _sum(requests: DataFrame) -> None:
    each = requests.select(
        F.date_trunc("minute", "event_time").alias("minute"),
        *("broker_id", "principal", "client_id"),
        F.inline("partitions"),
    )
    key = ("minute", "broker_id", "principal", "client_id", "topic_id", "partition")
    each.groupBy(*key).agg(F.sum("bytes")).write.format("noop").mode("overwrite").save()


def _seconds(work: Callable[[], None]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def measure(lines: int, turns: int) -> dict[str, Case]:
    """Each case's best run after a warm-up."""
    cases = {
        "20 partitions": (lines, 20),
        "20 partitions, a tenth of the lines": (lines // TIMES_AS_MANY, 20),
        "200 partitions": (lines, 200),
    }
    spark = session.get(config.SparkSection(master="local[2]", driver_memory="4g"))
    try:
        measured: dict[str, list[Case]] = {case: [] for case in cases}
        for _ in range(turns + 1):
            for case, sizes in cases.items():
                with tempfile.TemporaryDirectory() as folder:
                    measured[case].append(run(spark, Path(folder), *sizes))
        return {
            case: max(runs[1:], key=lambda one: one.lines_per_s) for case, runs in measured.items()
        }
    finally:
        spark.stop()


def show(cases: dict[str, Case]) -> Table:
    """Thousands of lines per second, the state, and what ten times the lines cost."""
    many, tenth, _ = cases.values()
    table = Table(
        "fetches, requests to results",
        "k lines/s",
        "fetches s",
        "fetches CPU us",
        "results s",
        "of the sum's rate",
        "sessions kept",
        "kB in Delta",
        "rows of results",
    )
    for name, case in cases.items():
        table.add_row(
            name,
            f"{case.lines_per_s / 1e3:.1f}",
            f"{case.fetches_s:.1f}",
            f"{case.fetches_cpu_us:.1f}",
            f"{case.results_s:.1f}",
            f"{case.sum_s / (case.fetches_s + case.results_s):.2f}x",
            str(case.sessions),
            f"{case.session_bytes / 1e3:,.0f}",
            f"{case.result_rows:,}",
        )
    longer = TIMES_AS_MANY * tenth.lines_per_s / many.lines_per_s
    table.caption = (
        f"{TIMES_AS_MANY} times the lines take {longer:.1f} times as long "
        f"(at most {TIMES_AS_LONG}); the goal is {GOAL_PER_S / 1e3:.0f} k lines/s"
    )
    return table


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="figures as JSON")
    parser.add_argument("--lines", type=int, default=1_000_000, help="lines per case")
    parser.add_argument("--turns", type=int, default=2, help="turns of each case")
    options = parser.parse_args()
    cases = measure(options.lines, options.turns)
    if options.json:
        json.dump({name: asdict(case) for name, case in cases.items()}, sys.stdout, indent=2)
    else:
        Console(width=120).print(show(cases))


if __name__ == "__main__":
    main()
