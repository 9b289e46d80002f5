"""Finds rows past the retention of a table, and removes them: counted, and never unread ones.

Facts, results and records are removed by their time, in whole days. Tables of snapshots keep the
rows that are current at that time, however old; records of configs are kept while the ledger needs
them. If a query has not read such rows, all stay until it has.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pyarrow as pa

from quotaflow.pipelines.feedback.configs.change import RENEW
from quotaflow.pipelines.feedback.ledger import journal
from quotaflow.pipelines.feedback.ledger.ledger import Ledger
from quotaflow.pipelines.jobs import backlog
from quotaflow.pipelines.jobs.backlog import Backlog
from quotaflow.pipelines.maintenance.stored_tables import StoredTables
from quotaflow.pipelines.snapshots import changes
from quotaflow.pipelines.streaming.sinks import Batch, Count
from quotaflow.pipelines.warehouse.python_times import rows_of
from quotaflow.pipelines.warehouse.sql_literals import literal
from quotaflow.pipelines.warehouse.time_ranges import in_spark
from quotaflow.pipelines.warehouse.warehouse import OpenSession, Warehouse
from quotaflow.schemas.table import LONG, STRING, Table
from quotaflow.schemas.tables.declared import CONFIG_CHANGES, PIPELINE_PROGRESS

REMOVED = "removed"
# With a wrong clock a row may stay in the future: then its record time decides.
_CLOCK_SLACK = timedelta(days=1)
_COUNTS = pa.schema({"cluster_id": STRING, "row_count": LONG})


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

    `stay` is the query for rows that match `where` and are kept; None if there are none.
    """

    table: Table
    before: datetime
    where: str
    rows: dict[str | None, int]
    stay: str | None = None

    @property
    def total(self) -> int:
        """The number of rows to remove."""
        return sum(self.rows.values())


def find(tables: StoredTables, table: Table, before: datetime) -> Old:
    """Find the rows of a table that are too old."""
    if table == CONFIG_CHANGES:
        before = min(before, _needed_since(tables) or before)
    where, stay, kept = is_old(table, before), None, dict[str | None, int]()
    if "is_removed" in table.column_names:
        newest = changes.newest_rows(table, "stored", where)
        stay = f"SELECT * FROM ({newest}) AS newest WHERE NOT is_removed"
        kept = _by_cluster(tables, table, stay)
    if table == PIPELINE_PROGRESS:
        where = f"{where} AND NOT ({_newest_of_queries(tables)})"
    matched = _by_cluster(tables, table, f"SELECT * FROM stored WHERE {where}")
    rows = {cluster_id: n - kept.get(cluster_id, 0) for cluster_id, n in matched.items()}
    return Old(table, before, where, rows, stay)


def _by_cluster(tables: StoredTables, table: Table, rows: str) -> dict[str | None, int]:
    """The number of rows by cluster; under None if they have no cluster_id."""
    cluster_id = "cluster_id" if "cluster_id" in table.column_names else "NULL"
    sql = (
        f"SELECT {cluster_id} AS cluster_id, count(*) AS row_count FROM ({rows}) AS each GROUP BY 1"
    )
    counts = tables.rows(table, sql, _COUNTS).to_pylist()
    return {row["cluster_id"]: row["row_count"] for row in counts}


def _needed_since(tables: StoredTables) -> datetime | None:
    """The oldest record the ledger needs: a renewed lease depends on its first write."""
    sql = f"SELECT * FROM stored WHERE operation <> {literal(RENEW)}"
    written = rows_of(tables.rows(CONFIG_CHANGES, sql, CONFIG_CHANGES.arrow))
    return Ledger.from_records(map(journal.to_record, written)).needed_since


def reason_to_wait(
    tables: StoredTables, warehouse: Warehouse, old: Old, behind: list[Backlog]
) -> str | None:
    """Why old rows must stay for now: a query has not read them, or a result needs them."""
    rows = f"SELECT count(*) AS row_count FROM stored WHERE {old.where}"
    schema = pa.schema([_COUNTS.field("row_count")])
    for query in behind:
        if query.read is None or query.since is None:
            return f"{query.job} has not read all of it: run that first"
        read = tables.rows(old.table, rows, schema, query.read)
        if read != tables.rows(old.table, rows, schema):
            return f"{query.job} has not read what is too old: run that first"
    return next(iter(backlog.not_computed(warehouse, old.table.name, old.before)), None)


def remove(tables: StoredTables, open_session: OpenSession, batch: Batch, old: Old) -> None:
    """Remove old rows. They are counted first, so that a crash cannot leave rows uncounted."""
    _report(open_session, batch, old)
    batch.warehouse.keep_since(open_session, old.table.name, old.before)
    tables.remove(batch, old.table, old.where, old.stay)


def _report(open_session: OpenSession, batch: Batch, old: Old) -> None:
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
    batch.append_rows(open_session, records, PIPELINE_PROGRESS)


def _newest_of_queries(tables: StoredTables) -> str:
    """SQL for the newest batch of each query, which shows that a checkpoint was lost.

    Each run of these commands is a query by itself, without a checkpoint.
    """
    sql = (
        "SELECT query_id, max(batch_id) AS batch_id FROM stored "
        "WHERE split_part(query_id, ' ', 1) NOT IN ('roll_up', 'rebuild', 'backfill') "
        "GROUP BY query_id"
    )
    schema = pa.schema([PIPELINE_PROGRESS.arrow.field(name) for name in ("query_id", "batch_id")])
    newest = tables.rows(PIPELINE_PROGRESS, sql, schema).to_pylist()
    conditions = [
        f"query_id = {literal(row['query_id'])} AND batch_id = {row['batch_id']}" for row in newest
    ]
    return " OR ".join(conditions) or "false"
