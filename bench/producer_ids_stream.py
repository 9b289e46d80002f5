"""Results on producer ids, micro-batch after micro-batch: does anything grow?

`python bench/producer_ids_stream.py [--json] [--batches N] [--every S]`. Each batch brings ten
seconds of events from a thousand principals into a real Delta table, and the maintainer of
`request_results` recomputes the affected buckets. Compares the first and the last tenth of the
batches after the first twentieth: wall time, bytes the JVM read, Delta's slowest
commit, memory and open sockets of the JVM and its Python workers, and of the JVM's memory what a
collection leaves on the heap and what classes and their code take. A soak is a long run at
a pace: `--batches 180 --every 10` takes half an hour. Ctrl-C ends it early with its results.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from rich.console import Console
from rich.table import Table

from quotaflow.pipelines import config
from quotaflow.pipelines.incremental.maintainer import ResultMaintainer
from quotaflow.pipelines.results.producer_ids import producer_id_rates, producer_id_uses
from quotaflow.pipelines.spark import session
from quotaflow.pipelines.streaming.sinks import Batch
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.tables.control import PIPELINE_PROGRESS
from quotaflow.schemas.tables.producer_ids import PRODUCER_ID_RATES, PRODUCER_ID_USES
from quotaflow.schemas.tables.requests import REQUESTS

START_S = 1_795_262_400
BATCH_S = 10
PRINCIPALS = 1_000
FILLED = (PRODUCER_ID_USES, PRODUCER_ID_RATES)


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of one micro-batch, and the memory and sockets at its end."""

    seconds: float
    read_bytes: int
    commit_s: float
    memory_bytes: int
    heap_bytes: int
    non_heap_bytes: int
    sockets: int


