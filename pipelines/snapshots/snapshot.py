"""One snapshot that is being written: its cluster, its time, and the rows it appends."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from quotaflow.pipelines.snapshots.changes import changes, current_rows
from quotaflow.pipelines.snapshots.observations import ObservedRows, UnansweredPart
from quotaflow.pipelines.spark import frames
from quotaflow.pipelines.spark.caching import cached
from quotaflow.pipelines.streaming.sinks import Batch, Count
from quotaflow.schemas.table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Writes one snapshot. `batch` identifies it, so nothing is appended twice."""

    spark: "SparkSession"
    batch: Batch
    cluster_id: str
    now: datetime

    def append_changes(
        self,
        seen: ObservedRows,
        finish: "Callable[[DataFrame], DataFrame]" = lambda changed: changed,
    ) -> list[Count]:
        """Append the rows that differ from the current rows of this cluster, after `finish`.

        `seen` has everything there is now, except its unanswered parts, which are counted.
        """
        table = seen.table
        fixed = {"cluster_id": self.cluster_id, table.time: self.now, "is_removed": False}
        rows = frames.from_arrow(self.spark, seen.rows)
        stamped = rows.withColumns({name: F.lit(value) for name, value in fixed.items()})
        with cached(
            changes(stamped, self.current_rows(table), table, self.now, seen.unanswered)
        ) as changed:
            written = changed.count()
            if written:
                self.batch.append(finish(changed), table)
        came = seen.rows.num_rows
        is_none = not came and not seen.is_unanswered
        in_count = Count("in", came, table.name, is_nothing_there=is_none)
        return [in_count, Count("out", written, table.name), *left_out(table, seen.unanswered)]

    def current_rows(self, table: Table) -> "DataFrame":
        """The current rows of this cluster, by earlier snapshots."""
        rows = self.batch.warehouse.read(self.spark, table.name)
        return current_rows(rows.where(F.col("cluster_id") == self.cluster_id), table)


def left_out(table: Table, gaps: tuple[UnansweredPart, ...]) -> list[Count]:
    """The unanswered parts, counted by reason."""
    reasons = Counter(gap.reason for gap in gaps)
    return [Count("left_out", n, table.name, reason) for reason, n in sorted(reasons.items())]
