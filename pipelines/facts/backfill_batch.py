"""A batch of a backfill: appends only rows whose record is not in the table yet."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from quotaflow.pipelines.spark.caching import cached
from quotaflow.pipelines.spark.frames import without
from quotaflow.pipelines.streaming.sinks import Batch, Count
from quotaflow.pipelines.warehouse.python_times import rows_of
from quotaflow.pipelines.warehouse.warehouse import OpenSession
from quotaflow.schemas.table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameWriter

# A row's time is at most a bound of conf after its record's, and two programs may differ by that.
_AROUND = "INTERVAL 1 DAY"
_RECORD = ["source_topic", "source_partition", "source_offset"]


def already_read(records: "DataFrame", read: dict[int, int]) -> "DataFrame":
    """Records that the live query has read, by the next offset of each partition."""
    by_partition = F.create_map(*(F.lit(number) for pair in read.items() for number in pair))
    return records.where(F.col("offset") < F.try_element_at(by_partition, F.col("partition")))


@dataclass(frozen=True, slots=True)
class BackfillBatch(Batch):
    """A batch that appends only rows whose record is not in the table, and counts both kinds.

    `is_new`: queries that read the table have not read these rows.
    """

    is_new: bool = True
    added: dict[str, int] = field(default_factory=dict)
    present: dict[str, int] = field(default_factory=dict)

    @property
    def takes_files(self) -> bool:
        """Rows are compared with those of the table before they are written."""
        return False

    def append(self, frame: "DataFrame", table: Table) -> None:
        """Append the rows whose record is not in the table."""
        if "source_offset" not in table.column_names:
            Batch.append(self, frame, table)
            return
        with cached(frame.select(table.column_names)) as rows:
            missing = without(rows, self._existing(rows, table), _RECORD)
            new = missing.count()
            if new:
                Batch.append(self, missing, table)
            self.added[table.name] = new
            self.present[table.name] = rows.count() - new

    def _writer(self, frame: "DataFrame", table: Table) -> "DataFrameWriter":
        writer = Batch._writer(self, frame, table)
        return writer if self.is_new else writer.option("dataChange", "false")

    def _existing(self, rows: "DataFrame", table: Table) -> "DataFrame":
        """The records in the table around that time: it is clustered by time, not by offset."""
        times = rows.agg(F.min(table.time).alias("oldest"), F.max(table.time).alias("newest"))
        around = times.selectExpr(f"oldest - {_AROUND} AS first", f"newest + {_AROUND} AS last")
        (ends,) = rows_of(around.toArrow())
        stored = self.warehouse.read(rows.sparkSession, table.name)
        return stored.where(F.col(table.time).between(ends["first"], ends["last"])).select(_RECORD)

    def report(
        self,
        open_session: OpenSession,
        counts: list[Count],
        cluster_id: str | None,
        time: datetime,
    ) -> None:
        """Append the counts of records that came in, and of rows added or already there."""
        came = [count for count in counts if count.outcome in ("in", "left_out")]
        added = [Count("out", n, name) for name, n in self.added.items()]
        there = [Count("left_out", n, name, "already_there") for name, n in self.present.items()]
        Batch.report(self, open_session, [*came, *added, *there], cluster_id, time)
