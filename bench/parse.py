"""Request-log lines on two cores: without a sink, and into all tables.

`python bench/parse.py [--lines N]`. Lines of a real cluster are in a Parquet file, so that
each way starts from a scan; lines per second of wall time and microseconds of CPU time of the
process tree per line, the best of the runs of each.
"""

import argparse
import json
import math
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from cpu import cpu_s
from pyspark.sql import DataFrame, SparkSession
from rich.console import Console
from rich.table import Table

from quotaflow.pipelines import config
from quotaflow.pipelines.facts.ingest import of_request_log
from quotaflow.pipelines.spark import session
from quotaflow.pipelines.streaming.sinks import Batch
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.table import sql_columns
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.udfs.facts import task

LINES = Path(__file__).parents[1] / "tests" / "golden" / "lines"
FILES = 4
HEADERS = pa.list_(pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))


def in_filebeat(line: bytes) -> bytes:
    """The line as a shipper wraps it, in a field of its own JSON."""
    record = {"@timestamp": "2026-11-20T10:00:00.134Z", "@metadata": {"beat": "filebeat"}}
    return json.dumps(record | {"message": line.decode()}).encode()


def write_lines(folder: Path, count: int, wrap: Callable[[bytes], bytes] = bytes) -> float:
    """Golden lines, again and again, as records of a topic; returns their mean bytes."""
    folder.mkdir()
    lines = [
        line for file in sorted(LINES.glob("*.jsonl")) for line in file.read_bytes().split(b"\n")
    ]
    lines = [wrap(line) for line in lines if line]
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


class OfRows(Batch):
    """A batch whose rows Spark writes, as in a catalog."""

    @property
    def takes_files(self) -> bool:
        return False


def to_nowhere(frame: DataFrame) -> None:
    """Compute every column, and keep none."""
    frame.write.format("noop").mode("overwrite").save()


def ways(spark: SparkSession, folder: Path) -> dict[str, Callable[[int], None]]:
    """The measured ways; each takes the number of its run."""
    conf = config.Conf(warehouse=config.WarehouseSection(path=str(folder / "warehouse")))
    warehouse = Warehouse(conf.warehouse)
    warehouse.ensure(lambda: spark, TABLES.values())
    log = of_request_log(conf, "cluster")

    def records(name: str = "lines") -> DataFrame:
        return spark.read.parquet(str(folder / name))

    def packed(name: str = "lines") -> DataFrame:
        return records(name).mapInArrow(task.to_rows(log.source), sql_columns(task.PACKED))

    def batch(kind: type[Batch], number: int, way: str) -> Batch:
        return kind(warehouse, "ingest", way, number)

    return {
        "scan alone": lambda _: to_nowhere(records()),
        "parsed, to nowhere": lambda _: to_nowhere(packed()),
        "in records of Filebeat, parsed, to nowhere": lambda _: to_nowhere(packed("in-filebeat")),
        "ingest batch, tasks write": lambda t: log.write(records(), batch(Batch, t, "a")),
        "ingest batch, Spark writes": lambda t: log.write(records(), batch(OfRows, t, "b")),
    }


Rates = dict[str, tuple[float, float]]


def measure(lines: int, turns: int) -> Rates:
    """Lines per second and microseconds of CPU per line of each way: the best after a warm-up."""
    spark = session.get(config.SparkSection(master="local[2]", driver_memory="4g"))
    try:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            write_lines(folder / "lines", lines)
            write_lines(folder / "in-filebeat", lines, in_filebeat)
            best: Rates = {}
            chosen = ways(spark, folder)
            for number in range(turns + 1):
                for way, run in chosen.items():
                    start, used_before_s = time.perf_counter(), cpu_s()
                    run(number)
                    took_s, used_s = time.perf_counter() - start, cpu_s() - used_before_s
                    if number:
                        rate, cost = best.get(way, (0.0, math.inf))
                        best[way] = max(rate, lines / took_s), min(cost, used_s / lines * 1e6)
            return best
    finally:
        spark.stop()


def show(rates: Rates) -> Table:
    """Thousands of lines per second, and microseconds of CPU per line."""
    table = Table("request-log lines", "k lines/s", "CPU us per line")
    for way, (rate, cost_us) in rates.items():
        table.add_row(way, f"{rate / 1e3:.1f}", f"{cost_us:.1f}")
    return table


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=400_000, help="lines per run")
    parser.add_argument("--turns", type=int, default=3, help="runs of each way")
    options = parser.parse_args()
    Console().print(show(measure(options.lines, options.turns)))


if __name__ == "__main__":
    main()
