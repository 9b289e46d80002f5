"""A topic of recorded lines: files of records, which a stream reads one a micro-batch.

What goes wrong here is not Kafka's fault, so that it needs none.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from quotaflow.pipelines import config, sinks, sources
from quotaflow.pipelines.job import Setting
from quotaflow.pipelines.jobs import JOBS
from quotaflow.pipelines.warehouse import Warehouse
from quotaflow.schemas import tables

from ..recorded import RECORDS, SHIPPED

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LINES = Path(__file__).parents[2] / "golden" / "lines"
CLUSTER = "recorded"
_LONG_BYTES = 1 << 20
_SQL = (
    "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, "
    "headers array<struct<key: string, value: binary>>"
)


def golden_lines() -> list[bytes]:
    """Lines of a real cluster, each once, and some that are none."""
    files = [file.read_bytes() for file in sorted(LINES.glob("*.jsonl"))]
    bad = [b'{"level":"INFO","number":%d}' % number for number in range(10)]
    return [*dict.fromkeys(line for file in files for line in file.splitlines()), *bad]


def dealt(lines: Sequence[bytes], batches: int) -> list[list[tuple[int, bytes]]]:
    """Lines by turns to so many batches, each with its offset: every batch has some of all."""
    numbered = list(enumerate(lines))
    return [numbered[of::batches] for of in range(batches)]


def write(folder: Path, batches: Iterable[Sequence[tuple[int, bytes]]]) -> None:
    """Write each batch as the next file of the topic; the name tells the order."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, batch in enumerate(batches, start=len(list(folder.glob("*.parquet")))):
        fixed = {"topic": "logs", "partition": 0, "timestamp": SHIPPED}
        headers = [{"key": "broker_id", "value": b"7"}]
        rows = [fixed | {"offset": at, "value": line, "headers": headers} for at, line in batch]
        file = folder / f"{number:06}.parquet"
        # Kafka hands over records one by one; a reader of files takes at least a row group.
        few = 1 if any(len(line) > _LONG_BYTES for _, line in batch) else len(rows)
        pq.write_table(pa.Table.from_pylist(rows, RECORDS), file, row_group_size=few)


def read(spark: "SparkSession", folder: Path) -> "DataFrame":
    """The stream of such a topic, as `sources.read_topic` gives one of Kafka's."""
    files = spark.readStream.schema(_SQL).option("maxFilesPerTrigger", 1)
    return files.option("latestFirst", "false").parquet(str(folder))


def setting(spark: "SparkSession", folder: Path, jobs: Iterable[str]) -> Setting:
    """A warehouse in this folder with the tables of these jobs; Delta tables are read file by file.

    Its topic is the folder `topic` beside it, once `replace_topic` was called.
    """
    conf = config.Conf(
        warehouse=config.Warehouse(path=str(folder / "warehouse")),
        results=config.Results(max_bytes_per_trigger=1),
    )
    warehouse = Warehouse(conf.warehouse)
    names = {t.name for job in jobs for t in (*JOBS[job].fills, *JOBS[job].looks_up)}
    names |= {JOBS[job].reads for job in jobs} & tables.TABLES.keys()
    warehouse.ensure(spark, [tables.TABLES[name] for name in sorted(names)])
    return Setting(spark, conf, warehouse, CLUSTER)


def replace_topic(folder: Path) -> None:
    """Let the ingest jobs of this process read the recorded topic in `folder`."""

    def read_recorded(spark: "SparkSession", *_: object) -> "DataFrame":
        return read(spark, folder)

    sources.read_topic = read_recorded


def run(setting: Setting, job: str) -> None:
    """Run a job over what is there; raises what its query dies of."""
    query = JOBS[job].start(setting, sinks.ONCE)
    try:
        query.awaitTermination()
    finally:
        query.stop()
