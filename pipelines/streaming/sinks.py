"""The only writeStream, and appends that a replayed micro-batch makes once.

Delta skips an append whose (txnAppId, txnVersion) it has already committed. The pair is set in
the options of the writer, never in the session's conf, where it would skip later writes too. The id
comes from the checkpoint: with a constant id, a deleted checkpoint would lose rows silently.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from quotaflow.pipelines.streaming.checkpoints import drop_unnamed, newest_batch, query_id
from quotaflow.pipelines.warehouse import row_writer, store_frames
from quotaflow.pipelines.warehouse.row_writer import AppId, Replaced
from quotaflow.pipelines.warehouse.time_ranges import as_in_delta
from quotaflow.pipelines.warehouse.warehouse import OpenSession, Warehouse
from quotaflow.schemas.ddl import lookup_key
from quotaflow.schemas.table import Table
from quotaflow.schemas.tables.declared import PIPELINE_PROGRESS
from quotaflow.udfs.table_files import Target

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameWriter, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

Trigger = Mapping[str, bool | str]
ONCE: Trigger = {"availableNow": True}
# Only upkeep writes between a crash and the replay.
_NEWEST_COMMITS = 1_000
_ROW_COUNTS = (row_writer.ROWS, "numOutputRows", "num_added_rows")


@dataclass(frozen=True, slots=True)
class Batch:
    """One micro-batch of one query; what it appends is appended once, replayed or not.

    `part` distinguishes writers that append to the same table in one batch. `replayed` says that an
    earlier run started this batch, so that some of its appends may be skipped. Observed metrics of
    a skipped append never arrive. `has_time_id` says that `batch_id` is the time and no run replays
    the batch: its rows are written always, since after a clock went back all would be skipped.
    """

    warehouse: Warehouse
    job: str
    query_id: str
    batch_id: int
    part: str = ""
    replayed: bool = False
    has_time_id: bool = False

    @property
    def takes_files(self) -> bool:
        """Whether tasks may write files of the tables: in a catalog only Spark may."""
        return not self.warehouse.conf.catalog_schema

    def target(self, table: Table) -> Target:
        """Where tasks write files of a table; only if the batch takes files."""
        return self.warehouse.place.target(table, lookup_key(table))

    def append(self, frame: "DataFrame", table: Table) -> None:
        """Append rows to a table; at most once per table and batch."""
        if self.warehouse.conf.is_store:
            files = store_frames.written(frame.select(table.column_names), self.target(table))
            self.append_files(lambda: frame.sparkSession, files, table)
            return
        self.warehouse.write(self._writer(frame, table).mode("append"), table.name)

    def replace(self, frame: "DataFrame", table: Table, where: str) -> None:
        """Replace the rows that match `where` by these rows, all of which must match it.

        In an object store the rows pass through this process.
        """
        if self.warehouse.conf.is_store:
            rows, old = (
                frame.select(table.column_names).toArrow(),
                Replaced(None, as_in_delta(where)),
            )
            self.replace_rows(lambda: frame.sparkSession, rows, table, old)
            return
        writer = self._writer(frame, table).mode("overwrite").option("replaceWhere", where)
        self.warehouse.write(writer, table.name)

    def append_rows(self, open_session: OpenSession, rows: pa.Table, table: Table) -> None:
        """As `append`, for rows that the driver has."""
        row_writer.append(open_session, self.warehouse, table, rows, self._app)

    def append_files(
        self, open_session: OpenSession, files: Sequence[Mapping[str, Any]], table: Table
    ) -> None:
        """As `append`, for files that tasks wrote: rows of `table_files.FILE`."""
        row_writer.append_files(open_session, self.warehouse, table, files, self._id)

    def replace_rows(
        self, open_session: OpenSession, rows: pa.Table, table: Table, old: Replaced
    ) -> None:
        """Replace rows by these, which the driver has; at most once per table and batch."""
        row_writer.replace(open_session, self.warehouse, table, rows, old, app=self._app)

    def is_appended(self, spark: "SparkSession", table: Table) -> bool:
        """Whether this batch appended to a table before its replay."""
        return bool(self._commits(spark, table))

    def appended(self, spark: "SparkSession", table: Table) -> int | None:
        """How many rows this batch appended to a table before its replay; None if it did not."""
        for metrics in self._commits(spark, table):
            return int(next((metrics[name] for name in _ROW_COUNTS if metrics.get(name)), 0))
        return None

    def _commits(self, spark: "SparkSession", table: Table) -> "list[Mapping[str, str]]":
        """The metrics of this batch's commits to a table."""
        if not self.replayed:
            return []
        if self.warehouse.conf.is_store:
            commits = self.warehouse.place.open(table.name).history(_NEWEST_COMMITS)
            ours = [each for each in commits if each.get("userMetadata") == self._name]
            return [{**each, **each.get("operationMetrics", {})} for each in ours]
        from pyspark.sql import functions as F  # noqa: PLC0415  rows need no Spark in a folder

        target = self.warehouse.target(table.name)
        history = spark.sql(f"DESCRIBE HISTORY {target} LIMIT {_NEWEST_COMMITS}")
        committed = history.where(F.col("userMetadata") == self._name).select("operationMetrics")
        return [row["operationMetrics"] for row in committed.collect()]

    @property
    def _app(self) -> AppId | None:
        """By what its commits are known; None if they are written always."""
        return None if self.has_time_id else self._id

    @property
    def _id(self) -> AppId:
        return AppId(self.query_id + self.part, self.batch_id, self._name)

    @property
    def _name(self) -> str:
        return f"{self.query_id}{self.part} {self.batch_id}"

    def _writer(self, frame: "DataFrame", table: Table) -> "DataFrameWriter":
        writer = frame.select(table.column_names).write.format("delta")
        return row_writer.named(writer, self._app)

    def report(
        self,
        open_session: OpenSession,
        counts: "list[Count]",
        cluster_id: str | None,
        time: datetime,
    ) -> None:
        """Append the batch's counts to pipeline_progress, with its cluster if one is known.

        Counts of no rows are left out, except with `is_nothing_there`. A time in the future comes
        from a clock that is ahead. It is replaced by now, so that data does not look fresher than
        it is.
        """
        fixed = {
            "cluster_id": cluster_id,
            # PySpark collects times in this machine's zone, without it; Arrow takes them for UTC.
            "event_time": min(time.astimezone(UTC), datetime.now(UTC)),
            "job": self.job,
            "query_id": self.query_id,
            "batch_id": self.batch_id,
        }
        rows = [fixed | count.row() for count in counts if count.rows or count.is_nothing_there]
        table = pa.Table.from_pylist(rows, schema=PIPELINE_PROGRESS.arrow)
        self.append_rows(open_session, table, PIPELINE_PROGRESS)


