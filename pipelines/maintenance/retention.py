"""Finds rows past the retention of a table, and removes them: counted, and never unread ones.

Facts, results and records are removed by their time, in whole days. Tables of snapshots keep the
rows that are current at that time, however old; records of configs are kept while the ledger needs
them. If a query has not read such rows, all stay until it has.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F

from quotaflow.pipelines.feedback.configs.change import RENEW
from quotaflow.pipelines.feedback.ledger import journal
from quotaflow.pipelines.feedback.ledger.ledger import Ledger
from quotaflow.pipelines.jobs import backlog
from quotaflow.pipelines.jobs.backlog import Backlog
from quotaflow.pipelines.snapshots import changes
from quotaflow.pipelines.streaming.sinks import Batch, Count, rows_by_cluster
from quotaflow.pipelines.warehouse.python_times import rows_of
from quotaflow.pipelines.warehouse.row_writer import Replaced
from quotaflow.pipelines.warehouse.sql_literals import literal
from quotaflow.pipelines.warehouse.time_ranges import as_in_delta, in_spark
from quotaflow.schemas.table import Table
from quotaflow.schemas.tables.control import CONFIG_CHANGES, PIPELINE_PROGRESS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

REMOVED = "removed"
# With a wrong clock a row may stay in the future: then its record time decides.
_CLOCK_SLACK = timedelta(days=1)


def cutoff(now: datetime, days: int) -> datetime:
    """Midnight in UTC at the start of the first day that is kept."""
    return now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days)


def is_old(table: Table, before: datetime) -> str:
    """SQL that is true for rows of a table before a midnight.

    A clock that is behind, or a line that was shipped late, gives a new record an old event time:
    such a row stays as long as one of the time of its record.
    """
    if table.partitioning:
        return f"event_date < date'{before.date()}'"
    old = f"{table.time} < {in_spark(before)}"
    if "record_time" in table.column_names:
        came = f"coalesce(record_time, {table.time})"
        earlier = in_spark(before - _CLOCK_SLACK)
        old = f"({old} AND {came} < {in_spark(before)} OR record_time < {earlier})"
    return old


@dataclass(frozen=True, slots=True)
class Old:
    """Rows of a table to remove: the SQL condition, their number by cluster, and rows that stay.

    `stay` are rows that match `where` and are kept; None if there are none.
    """

    table: Table
    before: datetime
    where: str
    rows: dict[str | None, int]
    stay: "DataFrame | None" = None

    @property
    def total(self) -> int:
        """The number of rows to remove."""
        return sum(self.rows.values())


def find(spark: "SparkSession", batch: Batch, table: Table, before: datetime) -> Old:
    """Find the rows of a table that are too old."""
    rows = batch.warehouse.read(spark, table.name)
    if table == CONFIG_CHANGES:
        before = min(before, _needed_since(rows) or before)
    where = is_old(table, before)
    if "is_removed" in table.column_names:
        source = f"rows_of_{table.name}"
        rows.createOrReplaceTempView(source)
        newest = changes.newest_rows(table, source, where)
        stay = spark.sql(newest).where("NOT is_removed")
        kept = rows_by_cluster(stay)
        counted = {
            cluster_id: n - kept.get(cluster_id, 0)
            for cluster_id, n in rows_by_cluster(rows.where(where)).items()
        }
        return Old(table, before, where, counted, stay)
    if table == PIPELINE_PROGRESS:
        where = f"{where} AND NOT ({_newest_of_queries(rows)})"
    return Old(table, before, where, rows_by_cluster(rows.where(where)))


def _needed_since(records: "DataFrame") -> datetime | None:
    """The oldest record the ledger needs: a renewed lease depends on its first write."""
    written = rows_of(records.where(F.col("operation") != RENEW).toArrow())
    return Ledger.from_records(map(journal.to_record, written)).needed_since


def reason_to_wait(
    spark: "SparkSession", batch: Batch, old: Old, behind: list[Backlog]
) -> str | None:
    """Why old rows must stay for now: a query has not read them, or a result needs them."""
    name = old.table.name
    for query in behind:
        if query.read is None or query.since is None:
            return f"{query.job} has not read all of it: run that first"
        read = batch.warehouse.read(spark, name, query.read).where(old.where)
        if read.count() != batch.warehouse.read(spark, name).where(old.where).count():
            return f"{query.job} has not read what is too old: run that first"
    return next(iter(backlog.not_computed(batch.warehouse, name, old.before)), None)


def remove(spark: "SparkSession", batch: Batch, old: Old) -> None:
    """Remove old rows. They are counted first, so that a crash cannot leave rows uncounted."""
    _report(spark, batch, old)
    batch.warehouse.keep_since(spark, old.table.name, old.before)
    if old.stay is not None:
        batch.replace(old.stay, old.table, old.where)
    elif batch.warehouse.conf.is_store:
        empty = old.table.arrow.empty_table()
        batch.replace_rows(lambda: spark, empty, old.table, Replaced(None, as_in_delta(old.where)))
    else:
        spark.sql(f"DELETE FROM {batch.warehouse.target(old.table.name)} WHERE {old.where}")


def _report(spark: "SparkSession", batch: Batch, old: Old) -> None:
    fixed = {
        "event_time": old.before,
        "job": batch.job,
        "batch_id": batch.batch_id,
    }
    rows = [
        fixed
        | {
            "cluster_id": cluster_id,
            "query_id": f"{batch.query_id} {cluster_id}" if cluster_id else batch.query_id,
        }
        | Count(REMOVED, n, old.table.name, "past_retention").row()
        for cluster_id, n in old.rows.items()
        if n
    ]
    records = pa.Table.from_pylist(rows, schema=PIPELINE_PROGRESS.arrow)
    batch.append_rows(lambda: spark, records, PIPELINE_PROGRESS)


def _newest_of_queries(progress: "DataFrame") -> str:
    """SQL for the newest batch of each query, which shows that a checkpoint was lost."""
    newest = progress.groupBy("query_id").agg(F.max("batch_id").alias("batch_id")).collect()
    conditions = [
        f"query_id = {literal(r['query_id'])} AND batch_id = {r['batch_id']}" for r in newest
    ]
    return " OR ".join(conditions) or "false"
