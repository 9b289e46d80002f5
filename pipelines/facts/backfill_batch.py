"""What a topic holds and the tables lack: rows are appended where their record is not there yet."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from quotaflow.pipelines.spark.caching import cached
from quotaflow.pipelines.spark.frames import null_safe
from quotaflow.pipelines.streaming.sinks import Batch, Count
from quotaflow.schemas.table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# A row's time is its record's, or up to a bound of conf past that: two programs may differ by it.
_AROUND = "INTERVAL 1 DAY"
_RECORD = ["source_topic", "source_partition", "source_offset"]


def already_read(records: "DataFrame", read: dict[int, int]) -> "DataFrame":
    """Records that the live query is done with, by the next offset of each partition."""
    by_partition = F.create_map(*(F.lit(number) for pair in read.items() for number in pair))
    return records.where(F.col("offset") < F.try_element_at(by_partition, F.col("partition")))


@dataclass(frozen=True, slots=True)
class BackfillBatch(Batch):
    """A batch that appends only rows whose record is not in the table, and counts both kinds."""

    added: dict[str, int] = field(default_factory=dict)
    present: dict[str, int] = field(default_factory=dict)

    def append(self, frame: "DataFrame", table: Table) -> None:
        """Append what the table lacks of these rows."""
        if "source_offset" not in table.column_names:
            Batch.append(self, frame, table)
            return
        with cached(frame.select(table.column_names)) as rows:
            known = self._existing(rows, table)
            same = null_safe(_RECORD, "new", "old")
            lacking = rows.alias("new").join(known.alias("old"), same, "left_anti")
            new = lacking.count()
            if new:
                Batch.append(self, lacking, table)
            self.added[table.name] = new
            self.present[table.name] = rows.count() - new

    def _existing(self, rows: "DataFrame", table: Table) -> "DataFrame":
        """Which records the table has about that time: it is laid out by time, not by offset."""
        times = rows.agg(F.min(table.time).alias("oldest"), F.max(table.time).alias("newest"))
        around = times.select(F.expr(f"oldest - {_AROUND}"), F.expr(f"newest + {_AROUND}"))
        known = self.warehouse.read(rows.sparkSession, table.name)
        return known.where(F.col(table.time).between(*around.collect()[0])).select(_RECORD)

    def report(
        self, spark: "SparkSession", counts: list[Count], cluster_id: str | None, time: datetime
    ) -> None:
        """Append what came, and what of it was added and was there; not what was made of it."""
        came = [count for count in counts if count.outcome in ("in", "left_out")]
        added = [Count("out", n, name) for name, n in self.added.items()]
        there = [Count("left_out", n, name, "already_there") for name, n in self.present.items()]
        Batch.report(self, spark, [*came, *added, *there], cluster_id, time)
