"""Runs every job once over recorded lines, as a program, in the session its environment names.

`python recorded.py RECORDS CONF`: a Delta table of records stands where the request log's topic is,
so that no cluster is needed; everything else is `quotaflow run --once --conf CONF`.
"""

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from deltalake import write_deltalake

from quotaflow.pipelines import config
from quotaflow.pipelines.jobs import offset_gaps, runner
from quotaflow.pipelines.streaming import sources
from quotaflow.pipelines.terminal import output

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

RECORD_TIME = datetime(2026, 11, 21, 2, 0, tzinfo=UTC)
_HEADER = pa.struct([("key", pa.string()), ("value", pa.binary())])
RECORDS = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", "UTC")),
        ("headers", pa.list_(_HEADER)),
    ]
)


def record(lines: list[bytes], folder: Path) -> None:
    """Write lines as the records Spark's Kafka source would hand over."""
    rows = [
        {
            "value": line,
            "topic": "logs",
            "partition": 0,
            "offset": offset,
            "timestamp": RECORD_TIME,
            "headers": [{"key": "broker_id", "value": b"7"}],
        }
        for offset, line in enumerate(lines)
    ]
    write_deltalake(folder, pa.Table.from_pylist(rows, schema=RECORDS))


def main(records: str, file: str, *jobs: str) -> None:
    """Run the jobs, all without names, and say what each batch did."""

    def read(spark: "SparkSession", *_: object) -> "DataFrame":
        return spark.readStream.format("delta").load(records)

    sources.read_topic = read
    runner._check_topics = lambda *_: "c1"
    offset_gaps.unread = lambda *_: 0
    runner.run(config.load(Path(file)), list(jobs), None, output.note)


if __name__ == "__main__":
    main(*sys.argv[1:])