@dataclass(frozen=True, slots=True)
class Count:
    """Rows of a batch with one outcome.

    The outcome is in, out, left_out, quarantined, doubtful, late, failed, refused, lost or removed.
    Doubtful rows are in a table, without the value that `reason` says. Refused are those that a
    receiver did not take.
    `is_nothing_there`: the source answered that it has no rows.
    """

    outcome: str
    rows: int
    target: str | None = None
    reason: str | None = None
    is_nothing_there: bool = False

    def row(self) -> dict[str, object]:
        """The count's own columns of pipeline_progress."""
        return {
            "target": self.target,
            "outcome": self.outcome,
            "reason": self.reason,
            "row_count": self.rows,
        }


def rows_by_cluster(rows: "DataFrame") -> dict[str | None, int]:
    """The number of rows by cluster; under None if they have no cluster_id."""
    from pyspark.sql import functions as F  # noqa: PLC0415  as above

    cluster_id = F.col("cluster_id") if "cluster_id" in rows.columns else F.lit(None).cast("string")
    return {
        row["of"]: row["count"] for row in rows.groupBy(cluster_id.alias("of")).count().collect()
    }


def start(
    frame: "DataFrame",
    job: str,
    warehouse: Warehouse,
    write: "Callable[[DataFrame, Batch], None]",
    trigger: Trigger,
) -> "StreamingQuery":
    """Start a query that hands every micro-batch to `write`."""
    checkpoint = warehouse.checkpoint(job)
    newest_started = newest_batch(checkpoint)
    drop_unnamed(checkpoint)

    def write_batch(frame: "DataFrame", batch_id: int) -> None:
        batch = Batch(
            warehouse, job, query_id(checkpoint), batch_id, replayed=batch_id <= newest_started
        )
        write(frame, batch)

    return _writer(frame, job, warehouse, trigger).foreachBatch(write_batch).start()


def _writer(
    frame: "DataFrame", job: str, warehouse: Warehouse, trigger: Trigger
) -> "DataStreamWriter":
    checkpoint = str(warehouse.checkpoint(job))
    writer = frame.writeStream.queryName(job).option("checkpointLocation", checkpoint)
    return writer.trigger(**trigger)  # type: ignore[arg-type]  # the stubs want one keyword each
