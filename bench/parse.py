"""Request-log lines per second on two cores: without a sink, to Delta, and by a Python JSON loop.

`python bench/parse.py [--json] [--lines N]`. Lines of a real cluster are in a Parquet file, so that
each way starts from a scan; lines per second of wall time, the best of the runs of each.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from rich.console import Console
from rich.table import Table

from quotaflow.pipelines import config
from quotaflow.pipelines.facts import requests
from quotaflow.pipelines.facts.ingest import RequestLogIngest
from quotaflow.pipelines.spark import session
from quotaflow.pipelines.streaming.sinks import Batch
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.schemas.tables.requests import REQUESTS

LINES = Path(__file__).parents[1] / "tests" / "golden" / "lines"
FILES = 4
HEADERS = pa.list_(pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))
LOOP_COLUMNS = pa.schema(
    [
        REQUESTS.arrow.field(name)
        for name in ("api", "api_version", "correlation_id", "client_id", "principal", "listener",
                     "connection_id", "client_software_name", "client_software_version",
                     "error_code", "total_time_ms", "local_time_ms", "remote_time_ms",
                     "throttle_time_ms", "send_time_ms")
    ]
)  # fmt: skip
LOOP_SQL = ", ".join(
    f"{column.name} {sql}"
    for column in REQUESTS.columns
    for sql in [{"string": "STRING", "int32": "INT", "double": "DOUBLE"}.get(str(column.type))]
    if column.name in LOOP_COLUMNS.names
)


def write_lines(folder: Path, count: int) -> float:
    """Golden lines, again and again, as records of a topic; returns their mean bytes."""
    lines = [
        line for file in sorted(LINES.glob("*.jsonl")) for line in file.read_bytes().split(b"\n")
    ]
    lines = [line for line in lines if line]
    for part in range(FILES):
        rows = count // FILES
        table = pa.table(
            {
                "key": pa.nulls(rows, pa.binary()),
                "value": pa.array((lines * (rows // len(lines) + 1))[:rows], pa.binary()),
                "topic": pa.array(["logs"] * rows),
                "partition": pa.array([part] * rows, pa.int32()),
                "offset": pa.array(range(rows), pa.int64()),
                "timestamp": pa.array([datetime.now(UTC)] * rows, pa.timestamp("us", "UTC")),
                "headers": pa.array([[{"key": "broker_id", "value": b"1"}]] * rows, HEADERS),
            }
        )
        pq.write_table(table, folder / f"{part}.parquet")
    return sum(map(len, lines)) / len(lines)


def python_loop(records: DataFrame) -> DataFrame:
    """json.loads of each line into 15 of the 50 columns: no partitions, bodies or checks."""

    def parse(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows = [row_of(json.loads(value.as_py())) for value in batch.column("value")]
            yield pa.RecordBatch.from_pylist(rows, schema=LOOP_COLUMNS)

    return records.mapInArrow(parse, LOOP_SQL)


def row_of(whole: dict) -> dict:
    """The columns of one parsed line."""
    line = whole.get("r", whole)
    header, client = line["requestHeader"], line["clientInformation"]
    return {
        "api": header["requestApiKeyName"],
        "api_version": header["requestApiVersion"],
        "correlation_id": header["correlationId"],
        "client_id": header["clientId"],
        "principal": line["principal"],
        "listener": line["listener"],
        "connection_id": line["connection"],
        "client_software_name": client["softwareName"],
        "client_software_version": client["softwareVersion"],
        "error_code": (line["response"] or {}).get("errorCode"),
        "total_time_ms": float(line["totalTimeMs"]),
        "local_time_ms": float(line["localTimeMs"]),
        "remote_time_ms": float(line["remoteTimeMs"]),
        "throttle_time_ms": float(line["throttleTimeMs"]),
        "send_time_ms": float(line["sendTimeMs"]),
    }


def to_nowhere(frame: DataFrame) -> None:
    """Compute every column, and keep none."""
    frame.write.format("noop").mode("overwrite").save()


def ways(spark: SparkSession, folder: Path) -> dict[str, Callable[[int], None]]:
    """The measured ways; each takes the number of its run."""
    conf = config.Conf(warehouse=config.WarehouseSection(path=str(folder / "warehouse")))
    warehouse = Warehouse(conf.warehouse)
    warehouse.ensure(lambda: spark, TABLES.values())
    log = RequestLogIngest(conf, "cluster")

    def records() -> DataFrame:
        return spark.read.parquet(str(folder / "lines"))

    def kept() -> DataFrame:
        return requests.select_requests(requests.parse(records(), conf.ingest, "cluster"))

    def batch(number: int, way: str) -> Batch:
        return Batch(warehouse, "ingest", way, number)

    return {
        "scan alone": lambda _: to_nowhere(records()),
        "quotaflow: parsed, to nowhere": lambda _: to_nowhere(kept()),
        "quotaflow: parsed, to Delta": lambda t: batch(t, "a").append(kept(), REQUESTS),
        "quotaflow: ingest batch, every table": lambda t: log.write(records(), batch(t, "b")),
        "Python json.loads loop, to nowhere": lambda _: to_nowhere(python_loop(records())),
    }


def measure(lines: int, turns: int) -> dict[str, float]:
    """Lines per second of each way: the best run after a warm-up."""
    spark = session.get(config.SparkSection(master="local[2]", driver_memory="4g"))
    try:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "lines").mkdir()
            write_lines(folder / "lines", lines)
            best: dict[str, float] = {}
            chosen = ways(spark, folder)
            for number in range(turns + 1):
                for way, run in chosen.items():
                    start = time.perf_counter()
                    run(number)
                    took_s = time.perf_counter() - start
                    if number:
                        best[way] = max(best.get(way, 0), lines / took_s)
            return best
    finally:
        spark.stop()


def show(rates: dict[str, float]) -> Table:
    """Thousands of lines per second."""
    table = Table("request-log lines", "k lines/s", "to the Python loop")
    loop = rates["Python json.loads loop, to nowhere"]
    for way, rate in rates.items():
        table.add_row(way, f"{rate / 1e3:.1f}", f"{rate / loop:.2f}x")
    return table


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="lines per second as JSON")
    parser.add_argument("--lines", type=int, default=400_000, help="lines per run")
    parser.add_argument("--turns", type=int, default=3, help="runs of each way")
    options = parser.parse_args()
    rates = measure(options.lines, options.turns)
    if options.json:
        json.dump(rates, sys.stdout, indent=2)
    else:
        Console().print(show(rates))


if __name__ == "__main__":
    main()