def events(batch: int, count: int) -> pa.Table:
    """Answers of INIT_PRODUCER_ID over ten seconds; every second id was given before."""
    dice = np.random.default_rng(batch)
    principal = dice.integers(0, PRINCIPALS, count)
    begin_us = (START_S + batch * BATCH_S) * 1_000_000
    time_us = pa.array(begin_us + np.sort(dice.integers(0, BATCH_S * 1_000_000, count)))
    types = {name: REQUESTS.arrow.field(name).type for name in REQUESTS.column_names}
    columns = {
        "cluster_id": pa.array(["c"] * count),
        "event_time": time_us.view(types["event_time"]),
        "record_time": time_us.view(types["record_time"]),
        "broker_id": pa.array(principal % 3, types["broker_id"]),
        "api": pa.array(["INIT_PRODUCER_ID"] * count),
        "principal": pa.array([f"User:{n}" for n in principal]),
        "client_id": pa.array([f"client-{n}" for n in principal]),
        "client_address": pa.array([f"10.0.0.{n % 250}" for n in principal]),
        "producer_id": pa.array(dice.integers(0, max(count * (batch + 1) // 2, 1), count)),
        "error_code": pa.array(np.zeros(count), types["error_code"]),
    }
    missing = {name: pa.nulls(count, types[name]) for name in types.keys() - columns.keys()}
    return pa.table({name: (columns | missing)[name] for name in types})


def follow(
    spark: SparkSession, folder: Path, batches: int, count: int, every_s: int
) -> Iterator[Cost]:
    """Run batches, one after another or one every `every_s` seconds."""
    conf = config.Conf(warehouse=config.WarehouseSection(path=str(folder)))
    warehouse = Warehouse(conf.warehouse)
    warehouse.ensure(lambda: spark, [REQUESTS, PIPELINE_PROGRESS, *FILLED])
    results = (producer_id_uses.result(), producer_id_rates.result(conf.producer_ids))
    maintainer = ResultMaintainer(results, conf)
    began = time.monotonic()
    for number in range(batches):
        facts = spark.createDataFrame(events(number, count))
        warehouse.write(facts.write.format("delta").mode("append"), REQUESTS.name)
        batch = Batch(warehouse, "bench", "bench", number)
        yield _cost(spark, maintainer, facts, batch)
        time.sleep(max(0.0, began + (number + 1) * every_s - time.monotonic()))


def _cost(
    spark: SparkSession, maintainer: ResultMaintainer, facts: DataFrame, batch: Batch
) -> Cost:
    jvm = _jvm()
    read_before, start = jvm.io_counters().read_chars, time.perf_counter()
    maintainer.write(maintainer.arrivals(facts), batch)
    seconds = time.perf_counter() - start
    family = [jvm, *jvm.children(recursive=True)]
    heap, non_heap = _in_use(spark)
    return Cost(
        seconds=seconds,
        read_bytes=jvm.io_counters().read_chars - read_before,
        commit_s=max(_commit_s(batch.warehouse, table.name) for table in FILLED),
        memory_bytes=sum(map(_memory_bytes, family)),
        heap_bytes=heap,
        non_heap_bytes=non_heap,
        sockets=sum(len(process.net_connections("all")) for process in family),
    )


def _in_use(spark: SparkSession) -> tuple[int, int]:
    """Heap after a collection, and classes with their code: memory in use, without garbage.

    Two collections: what the first finalizes the second frees.
    """
    jvm = spark._jvm
    assert jvm is not None
    memory = jvm.java.lang.management.ManagementFactory.getMemoryMXBean()
    memory.gc()
    memory.gc()
    return memory.getHeapMemoryUsage().getUsed(), memory.getNonHeapMemoryUsage().getUsed()


def _memory_bytes(process: psutil.Process) -> int:
    """Resident or swapped out: a machine short of memory takes pages from idle processes."""
    memory = process.memory_full_info()
    return int(memory.rss + memory.swap)


def _jvm() -> psutil.Process:
    return next(p for p in psutil.Process().children(recursive=True) if p.name() == "java")


def _commit_s(warehouse: Warehouse, table: str) -> float:
    """From the end of the newest data file to the commit that names it."""
    log = warehouse.folder(table) / "_delta_log"
    newest = max(log.glob("*.json"))
    added = [
        json.loads(line)["add"]["modificationTime"]
        for line in newest.read_text(encoding="utf-8").splitlines()
        if line.startswith('{"add"')
    ]
    return newest.stat().st_mtime - max(added, default=newest.stat().st_mtime * 1_000) / 1_000


def compared(costs: list[Cost]) -> dict[str, dict[str, float]]:
    """Medians of each figure over the first and the last tenth, without the warm-up."""
    warm = costs[len(costs) // 20 :]
    tenth = max(len(warm) // 10, 1)
    return {
        name: {
            "first": statistics.median(getattr(cost, name) for cost in warm[:tenth]),
            "last": statistics.median(getattr(cost, name) for cost in warm[-tenth:]),
        }
        for name in Cost.__dataclass_fields__
    }


def show(figures: dict[str, dict[str, float]], batches: int) -> Table:
    """Both tenths side by side."""
    table = Table(f"per batch, {batches} batches", "first tenth", "last tenth", "ratio")
    for name, pair in figures.items():
        ratio = pair["last"] / pair["first"] if pair["first"] else float("nan")
        unit = 1e6 if name.endswith("_bytes") else 1
        shown = name.replace("_bytes", " MB")
        table.add_row(
            shown, f"{pair['first'] / unit:.2f}", f"{pair['last'] / unit:.2f}", f"{ratio:.2f}"
        )
    return table


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="every batch as JSON")
    parser.add_argument("--batches", type=int, default=40, help="how many micro-batches")
    parser.add_argument("--events", type=int, default=5_000, help="events in each")
    parser.add_argument("--every", type=int, default=0, help="seconds from one to the next")
    options = parser.parse_args()
    # One compiler only: it settles after some batches, and growth shows.
    quick = config.SparkSection(master="local[2]", driver_memory="2g", conf=session.ONE_COMPILER)
    spark, costs = session.get(quick), list[Cost]()
    try:
        with tempfile.TemporaryDirectory() as name:
            began = datetime.now(UTC)
            sizes = options.batches, options.events, options.every
            with suppress(KeyboardInterrupt):
                for cost in follow(spark, Path(name), *sizes):
                    costs.append(cost)
                    print(f"{len(costs)}: {cost.seconds:.1f} s", file=sys.stderr, flush=True)
            took_s = (datetime.now(UTC) - began).total_seconds()
    finally:
        spark.stop()
    if options.json:
        json.dump([asdict(cost) for cost in costs], sys.stdout, indent=2)
    else:
        Console().print(show(compared(costs), len(costs)), f"{took_s:.0f} s in all")


if __name__ == "__main__":
    main()
