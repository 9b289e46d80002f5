"""Writes Arrow rows into tables: by delta-rs in a folder or an object store, by Spark in a catalog.

delta-rs replaces rows in milliseconds where Spark takes a second, so it writes what the driver
has as Arrow. It does not skip a batch that it has written: that is checked here. It takes only
times in microseconds and UTC, because from others it makes a table that Spark cannot read.

On a plain file system Spark and delta-rs could overwrite each other's commits. So queries that run
at the same time write a folder's table by one of the two:

- Spark: `client_metrics` where conf reads a Collector's topic, and in a rebuild;
- delta-rs: all other tables, and `client_metrics` elsewhere.

In an object store delta-rs makes all commits (`place.py`).

`Warehouse.ensure` uses both in tables of either kind, one after the other, and upkeep delta-rs.
They run under the warehouse's lock, before queries start or without any. A table with a feature
that delta-rs does not know is written by Spark alone.

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

from quotaflow.pipelines.errors import JobError
from quotaflow.pipelines.spark import frames
from quotaflow.pipelines.warehouse import delta_files, folder_tables, private_folder
from quotaflow.pipelines.warehouse.delta_files import DataFile
from quotaflow.pipelines.warehouse.place import Place
from quotaflow.pipelines.warehouse.time_ranges import EVER, TimeRange, any_of, in_delta, in_spark
from quotaflow.pipelines.warehouse.warehouse import OpenSession, Warehouse
from quotaflow.schemas.table import Table
from quotaflow.udfs.counted import counted

if TYPE_CHECKING:
    from deltalake import CommitProperties, DeltaTable
    from deltalake.transaction import RemoveAction
    from pyspark.sql import DataFrameWriter

_LOCK, _LOCKS = ".writer.lock", "writers"
ROWS = "quotaflowRows"
"""What a commit of files that tasks wrote says in its metadata: the number of their rows."""


@dataclass(frozen=True, slots=True)
class Replaced:
    """The rows of a table that a write replaces: those of time ranges within a scope (SQL).

    Without ranges those of all time.
    """

    ranges: Sequence[TimeRange] | None
    scope: str = "true"

    def condition(self, table: Table, *, spark_sql: bool) -> str:
        """SQL that is true for these rows."""
        if self.ranges is None:
            return f"({self.scope}) AND {table.time} IS NOT NULL"
        times = any_of(_dated(each, table, spark_sql=spark_sql) for each in self.ranges)
        return f"({self.scope}) AND ({times})"

    def may_be_in(self, file: DataFile) -> bool:
        """Whether a file may have such rows."""
        return self.ranges is None or any(file.may_have(r.start, r.end) for r in self.ranges)


ALL_ROWS = Replaced((EVER,))
"""Replaces a whole table, of which no writer looks at a row."""


@dataclass(frozen=True, slots=True)
class AppId:
    """The name under which a query's batch writes to a table at most once."""

    name: str
    version: int
    metadata: str


def replace(
    open_session: OpenSession,
    warehouse: Warehouse,
    table: Table,
    rows: pa.Table,
    old: Replaced,
    *,
    app: AppId | None = None,
) -> None:
    """Replace old rows by these, which are all within the ranges and the scope.

    At most once per name and version of `app`. Raises JobError if delta-rs cannot write.
    """
    rows = _checked(rows, table)
    with _one_writer(warehouse, table) as live:
        if live is not None:
            _replace_by_delta_rs(live, warehouse.place, table, rows, old, app=app)
            return
        writer = frames.from_arrow(open_session(), rows).write.format("delta").mode("overwrite")
        where = "true" if old == ALL_ROWS else old.condition(table, spark_sql=True)
        writer = writer.option("replaceWhere", where)
        warehouse.write(named(writer, app), table.name)


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
            _commit_once(live, warehouse.place, table, rows, app=app, mode="append")
            return
        writer = frames.from_arrow(open_session(), rows).write.format("delta").mode("append")
        warehouse.write(named(writer, app), table.name)


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
            _commit_files(live, warehouse.place, table, files, app)
            return
        paths = [str(warehouse.folder(table.name) / str(file["path"])) for file in files]
        rows = open_session().read.schema(table.sql_schema).parquet(*paths)
        warehouse.write(named(rows.write.format("delta").mode("append"), app), table.name)


def rewrite(
    warehouse: Warehouse,
    table: Table,
    file: Mapping[str, Any],
    removed: Mapping[str, int],
    partition: Mapping[str, str | None],
) -> bool:
    """Put a file (a row of `table_files.FILE`) in the place of others that have the same rows.

    `removed` are their paths in the table and their bytes. False, and no commit, if the table lacks
    one of them by now, or delta-rs does not write it. Raises JobError if the commit fails.

    The file counts as written when the newest of them was. Streams that begin at a table's present
    version read its files by that time, and would read these rows after later ones.
    """
    from deltalake.transaction import AddAction, RemoveAction  # noqa: PLC0415  as above

    with _one_writer(warehouse, table) as live:
        written_ms = {} if live is None else _written_ms(live)
        if live is None or not removed.keys() <= written_ms.keys():
            return False
        at, newest_ms = time.time_ns() // 1_000_000, max(written_ms[path] for path in removed)
        actions: list[AddAction | RemoveAction] = [
            AddAction(file["path"], file["size_bytes"], partition, newest_ms, False, file["stats"]),
            *(
                RemoveAction(path, False, at, size=size, partition_values=dict(partition))
                for path, size in removed.items()
            ),
        ]
        with folder_tables.as_job_error(table.name):
            folder_tables.drop_checksum(warehouse.place, table.name)
            live.create_write_transaction(
                actions, "append", live.schema(), partition_by=list(partition) or None
            )
    return True


