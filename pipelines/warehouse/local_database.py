"""DuckDB over the Delta tables of a folder or an object store, in this process, without a JVM.

The database reads files of the warehouse alone, and nobody can change its settings. It has each
table and view under its name from when a query first names it.
"""

import shutil
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeVar

import duckdb
import pyarrow as pa

from quotaflow.pipelines.errors import ConfigError, NeverMadeError, QueryError
from quotaflow.pipelines.warehouse import arrow_types, damage, delta_files, views
from quotaflow.pipelines.warehouse.delta_files import DataFile
from quotaflow.pipelines.warehouse.kept_translations import in_duckdb
from quotaflow.pipelines.warehouse.place import Place
from quotaflow.pipelines.warehouse.query_times import Bounds
from quotaflow.pipelines.warehouse.reader import LATE
from quotaflow.pipelines.warehouse.sql_dialects import WITHIN
from quotaflow.pipelines.warehouse.sql_literals import literal
from quotaflow.pipelines.warehouse.time_ranges import Since
from quotaflow.schemas.migrations import SchemaVersionError, check_readable
from quotaflow.schemas.tables.catalog import FACTS, TABLES
from quotaflow.udfs.engine.connections import connect
from quotaflow.udfs.engine.database import dataset, files_sql, quoted_name
from quotaflow.udfs.engine.rule import Files

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from pyarrow.dataset import Dataset

_T = TypeVar("_T")
_BATCH_ROWS = 65_536
_INTERRUPT_EVERY_S = 0.1
_SMALL_BYTES = 256 * 1024
"""The most bytes of files of a table whose rows are read at once."""
_ANSWER = '"rows of the answer"'
_MAX_TEMP_GIB = 20
MACROS = """
CREATE MACRO unix_seconds(t) AS CAST(floor(epoch_us(t) / 1e6) AS BIGINT);
CREATE MACRO unix_millis(t) AS CAST(floor(epoch_us(t) / 1e3) AS BIGINT);
CREATE MACRO unix_micros(t) AS epoch_us(t);
CREATE MACRO array_join(x, separator) AS array_to_string(x, separator);
CREATE MACRO percentile_approx(x, p) AS quantile_disc(x, p);
"""
"""Functions of Spark that DuckDB lacks, for queries from Spark users."""


