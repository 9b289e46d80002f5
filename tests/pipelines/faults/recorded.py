"""A topic of recorded lines: files of records, which a stream reads one a micro-batch.

What goes wrong here is not Kafka's fault, so that it needs none.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from quotaflow.pipelines import config
from quotaflow.pipelines.jobs.job import JobEnvironment
from quotaflow.pipelines.jobs.registry import JOBS
from quotaflow.pipelines.streaming import sinks, sources
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.tables.catalog import TABLES

from ..spark.recorded import RECORD_TIME, RECORDS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LINES = Path(__file__).parents[2] / "golden" / "lines"
CLUSTER = "recorded"
_ROW_GROUP_BYTES = 4 << 20
_FIXED = {"topic": "logs", "partition": 0, "headers": [{"key": "broker_id", "value": b"7"}]}
At = Callable[[int], datetime]
_SQL = (
    "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, "
    "headers array<struct<key: string, value: binary>>"
)


def always(_: int) -> datetime:
    """When every record was written, where a test does not care."""
    return RECORD_TIME


def golden_lines() -> list[bytes]:
    """Lines of a real cluster, each once, and some that are none."""
    files = [file.read_bytes() for file in sorted(LINES.glob("*.jsonl"))]
    bad = [b'{"level":"INFO","number":%d}' % number for number in range(10)]
    return [*dict.fromkeys(line for file in files for line in file.splitlines()), *bad]


def dealt(lines: Sequence[bytes], batches: int) -> list[list[tuple[int, bytes]]]:
    """Lines by turns to so many batches, each with its offset: every batch has some of all."""
    numbered = list(enumerate(lines))
    return [numbered[first::batches] for first in range(batches)]


def write(folder: Path, batches: Iterable[Iterable[tuple[int, bytes]]], at: At = always) -> None:
    """Write each batch as the next file of the topic, a second apart: Spark reads them by that.

    `at` tells when the record of an offset was written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for number, batch in enumerate(batches, start=len(list(folder.glob("*.parquet")))):
        path = folder / f"{number:06}.parquet"
        with pq.ParquetWriter(path, RECORDS) as file:
            for lines in _row_groups(batch):
                rows = [_FIXED | {"offset": o, "value": v, "timestamp": at(o)} for o, v in lines]
                file.write_table(pa.Table.from_pylist(rows, RECORDS))
        written = RECORD_TIME.timestamp() + number
        os.utime(path, (written, written))


def _row_groups(batch: Iterable[tuple[int, bytes]]) -> Iterator[list[tuple[int, bytes]]]:
    """Kafka hands over records one by one; a reader of files takes at least a row group."""
    lines, size = list[tuple[int, bytes]](), 0
    for offset, line in batch:
        lines.append((offset, line))
        size += len(line)
        if size >= _ROW_GROUP_BYTES:
            yield lines
            lines, size = [], 0
    if lines:
        yield lines


def read(spark: "SparkSession", folder: Path) -> "DataFrame":
    """The stream of such a topic, as `sources.read_topic` gives one of Kafka's."""
    files = spark.readStream.schema(_SQL).option("maxFilesPerTrigger", 1)
    return files.option("latestFirst", "false").parquet(str(folder))


def setting(spark: "SparkSession", folder: Path, jobs: Iterable[str]) -> JobEnvironment:
    """A warehouse in this folder with the tables of these jobs; Delta tables are read file by file.

    Its topic is the folder `topic` beside it, once `replace_topic` was called.
    """
    conf = config.Conf(
        warehouse=config.WarehouseSection(path=str(folder / "warehouse")),
        results=config.ResultsSection(max_bytes_per_trigger=1),
    )
    warehouse = Warehouse(conf.warehouse)
    names = {t.name for job in jobs for t in (*JOBS[job].fills, *JOBS[job].looks_up)}
    names |= {JOBS[job].reads for job in jobs} & TABLES.keys()
    warehouse.ensure(lambda: spark, [TABLES[name] for name in sorted(names)])
    return JobEnvironment(spark, conf, warehouse, CLUSTER)


def replace_topic(folder: Path) -> None:
    """Let the ingest jobs of this process read the recorded topic in `folder`."""

    def read_recorded(spark: "SparkSession", *_: object) -> "DataFrame":
        return read(spark, folder)

    sources.read_topic = read_recorded


def run(setting: JobEnvironment, job: str) -> None:
    """Run a job over what is there; raises what its query dies of."""
    query = JOBS[job].start(setting, sinks.ONCE)
    try:
        query.awaitTermination()
    finally:
        query.stop()
