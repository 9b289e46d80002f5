"""Decoding inside Spark on two cores: without a sink, to files of tasks as in a folder, to Delta by
Spark as in a catalog, and by a pandas loop; and the same work in one plain Python process.

`python bench/decode_spark.py [--json] [--payloads N]`. Payloads are in a Parquet file,
so each way starts from a scan; points per second of wall time and CPU us of the process tree per
point, the best of three runs after a warm-up.
"""

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from cpu import cpu_s
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData
from payloads import one_resource
from pyspark.sql import DataFrame
from rich.console import Console
from rich.table import Table

from quotaflow.pipelines.config import SparkSection
from quotaflow.pipelines.spark import session
from quotaflow.schemas import ddl
from quotaflow.schemas.tables.telemetry import CLIENT_METRICS, TELEMETRY_PUSHES
from quotaflow.udfs.otlp import decode as otlp
from quotaflow.udfs.otlp import point_files
from quotaflow.udfs.otlp.codecs import Limits
from quotaflow.udfs.otlp.point_files import WRITTEN_SQL
from quotaflow.udfs.table_files import Target

ROUNDS = 3
LOOP_COLUMNS = (
    "metric STRING, kind STRING, time BIGINT, value DOUBLE, attributes MAP<STRING, STRING>"
)


def pushes(count: int) -> pa.Table:
    """Rows of telemetry_pushes with a made-up payload of 120 points each."""
    schema = TELEMETRY_PUSHES.arrow
    columns = {name: pa.nulls(count, schema.field(name).type) for name in schema.names}
    columns["payload"] = pa.array([one_resource(n % 500, n) for n in range(count)])
    columns["compression"] = pa.array(["none"] * count)
    columns["event_time"] = pa.array([datetime.now(UTC)] * count, schema.field("event_time").type)
    return pa.table(columns, schema=schema)


def quotaflow(rows: DataFrame) -> DataFrame:
    """The decoding query's own step."""
    return rows.mapInArrow(otlp.decode_pushes(Limits()), CLIENT_METRICS.sql_schema)


def pandas_loop(rows: DataFrame) -> DataFrame:
    """A pandas function that walks parsed messages: fewer columns, gauges only."""

    def decode(batches: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for batch in batches:
            yield pd.DataFrame(
                [
                    {
                        "metric": metric.name,
                        "kind": "gauge",
                        "time": point.time_unix_nano // 1_000,
                        "value": point.as_double,
                        "attributes": {kv.key: kv.value.string_value for kv in point.attributes},
                    }
                    for payload in batch["payload"]
                    for resource in MetricsData.FromString(payload).resource_metrics
                    for scope in resource.scope_metrics
                    for metric in scope.metrics
                    for point in metric.gauge.data_points
                ]
            )

    return rows.select("payload").mapInPandas(decode, LOOP_COLUMNS)


def best(run: Callable[[], None]) -> tuple[float, float]:
    """Seconds, and CPU seconds, the least of some runs after the first."""
    run()
    spent = []
    for _ in range(ROUNDS):
        start, used_s = time.perf_counter(), cpu_s()
        run()
        spent.append((time.perf_counter() - start, cpu_s() - used_s))
    walls_s, cpus_s = zip(*spent, strict=True)
    return min(walls_s), min(cpus_s)


def measure(count: int) -> dict[str, tuple[float, float]]:
    """Points per second and CPU us per point of each way."""
    spark = session.get(SparkSection(master="local[2]", driver_memory="3g"))
    folder = Path(tempfile.mkdtemp(prefix="quotaflow-bench-"))
    try:
        pq.write_table(pushes(count), folder / "pushes.parquet", row_group_size=1_000)
        rows = spark.read.parquet(str(folder / "pushes.parquet")).repartition(4).persist()
        points = quotaflow(rows).count()
        sink = str(folder / "client_metrics")
        (folder / "files").mkdir()
        indexed = ddl.lookup_key(CLIENT_METRICS)
        target = Target("client_metrics", str(folder / "files"), CLIENT_METRICS.arrow, indexed)

        def nowhere(decoded: Callable[[DataFrame], DataFrame]) -> Callable[[], None]:
            return lambda: decoded(rows).write.format("noop").mode("overwrite").save()

        def delta() -> None:
            quotaflow(rows).write.format("delta").mode("append").save(sink)

        def files() -> None:
            rows.mapInArrow(point_files.write_points(Limits(), target), WRITTEN_SQL).toArrow()

        def plainly() -> None:
            batches = pq.read_table(folder / "pushes.parquet").to_batches()
            for _batch in otlp.decode_pushes(Limits())(iter(batches)):
                pass

        ways = {
            "decode_pushes to a no-op sink": nowhere(quotaflow),
            "files written by tasks": files,
            "Delta, written by Spark": delta,
            "decode_pushes in one plain Python process": plainly,
            "pandas loop to a no-op sink": nowhere(pandas_loop),
        }
        figures = {}
        for name, run in ways.items():
            wall_s, used_s = best(run)
            figures[name] = points / wall_s, used_s / points * 1e6
        return figures
    finally:
        spark.stop()
        shutil.rmtree(folder)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="points per second as JSON")
    parser.add_argument("--payloads", type=int, default=8_000, help="payloads of 120 points")
    options = parser.parse_args()
    rates = measure(options.payloads)
    if options.json:
        json.dump(rates, sys.stdout, indent=2)
        return
    table = Table("way", "M points/s", "CPU us per point")
    for name, (rate, cost_us) in rates.items():
        table.add_row(name, f"{rate / 1e6:.2f}", f"{cost_us:.2f}")
    Console().print(table)


if __name__ == "__main__":
    main()