@dataclass(frozen=True)
class LocalDatabase:
    """Tables and views of one place, each table in the version that it has when first named.

    With `since`, views are about the time from then on: of facts and results they read no row
    before it, but of those that their heads say they need whole.
    """

    place: Place
    memory_mb: int
    timeout_s: int
    empty: frozenset[str] = frozenset()
    since: Since | None = None
    left_out: frozenset[str] = frozenset()
    opened: dict[str, "DeltaTable"] = field(default_factory=dict)
    _made: set[str] = field(default_factory=set)
    _datasets: "dict[str, Dataset]" = field(default_factory=dict)
    _opening: threading.RLock = field(default_factory=threading.RLock)
    stopped: threading.Event = field(default_factory=threading.Event)
    _clocks: "weakref.WeakSet[_Clock]" = field(default_factory=weakref.WeakSet)

    def is_made(self, table: str) -> bool:
        """Whether a table exists."""
        if table in self.left_out:
            return False
        return table in self.opened or self.place.is_made(table)

    def table(self, name: str) -> "DeltaTable":
        """A table as delta-rs opens it. Raises NeverMadeError, or an error of Delta."""
        if not self.is_made(name):
            raise NeverMadeError(name, self.place.root)
        with self._opening:
            if name not in self.opened:
                self.opened.setdefault(name, self.place.open(name))
            return self.opened[name]

    def open(self, names: frozenset[str], without: Iterable[str] = ()) -> set[str]:
        """Make sure that the database has these tables and views, and all that the views read.

        Tables `without`, of which `read` is to have some rows, are left out if no view needs them;
        returns those. A table that does not exist is empty if the views can do without it. Raises
        NeverMadeError for another one, and ConfigError for one of another schema version or that
        DuckDB cannot read.
        """
        for name in views.required(names):
            if name not in self.empty and not self.is_made(name):
                raise NeverMadeError(name, self.place.root)
        _, needed_views = views.read_by(names)
        within, whole = set[str](), {*names} - {*without}
        for view in (views.load()[name] for name in needed_views):
            events = views.events(view) if self.since else frozenset()
            within |= events
            whole |= {*views.sources(view)} - events
        with self._opening, self._engine_errors():
            for name in (name for name in TABLES if name in whole):
                self._add_table(name, name)
            for name in sorted(within):
                self._add_table(WITHIN.format(name), name, self.since)
            for view in (views.load()[name] for name in needed_views):
                events = views.events(view) if self.since else frozenset()
                self._add(view.name, partial(in_duckdb, view.sql, events))
        return {*without} - whole

    def open_existing(self, names: Iterable[str]) -> None:
        """The same for those of the tables that exist, and views that read only these."""
        for name in names:
            with suppress(NeverMadeError):
                self.open(frozenset([name]))

    def read(
        self, sql: str, bounds: Mapping[str, Bounds], *, is_short: bool = False
    ) -> pa.RecordBatchReader:
        """The rows of a query, in batches, while its time lasts. Raises duckdb.Error.

        The text must have been checked. `bounds`: the times of the rows that it reads of some
        tables, whose other files are left closed. Reading a batch can fail too. Raises QueryError
        after `stop`. A query `is_short` if its few rows are wanted at once: no EXPLAIN. Another
        one is planned twice, to know its columns and to read its rows.
        """
        cursor = self._cursor()
        with self._opening, self._engine_errors():
            for name, times in bounds.items():
                text = self._table_sql(name, self._files(name, times), cursor)
                cursor.execute(f'CREATE TEMP VIEW "{name}" AS {text}').fetchall()
        clock = _Clock(cursor, self.timeout_s, self._engine_errors)
        self._clocks.add(clock)
        if self.stopped.is_set():
            raise QueryError("stopped")
        if is_short:
            short = f"CREATE TEMP TABLE {_ANSWER} AS {sql}"
            clock.run(lambda: cursor.execute(short).fetchall())
            sql = f"FROM {_ANSWER}"
        # The relation is bound, and not executed yet.
        batches = clock.run(lambda: cursor.sql(sql).to_arrow_reader(_BATCH_ROWS))
        schema = arrow_types.plain_schema(batches.schema)
        return pa.RecordBatchReader.from_batches(schema, _plain(batches, schema, clock))

    def stop(self) -> None:
        """End queries that other threads run, and let no other begin."""
        self.stopped.set()
        for clock in list(self._clocks):
            clock.stop()

    @cached_property
    def _connection(self) -> duckdb.DuckDBPyConnection:
        connection = connect(
            memory_limit=f"{self.memory_mb}MiB",
            temp_directory=self._scratch,
            max_temp_directory_size=f"{_MAX_TEMP_GIB}GiB",
            allow_persistent_secrets=False,
        )
        for statement in (
            MACROS,
            f"SET allowed_directories = [{literal(self.place.root)}]",
            "SET enable_external_access = false",
            "SET lock_configuration = true",
        ):
            connection.execute(statement).fetchall()
        return connection

    @cached_property
    def _scratch(self) -> str:
        folder = tempfile.mkdtemp(prefix="quotaflow-")
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        return folder

    @contextmanager
    def _engine_errors(self) -> Iterator[None]:
        """Raise DamagedError instead of an error of DuckDB, if a file of a table is the cause."""
        try:
            yield
        except (duckdb.BinderException, duckdb.CatalogException, duckdb.InterruptException):
            raise
        except (duckdb.Error, OSError):
            if self.place.store is None:
                for name, table in list(self.opened.items()):
                    if damaged := damage.of_files(self.place.root, name, table):
                        raise damaged from None
            raise

    def _add(self, name: str, sql: Callable[[], str], kind: str = "VIEW") -> None:
        if name not in self._made:
            text = sql()
            self._cursor().execute(f'CREATE {kind} "{name}" AS {text}').fetchall()
            self._made.add(name)

    def _add_table(self, relation: str, name: str, since: Since | None = None) -> None:
        """Make a relation of a table's rows, or of those since a time.

        Few rows are read now: each query that names a view of files takes milliseconds to bind it.
        """
        if relation in self._made:
            return
        start = None if since is None else since.facts if name in FACTS else since.results
        files = self._files(name, Bounds(start))
        rows = self._table_sql(name, files)
        if start is not None:
            rows = f"SELECT * FROM ({rows}) WHERE {TABLES[name].time} >= {literal(start)}"
        is_small = sum(file.size_bytes for file in files) <= _SMALL_BYTES
        kind = "TABLE" if is_small and self.place.store is None else "VIEW"
        self._add(relation, lambda: rows, kind)

    def _files(self, name: str, bounds: Bounds) -> list[DataFile]:
        """The files of a table that may have rows of these times; none if it does not exist."""
        if not self.is_made(name):
            return []
        table, uri, root = self.table(name), self.place.path(name), self.place.root
        try:
            check_readable(name, table.metadata().configuration)
        except SchemaVersionError as error:
            raise ConfigError(str(error)) from None
        files = [
            file
            for file in delta_files.of_version(table, uri, TABLES[name].time)
            if file.may_have(bounds.start, bounds.end)
        ]
        if outside := [file.path for file in files if not _is_below(file.path, root)]:
            raise ConfigError(
                f"{uri} has a file outside of {root}, which is not read: {outside[0]}"
            )
        return files

    def _table_sql(
        self,
        name: str,
        files: Sequence[DataFile],
        cursor: duckdb.DuckDBPyConnection | None = None,
    ) -> str:
        """SQL for the rows of files: live columns, then declared ones that they lack, as null.

        With a cursor for that one alone.
        """
        if not self.is_made(name):
            return f"SELECT * FROM {files_sql(Files((), TABLES[name].arrow))}"
        paths = [file.path for file in files]
        schema = _with_declared(pa.schema(self.table(name).schema()), TABLES[name].arrow)
        chosen = Files(tuple(paths), schema, bool(TABLES[name].partitioning), self.place.store)
        is_stored = chosen.store and paths
        rows = self._objects(name, chosen, cursor) if is_stored else files_sql(chosen)
        columns = ", ".join(quoted_name(column.name) for column in schema)
        return f"SELECT {columns} FROM {rows}"

    def _objects(self, name: str, files: Files, cursor: duckdb.DuckDBPyConnection | None) -> str:
        """Make files of an object store known to one cursor, or to all later ones.

        Returns their name in SQL.
        """
        if cursor is not None:
            relation = f"some objects of {name}"
            cursor.register(relation, dataset(files))
        else:
            relation = f"objects of {name}"
            self._datasets[relation] = dataset(files)
        return quoted_name(relation)

    def _cursor(self) -> duckdb.DuckDBPyConnection:
        """A cursor that sees all relations: what Python registers is known to one cursor alone."""
        cursor = self._connection.cursor()
        for relation, rows in self._datasets.items():
            cursor.register(relation, rows)
        return cursor


