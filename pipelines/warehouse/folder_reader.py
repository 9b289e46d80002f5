"""Reads Delta tables and views of a folder or an object store without a JVM, by SQL of DuckDB."""

import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from quotaflow.pipelines.errors import ConfigError
from quotaflow.pipelines.warehouse import views
from quotaflow.pipelines.warehouse.engine_errors import engine_errors
from quotaflow.pipelines.warehouse.reader import TableSummary
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas import ddl
from quotaflow.schemas.migrations import SchemaVersionError, check_readable
from quotaflow.schemas.tables.catalog import TABLES

if TYPE_CHECKING:
    import pyarrow as pa

    from quotaflow.pipelines.warehouse.delta_files import RecordedExtent
    from quotaflow.pipelines.warehouse.local_database import LocalDatabase
    from quotaflow.pipelines.warehouse.local_tables import FolderTables
    from quotaflow.pipelines.warehouse.query_times import Bounds
    from quotaflow.pipelines.warehouse.time_ranges import Since

_EXTENTS_AT_ONCE = 4


@dataclass(frozen=True)
class FolderReader:
    """Answers queries over the tables of a warehouse; a table is opened when a query names it."""

    warehouse: Warehouse
    empty: frozenset[str] = frozenset()
    left_out: frozenset[str] = frozenset()
    _databases: "list[LocalDatabase]" = field(
        default_factory=list, init=False, repr=False, compare=False
    )
    _opened_tables: "list[FolderTables]" = field(
        default_factory=list, init=False, repr=False, compare=False
    )
    _opening: threading.RLock = field(
        default_factory=threading.RLock, init=False, repr=False, compare=False
    )
    _stopped: threading.Event = field(
        default_factory=threading.Event, init=False, repr=False, compare=False
    )

    @property
    def threads(self) -> int:
        """Two: one core plans each query, which takes most of its time."""
        return 2

    @property
    def _tables(self) -> "FolderTables":
        """One set of open tables, whichever thread needs it first."""
        from quotaflow.pipelines.warehouse.local_tables import FolderTables  # noqa: PLC0415  as below

        with self._opening:
            if not self._opened_tables:
                self._opened_tables.append(FolderTables(self.warehouse.place, self.left_out))
            return self._opened_tables[0]

    @property
    def _database(self) -> "LocalDatabase":
        """The database of these tables, which answers all queries."""
        from quotaflow.pipelines.warehouse.local_database import (  # noqa: PLC0415  imports DuckDB
            LocalDatabase,
        )

        conf = self.warehouse.conf
        limits = (conf.query_memory_mb, conf.query_timeout_s)
        with self._opening:
            if not self._databases:
                self._databases.append(
                    LocalDatabase(self._tables, *limits, self.empty, self._stopped)
                )
            return self._databases[0]

    def stop(self) -> None:
        """End queries that other threads run, and let no other begin: each is a QueryError."""
        self._stopped.set()
        with self._opening:
            opened = list(self._databases)
        for database in opened:
            database.stop()

    def is_made(self, table: str) -> bool:
        """Whether a table exists."""
        return table not in self.left_out and self.warehouse.place.is_made(table)

    def with_empty(self, names: frozenset[str]) -> "FolderReader":
        """The same tables; each of `names` that does not exist has no rows instead of an error."""
        return replace(self, empty=self.left_out | names)

    def without(self, table: str) -> "FolderReader":
        """The same tables; this one counts as one without rows."""
        only = frozenset([table])
        return replace(self, empty=self.empty | only, left_out=self.left_out | only)

    def table_id(self, table: str) -> str:
        """The id of a table in checkpoints of queries. A table made again has another id."""
        with engine_errors(table):
            return str(self._tables.table(table).metadata().id)

    def types(self, table: str) -> dict[str, str]:
        """The type of each column of the live table, as `ddl.live_types`."""
        with engine_errors(table):
            return ddl.live_types(self._tables.table(table))

    def versions(self) -> dict[str, str]:
        """Each table that exists, with another text for each version."""
        with engine_errors("versions"):
            place = self.warehouse.place
            return {name: place.version(name) for name in TABLES if self.is_made(name)}

    def extents(self, names: Iterable[str]) -> dict[str, TableSummary]:
        """Rows, newest event_time and bytes of the newest version of each table.

        By its log, where that has them: then the time may lack less than a millisecond.
        """
        every = list(names)
        with ThreadPoolExecutor(_EXTENTS_AT_ONCE, "extents") as pool:
            return dict(zip(every, pool.map(self._extent, every), strict=True))

    def _extent(self, name: str) -> TableSummary:
        if not self.is_made(name):
            return TableSummary()
        time = TABLES[name].time
        if (recorded := self._recorded(name, time)) is not None:
            return TableSummary(recorded.rows, recorded.last_us, recorded.size_bytes)
        sql = f"SELECT count(*) AS rows, max({time}) AS last FROM {name}"
        with engine_errors(sql):
            rows, last = self.query(sql).read_all().columns
            actions: Any = self._tables.table(name).get_add_actions(flatten=True)
            sizes = actions["size_bytes"].to_pylist()
        # As a number: a wrong clock may give years that Python's datetime does not have.
        return TableSummary(rows[0].as_py(), last.cast("int64")[0].as_py(), sum(sizes))

    def _recorded(self, name: str, time: str) -> "RecordedExtent | None":
        from quotaflow.pipelines.warehouse import delta_files  # noqa: PLC0415  imports pyarrow

        place = self.warehouse.place
        with engine_errors(name):
            table = place.open(name)
            try:
                check_readable(name, table.metadata().configuration)
            except SchemaVersionError as error:
                raise ConfigError(str(error)) from None
            return delta_files.recorded_extent(table, place.path(name), time)

    def expect(self, names: Iterable[str]) -> None:
        """Open the database, and read the logs of tables, in threads. Errors come with queries."""
        if self.warehouse.place.store is not None:
            return
        pool, tables = ThreadPoolExecutor(self.threads, "open"), self._tables
        pool.submit(lambda: self._database.parser)
        for name in views.read_by(names)[0]:
            pool.submit(tables.look_up, name)
        pool.shutdown(wait=False)

    def gather(self, names: Iterable[str], since: "Since") -> None:
        """Nothing: files are near."""

    def gather_for(self, queries: Iterable[str]) -> None:
        """Nothing, as above."""

    def query(self, sql: str, since: "Since | None" = None) -> "pa.RecordBatchReader":
        """The rows of one query over tables and views, batch by batch.

        With `since`, its views are about the time from then on. Raises ConfigError for a text that
        is no query or that may not run, and for a table of another schema version, QueryError, and
        NeverMadeError if the query reads a table that does not exist yet. Reading a batch can still
        fail: do it within `engine_errors`.
        """
        with engine_errors(sql):
            database, used = self._opened(sql, since)
            return database.read(sql, used, since)

    def rows(self, sql: str, since: "Since | None" = None) -> list[dict[str, Any]]:
        """All rows of a query that limits their number: with arguments and errors of `query`."""
        with engine_errors(sql):
            database, used = self._opened(sql, since)
            return database.rows(sql, used, since)

    def _opened(self, sql: str, since: "Since | None") -> "tuple[LocalDatabase, dict[str, Bounds]]":
        """The database with all that a query reads, and of which tables it reads some files."""
        from quotaflow.pipelines.warehouse import query_check  # noqa: PLC0415  imports DuckDB

        database, names = self._database, [*TABLES, *views.load()]
        query = query_check.checked(sql, frozenset(names), database.parser)
        database.open_existing(names if query.describes_all else query.perhaps, since)
        bounded = database.open(query.names, query.bounds, since)
        return database, {name: query.bounds[name] for name in bounded}

    def read(self, sql: str, schema: "pa.Schema") -> "pa.Table":
        """The same rows as Arrow, in columns of these names and types."""
        with engine_errors(sql):
            return self.query(sql).read_all().select(schema.names).cast(schema)
