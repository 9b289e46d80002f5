"""Writes Arrow rows into tables: by delta-rs in a folder, by Spark in a catalog.

delta-rs replaces rows in milliseconds where Spark takes a second, so it writes what the driver
has as Arrow. It does not skip a batch that it has written: that is checked here. It takes only
times in microseconds and UTC, because from others it makes a table that Spark cannot read.

On a plain file system Spark and delta-rs could overwrite each other's commits. So queries that run
at the same time write a folder's table by one of the two:

- delta-rs: what ingest queries fill, the results, `pipeline_progress`, the tables of snapshots,
  `plans` and `config_changes`;
- Spark: all other tables. These are `client_metrics`, `fetches`, `fetch_sessions` and
  `query_progress` in a run, and `quality_results` of a command.

`Warehouse.ensure` and upkeep use both in tables of either kind, one after the other. They run under
the warehouse's lock, before queries start or without any. A table with a feature that delta-rs does
not know is written by Spark alone.

A commit outlives its process from the moment it is made. Neither writer forces files to disk, so a
power cut can lose commits of the last seconds.
"""

import fcntl
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from quotaflow.pipelines.spark import frames
from quotaflow.pipelines.warehouse import clustering, delta_files, folder_tables
from quotaflow.pipelines.warehouse.time_ranges import TimeRange, any_of, in_delta, in_spark
from quotaflow.pipelines.warehouse.warehouse import OpenSession, Warehouse
from quotaflow.schemas.table import Table

if TYPE_CHECKING:
    from deltalake import CommitProperties, DeltaTable
    from deltalake.transaction import RemoveAction
    from pyspark.sql import DataFrameWriter

_LOCK = ".writer.lock"


@dataclass(frozen=True, slots=True)
class Replaced:
    """The rows of a table that a write replaces: those of time ranges within a scope (SQL)."""

    ranges: Sequence[TimeRange]
    scope: str = "true"


@dataclass(frozen=True, slots=True)
class AppId:
    """The name under which a query's batch appends to a table at most once."""

    name: str
    version: int
    metadata: str


def replace(
    open_session: OpenSession, warehouse: Warehouse, table: Table, rows: pa.Table, old: Replaced
) -> None:
    """Replace old rows by these, which are all within the ranges and the scope.

    Raises JobError if delta-rs cannot write.
    """
    rows = _checked(rows, table)
    with _one_writer(warehouse, table) as live:
        if live is not None:
            _replace_by_delta_rs(live, warehouse.folder(table.name), table, rows, old)
            return
        where = any_of(_dated(each, table, spark_sql=True) for each in old.ranges)
        writer = frames.from_arrow(open_session(), rows).write.format("delta").mode("overwrite")
        where = f"({old.scope}) AND ({where})"
        warehouse.write(writer.option("replaceWhere", where), table.name)


def append(
    open_session: OpenSession,
    warehouse: Warehouse,
    table: Table,
    rows: pa.Table,
    app: AppId | None = None,
) -> None:
    """Append rows in one commit; at most once per name and version of `app`.

    Raises JobError if delta-rs cannot write.
    """
    rows = _checked(rows, table)
    with _one_writer(warehouse, table) as live:
        if live is not None:
            _append_by_delta_rs(live, warehouse.folder(table.name), table, rows, app)
            return
        writer = frames.from_arrow(open_session(), rows).write.format("delta").mode("append")
        warehouse.write(writer if app is None else _named(writer, app), table.name)


def append_files(
    open_session: OpenSession,
    warehouse: Warehouse,
    table: Table,
    files: Sequence[Mapping[str, Any]],
    app: AppId,
) -> None:
    """Append files that tasks wrote into the table's folder (rows of `table_files.FILE`).

    At most once per name and version of `app`. Raises JobError if the commit fails.
    """
    with _one_writer(warehouse, table) as live:
        if live is not None:
            _commit_files(live, warehouse.folder(table.name), table, files, app)
            return
        paths = [str(warehouse.folder(table.name) / str(file["path"])) for file in files]
        rows = open_session().read.schema(table.sql_schema).parquet(*paths)
        warehouse.write(_named(rows.write.format("delta").mode("append"), app), table.name)


def _named(writer: "DataFrameWriter", app: AppId) -> "DataFrameWriter":
    writer = writer.option("txnAppId", app.name).option("txnVersion", app.version)
    return writer.option("userMetadata", app.metadata)