def _is_below(path: str, root: str) -> bool:
    return path.startswith(f"{root}/") and ".." not in path.split("/")


def _with_declared(live: pa.Schema, declared: pa.Schema) -> pa.Schema:
    """The live columns, and those that the next writer adds to a table of an older release."""
    missing = [field for field in declared if field.name not in live.names]
    return pa.schema([*live, *missing])


def _plain(
    batches: pa.RecordBatchReader, schema: pa.Schema, clock: "_Clock"
) -> Iterator[pa.RecordBatch]:
    while True:
        batch = clock.run(lambda: next(batches, None))
        if batch is None:
            return
        yield arrow_types.plain_batch(batch, schema)


class _Clock:
    """Interrupts a query that works longer than its limit, or at Ctrl-C.

    The time of who reads it does not count. DuckDB does not notice signals while it works. So it
    works in another thread, and the caller's thread waits, where Python does notice them.
    """

    def __init__(
        self,
        cursor: duckdb.DuckDBPyConnection,
        limit_s: float,
        errors: Callable[[], AbstractContextManager[None]],
    ) -> None:
        self._errors = errors
        self.cursor = cursor
        self.limit_s = limit_s
        self.left_s = float(limit_s)
        self.is_stopped = False
        self._worker = ThreadPoolExecutor(1)
        self._future: Future[Any] | None = None

    def run(self, work: Callable[[], _T]) -> _T:
        """What `work` returns. Raises what it raises, and QueryError once the time is over."""
        started = time.monotonic()
        self._future = future = self._worker.submit(work)
        try:
            wait([future], 0 if self.is_stopped else max(self.left_s, 0))
            is_over = not future.done() and not self.is_stopped
        finally:
            self._interrupt(future)
            self._future = None
        self.left_s -= time.monotonic() - started
        if is_over:
            raise QueryError(LATE.format(self.limit_s))
        with self._errors():
            return future.result()

    def stop(self) -> None:
        """End what another thread runs."""
        self.is_stopped = True
        if (future := self._future) is not None:
            self._interrupt(future)

    def _interrupt(self, future: Future[Any]) -> None:
        # A query that has not begun yet forgets an interrupt.
        while not future.done():
            self.cursor.interrupt()
            wait([future], _INTERRUPT_EVERY_S)
