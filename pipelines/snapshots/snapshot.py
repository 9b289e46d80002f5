"""One snapshot being written: whose it is, when it was taken, and what it appends."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as F

from quotaflow.pipelines.sinks import Batch, Count
from quotaflow.pipelines.snapshots.changes import changes, current
from quotaflow.schemas.table import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What one snapshot writes; `batch` tells it apart, so that nothing is appended twice."""

    spark: "SparkSession"
    batch: Batch
    cluster_id: str
    now: datetime

    def append_changes(
        self, table: Table, rows: Iterable[Mapping[str, Any]], scope: Mapping[str, str]
    ) -> Count:
        """Append what differs from what the table holds within `scope` (columns and values).

        `rows` are everything there is in that scope now, without cluster, time and is_removed.
        """
        fixed = {"cluster_id": self.cluster_id, table.time: self.now, "is_removed": False}
        content = pa.Table.from_pylist([fixed | dict(row) for row in rows], schema=table.arrow)
        known = self.batch.warehouse.read(self.spark, table.name)
        for column, value in {"cluster_id": self.cluster_id, **scope}.items():
            known = known.where(F.col(column) == value)
        seen = self.spark.createDataFrame(content)
        changed = changes(seen, current(known, table), table, self.now).persist()
        try:
            written = changed.count()
            if written:
                self.batch.append(changed, table)
            return Count("out", written, table.name)
        finally:
            changed.unpersist()