@contextmanager
def _one_writer(warehouse: Warehouse, table: Table) -> "Iterator[DeltaTable | None]":
    """Be the only writer of rows to a folder's table: queries run in threads of a process.

    Yields the table if delta-rs writes it: in a folder, without features that it does not know.
    Behind Spark Connect they run in processes. The kernel releases the lock when its holder dies.
    """
    if warehouse.conf.catalog_schema:
        yield None
        return
    path = warehouse.folder(table.name) / "_delta_log" / _LOCK
    with folder_tables.as_job_error(table.name):
        opened = path.open("a", encoding="utf-8")
    with opened as file:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX)
        yield _live(warehouse, table)


def _live(warehouse: Warehouse, table: Table) -> "DeltaTable | None":
    from deltalake import DeltaTable  # noqa: PLC0415  --help need not wait for it

    with folder_tables.as_job_error(table.name):
        live = DeltaTable(warehouse.folder(table.name))
    return live if clustering.is_plain(live) else None


def _replace_by_delta_rs(
    live: "DeltaTable", folder: Path, table: Table, rows: pa.Table, old: Replaced
) -> None:
    files = delta_files.of_version(live, folder, table.time)
    may_have_old = any(file.may_have(r.start, r.end) for file in files for r in old.ranges)
    if not rows.num_rows and not may_have_old:
        return
    where = any_of(_dated(each, table, spark_sql=False) for each in old.ranges)
    with folder_tables.as_job_error(table.name):
        _commit(live, folder, rows, mode="overwrite", predicate=f"({old.scope}) AND ({where})")


def _append_by_delta_rs(
    live: "DeltaTable", folder: Path, table: Table, rows: pa.Table, app: AppId | None
) -> None:
    if app is None:
        with folder_tables.as_job_error(table.name):
            _commit(live, folder, rows, mode="append")
        return
    if not _is_appended(live, app):
        with folder_tables.as_job_error(table.name):
            _commit(live, folder, rows, mode="append", commit_properties=_properties(app))


def _commit_files(
    live: "DeltaTable", folder: Path, table: Table, files: Sequence[Mapping[str, Any]], app: AppId
) -> None:
    from deltalake.transaction import AddAction  # noqa: PLC0415  as above

    if _is_appended(live, app):
        return
    now_ms = time.time_ns() // 1_000_000
    actions: list[AddAction | RemoveAction] = [
        AddAction(file["path"], file["size_bytes"], {}, now_ms, True, file["stats"])
        for file in files
    ]
    with folder_tables.as_job_error(table.name):
        folder_tables.drop_checksum(folder)
        live.create_write_transaction(
            actions, "append", live.schema(), commit_properties=_properties(app)
        )


def _is_appended(live: "DeltaTable", app: AppId) -> bool:
    """Only one batch of a query runs at a time, so nobody commits this version in between."""
    written = live.transaction_version(app.name)
    return written is not None and written >= app.version


def _properties(app: AppId) -> "CommitProperties":
    from deltalake import CommitProperties, Transaction  # noqa: PLC0415  as above

    return CommitProperties(
        custom_metadata={"userMetadata": app.metadata},
        app_transactions=[Transaction(app.name, app.version)],
    )


def _commit(live: "DeltaTable", folder: Path, rows: pa.Table, **how: Any) -> None:
    from deltalake import write_deltalake  # noqa: PLC0415  as above

    folder_tables.drop_checksum(folder)
    write_deltalake(live, _as_stored(rows, live), **how)


def _dated(time_range: TimeRange, table: Table, *, spark_sql: bool) -> str:
    """SQL for a time range, with the dates of a partitioned table so that files are skipped."""
    times = time_range.condition(table.time, in_spark if spark_sql else in_delta)
    if "event_date" not in table.partitioning:
        return times
    return f"({time_range.date_condition('event_date')} AND {times})"


def _checked(rows: pa.Table, table: Table) -> pa.Table:
    """The rows in the table's declared columns and types. A row without its time has no place."""
    rows = rows.select(table.column_names).cast(table.arrow)
    if rows[table.time].null_count:
        raise ValueError(f"{table.name}: {rows[table.time].null_count} rows have no {table.time}")
    return rows


def _as_stored(rows: pa.Table, live: "DeltaTable") -> pa.Table:
    """The rows with the columns of the live table: one that was renamed since is null."""
    stored = pa.schema(live.schema())
    for field in stored:
        if field.name not in rows.column_names:
            rows = rows.append_column(field, pa.nulls(rows.num_rows, field.type))
    return rows.select(stored.names)
