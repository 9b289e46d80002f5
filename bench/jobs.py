"""What each job costs on request-log lines: a fixed part per run, and a part per line.

`python bench/jobs.py [--json] [--lines N] [--master M]`. Lines of a hundred clients over ten
minutes are in a Delta table in place of the topic. Every job over them runs on N and then on N / 4
lines, with new tables, after a run of N that does not count, because in it the JVM compiles. Later
compilation cannot make the part per line look smaller. CPU seconds of this process, its JVM, and
its Python workers: the line through both sizes gives the two parts. CPU time is the same on a
machine with other load.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from cpu import cpu_s
from deltalake import write_deltalake
from rich.console import Console
from rich.table import Table

from quotaflow.pipelines import config
from quotaflow.pipelines.jobs.job import JobEnvironment
from quotaflow.pipelines.jobs.registry import JOBS
from quotaflow.pipelines.spark import session
from quotaflow.pipelines.streaming import sinks, sources
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.tables.catalog import TABLES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

GOLDEN = Path(__file__).parents[1] / "tests" / "golden" / "lines"
CLIENTS, BROKERS, DURATION_S = 100, 3, 600
STARTED_S = 1_795_220_000
MEASURED = ("ingest_request_log", "fetches", "request_results", "fetch_results")
HEADERS = pa.list_(pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))
RECORDS = pa.schema(
    {
        "key": pa.binary(),
        "value": pa.binary(),
        "topic": pa.string(),
        "partition": pa.int32(),
        "offset": pa.int64(),
        "timestamp": pa.timestamp("us", "UTC"),
        "headers": HEADERS,
    }
)


def golden(api: str, client_id: str) -> str:
    """A line of one client as a real broker wrote it, of a request that was not throttled."""
    texts = (GOLDEN / f"{api}.jsonl").read_text(encoding="utf-8").splitlines()
    return next(t for t in texts if f'"{client_id}"' in t and '"throttleTimeMs":0' in t)


def lines(count: int) -> Iterator[bytes]:
    """Per hundred lines 44 PRODUCE, 55 incremental FETCH and one InitProducerId, in time order."""
    init = golden("init_producer_id", "java-prod-alice")
    produce, fetch = golden("produce", "java-prod-alice"), golden("fetch", "java-smallfetch-bob")
    for number in range(count):
        round_number, client = divmod(number, CLIENTS)
        kind = (round_number * 37 + client) % 100
        line = json.loads(init if kind == 0 else produce if kind < 45 else fetch)
        line["principal"] = f"User:client-{client}"
        line["requestHeader"] |= {"clientId": f"client-{client}", "correlationId": round_number}
        if kind == 0:
            line["response"]["producerId"] = number
        elif kind >= 45:
            line["request"] |= {"sessionId": 1_000 + client, "sessionEpoch": round_number + 1}
            line["response"]["sessionId"] = 1_000 + client
        at_ms = STARTED_S * 1_000 + number * DURATION_S * 1_000 // count
        yield json.dumps({"ts": at_ms, "broker": client % BROKERS + 1, "r": line}).encode()


def write_records(folder: Path, count: int) -> None:
    """The lines as records of a topic of four partitions."""
    record_time = datetime.fromtimestamp(STARTED_S + DURATION_S, UTC)
    rows = [
        {
            "value": line,
            "topic": "logs",
            "partition": number % 4,
            "offset": number // 4,
            "timestamp": record_time,
            "headers": [],
        }
        for number, line in enumerate(lines(count))
    ]
    write_deltalake(folder, pa.Table.from_pylist(rows, schema=RECORDS))


def costs(spark: "SparkSession", folder: Path, count: int) -> dict[str, float]:
    """CPU seconds of each job over this number of lines."""
    records = folder / f"records-{count}"
    if not records.exists():
        write_records(records, count)

    def read(own: "SparkSession", *_: object) -> "DataFrame":
        return own.readStream.format("delta").load(str(records))

    sources.read_topic = read
    with tempfile.TemporaryDirectory(dir=folder) as name:
        conf = config.load(overrides=[f"warehouse.path={name}", "ingest.receiver_topic=null"])
        warehouse = Warehouse(conf.warehouse)
        warehouse.ensure(lambda: spark, TABLES.values())
        setting, took = JobEnvironment(spark, conf, warehouse, "cluster"), {}
        for job in MEASURED:
            before_s = cpu_s()
            JOBS[job].start(setting, sinks.ONCE).awaitTermination()
            took[job] = cpu_s() - before_s
    return took


def measure(count: int, master: str) -> dict[str, dict[str, float]]:
    """CPU seconds per run, and per million lines, by job."""
    spark = session.get(config.SparkSection(master=master, driver_memory="4g"))
    try:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            costs(spark, folder, count)
            many, few = costs(spark, folder, count), costs(spark, folder, count // 4)
    finally:
        spark.stop()
    per_line = {job: (many[job] - few[job]) / (count - count // 4) for job in MEASURED}
    return {
        job: {
            "fixed_s": few[job] - per_line[job] * (count // 4),
            "per_million_s": per_line[job] * 1e6,
        }
        for job in MEASURED
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="CPU seconds as JSON")
    parser.add_argument("--lines", type=int, default=1_000_000, help="lines of the larger run")
    parser.add_argument("--master", default="local[2]", help="Spark's master")
    options = parser.parse_args()
    measured = measure(options.lines, options.master)
    if options.json:
        json.dump(measured, sys.stdout, indent=2)
        return
    table = Table("job", "CPU s per run", "CPU s per million lines")
    for job, cost in measured.items():
        table.add_row(job, f"{cost['fixed_s']:.1f}", f"{cost['per_million_s']:.0f}")
    Console().print(table)


if __name__ == "__main__":
    main()