def _written_ms(live: "DeltaTable") -> dict[str, int]:
    """The paths of the table's files, as its log has them, and when each was written."""
    stream: Any = live.get_add_actions()
    files = pa.RecordBatchReader.from_stream(stream).read_all()
    written = files["modification_time"].cast(pa.timestamp("ms")).cast(pa.int64())
    return dict(zip(files["path"].to_pylist(), written.to_pylist(), strict=True))


def named(writer: "DataFrameWriter", app: AppId | None) -> "DataFrameWriter":
    """Spark's writer under that name, if there is one."""
    if app is None:
        return writer
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
    path = _lock_file(warehouse, table)
    with folder_tables.as_job_error(table.name):
        opened = path.open("a", encoding="utf-8")
    with opened as file:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX)
        yield _live(warehouse, table)


def _lock_file(warehouse: Warehouse, table: Table) -> Path:
    if warehouse.conf.is_store:
        folder = warehouse.conf.state_folder / _LOCKS
        private_folder.make(folder)
        return folder / f"{table.name}{_LOCK}"
    return warehouse.folder(table.name) / "_delta_log" / _LOCK


def _live(warehouse: Warehouse, table: Table) -> "DeltaTable | None":
    with folder_tables.as_job_error(table.name):
        live = warehouse.place.open(table.name)
    if warehouse.conf.is_store and not folder_tables.is_plain(live):
        raise JobError(
            f"{table.name}: the table has a Delta feature that delta-rs cannot write, and nothing "
            "else writes to an object store: drop it with the client that added it"
        )
    return live if folder_tables.is_plain(live) else None


def _replace_by_delta_rs(
    live: "DeltaTable",
    place: Place,
    table: Table,
    rows: pa.Table,
    old: Replaced,
    *,
    app: AppId | None,
) -> None:
    if not rows.num_rows:
        files = delta_files.of_version(live, place.path(table.name), table.time)
        if not any(old.may_be_in(file) for file in files):
            return
    # With a condition delta-rs reads the files, which takes longer than to write few rows.
    where = None if old == ALL_ROWS else old.condition(table, spark_sql=False)
    _commit_once(live, place, table, rows, app=app, mode="overwrite", predicate=where)


def _commit_once(
    live: "DeltaTable",
    place: Place,
    table: Table,
    rows: pa.Table,
    *,
    app: AppId | None,
    **how: Any,
) -> None:
    from deltalake import write_deltalake  # noqa: PLC0415  --help need not wait for it

    if app is not None:
        if _is_written(live, app):
            return
        how["commit_properties"] = _properties(app)
    with folder_tables.as_job_error(table.name):
        folder_tables.drop_checksum(place, table.name)
        write_deltalake(live, _as_stored(rows, live), **how)


def _commit_files(
    live: "DeltaTable", place: Place, table: Table, files: Sequence[Mapping[str, Any]], app: AppId
) -> None:
    from deltalake.transaction import AddAction  # noqa: PLC0415  as above

    if _is_written(live, app):
        return
    now_ms = time.time_ns() // 1_000_000
    actions: list[AddAction | RemoveAction] = [
        AddAction(file["path"], file["size_bytes"], {}, now_ms, True, file["stats"])
        for file in files
    ]
    with folder_tables.as_job_error(table.name):
        folder_tables.drop_checksum(place, table.name)
        live.create_write_transaction(
            actions,
            "append",
            live.schema(),
            commit_properties=_properties(app, sum(file["rows"] for file in files)),
        )


def _is_written(live: "DeltaTable", app: AppId) -> bool:
    """Only one batch of a query runs at a time, so nobody commits this version in between."""
    written = live.transaction_version(app.name)
    return written is not None and written >= app.version


def _properties(app: AppId, rows: int | None = None) -> "CommitProperties":
    from deltalake import CommitProperties, Transaction  # noqa: PLC0415  as above

    of_rows = {} if rows is None else {ROWS: str(rows)}
    return CommitProperties(
        custom_metadata={"userMetadata": app.metadata, **of_rows},
        app_transactions=[Transaction(app.name, app.version)],
    )


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
        raise ValueError(
            f"{table.name}: no {table.time} in {counted(rows[table.time].null_count, 'row')}"
        )
    return rows


def _as_stored(rows: pa.Table, live: "DeltaTable") -> pa.Table:
    """The rows as the live table has them: a column or field that was renamed since is null."""
    stored = pa.schema(live.schema())
    arrays = [
        _with_fields(rows[field.name], field.type)
        if field.name in rows.column_names
        else pa.nulls(rows.num_rows, field.type)
        for field in stored
    ]
    return pa.table(arrays, names=stored.names)


def _with_fields(column: pa.ChunkedArray, stored: pa.DataType) -> pa.ChunkedArray:
    """A list of structs with the fields of the stored type; another column as it is."""
    kinds = (column.type, stored)
    if not all(pa.types.is_list(k) and pa.types.is_struct(k.value_type) for k in kinds):
        return column
    names = [[field.name for field in kind.value_type] for kind in kinds]
    return column if names[0] == names[1] else column.cast(stored)
