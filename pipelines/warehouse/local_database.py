"""DuckDB over the Delta tables of a folder or an object store, in this process, without a JVM.

The database reads files of the warehouse alone, and nobody can change its settings. It has each
table and view under its name from when a query first names it.
"""

import shutil
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import count
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

import duckdb
import pyarrow as pa

from quotaflow.pipelines.errors import NeverMadeError, QueryError
from quotaflow.pipelines.warehouse import arrow_types, python_times, views
from quotaflow.pipelines.warehouse.kept_translations import in_duckdb
from quotaflow.pipelines.warehouse.local_tables import LocalTables, Part
from quotaflow.pipelines.warehouse.once import Once
from quotaflow.pipelines.warehouse.python_times import rows_of
from quotaflow.pipelines.warehouse.query_times import Bounds
from quotaflow.pipelines.warehouse.reader import LATE
from quotaflow.pipelines.warehouse.sql_dialects import WITHIN
from quotaflow.pipelines.warehouse.sql_literals import literal
from quotaflow.pipelines.warehouse.time_ranges import Since
from quotaflow.schemas.tables.catalog import FACTS, TABLES
from quotaflow.schemas.view import View
from quotaflow.udfs.engine.connections import connect

if TYPE_CHECKING:
    from pyarrow.dataset import Dataset

_T = TypeVar("_T")
_BATCH_ROWS = 65_536
_INTERRUPT_EVERY_S = 0.1
_ROWS_OF = "rows of {}"
_OF_TABLES = Part(lambda _: "")
"""The rows of a view: none of its own."""
_MAIN = "main"
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
    """Tables and views of one place.

    With `since`, views are about the time from then on: of facts and results they read no row
    before it, but of those that their heads say they need whole. Views of each such time are in a
    schema of their own, tables in one for all: to start DuckDB takes longer than most queries.
    """

    tables: LocalTables
    memory_mb: int
    timeout_s: int
    empty: frozenset[str] = frozenset()
    stopped: threading.Event = field(default_factory=threading.Event)
    _made: Once[tuple[str, str], None] = field(default_factory=Once)
    _schemas: Once[Since, str] = field(default_factory=Once)
    _numbers: Iterator[int] = field(default_factory=count)
    _registered: "dict[str, Dataset | pa.Table]" = field(default_factory=dict)
    _opening: threading.Lock = field(default_factory=threading.Lock)
    _clocks: "weakref.WeakSet[_Clock]" = field(default_factory=weakref.WeakSet)

    def open(
        self,
        names: frozenset[str],
        bounds: Mapping[str, Bounds] = MappingProxyType({}),
        since: Since | None = None,
    ) -> set[str]:
        """Make sure that the database has these tables and views, and all that the views read.

        Other threads may open others meanwhile. Tables of whose `bounds` files stay closed, so that
        `read` opens the others, are left out if no view needs them; returns those. A table that
        does not exist is empty if the views can do without it. Raises NeverMadeError for another
        one, and ConfigError for one of another schema version or that DuckDB cannot read.
        """
        for name in views.required(names):
            if name not in self.empty and not self.tables.is_made(name):
                raise NeverMadeError(name, self.tables.root)
        _, needed_views = views.read_by(names)
        with self._engine_errors():
            partly = {name for name, times in bounds.items() if self.tables.leaves_out(name, times)}
        within, whole = set[str](), {*names} - partly
        for view in (views.load()[name] for name in needed_views):
            events = views.events(view) if since else frozenset()
            within |= events
            whole |= {*views.sources(view)} - events
        with self._engine_errors():
            for name in (name for name in TABLES if name in whole):
                self._add(name, None, partial(self._rows_of, name, name, None))
            for name in sorted(within):
                relation = WITHIN.format(name)
                self._add(relation, since, partial(self._rows_of, relation, name, since))
            for view in (views.load()[name] for name in needed_views):
                self._add(view.name, since, partial(_text, view, since))
        return partly - whole

    def open_existing(self, names: Iterable[str], since: Since | None = None) -> None:
        """The same for those of the tables that exist, and views that read only these."""
        for name in names:
            with suppress(NeverMadeError):
                self.open(frozenset([name]), since=since)

    def rows(
        self, sql: str, bounds: Mapping[str, Bounds], since: Since | None = None
    ) -> list[dict[str, Any]]:
        """The few rows of a query, planned once: with arguments and errors of `read`."""
        cursor, clock = self._cursor_of(bounds, since)
        rows = clock.run(lambda: python_times.own_rows(cursor.execute(sql)))
        return rows_of(self.read(sql, bounds, since).read_all()) if rows is None else rows

    def read(
        self, sql: str, bounds: Mapping[str, Bounds], since: Since | None = None
    ) -> pa.RecordBatchReader:
        """The rows of a query, in batches, while its time lasts. Raises duckdb.Error.

        The text must have been checked. `bounds`: the times of the rows that it reads of some
        tables, whose other files are left closed. It is planned twice, to know its columns and to
        read its rows. Reading a batch can fail too. Raises QueryError after `stop`.
        """
        cursor, clock = self._cursor_of(bounds, since)
        # The relation is bound, and not executed yet.
        batches = clock.run(lambda: cursor.sql(sql).to_arrow_reader(_BATCH_ROWS))
        schema = arrow_types.plain_schema(batches.schema)
        return pa.RecordBatchReader.from_batches(schema, _plain(batches, schema, clock))

    def _cursor_of(
        self, bounds: Mapping[str, Bounds], since: Since | None
    ) -> tuple[duckdb.DuckDBPyConnection, "_Clock"]:
        """What runs one query."""
        cursor = self._cursor(since)
        with self._engine_errors():
            for name, times in bounds.items():
                part, relation = self.tables.part(name, times), f"some rows of {name}"
                if part.rows is not None:
                    cursor.register(relation, part.rows)
                text = part.sql(relation)
                cursor.execute(f'CREATE TEMP VIEW "{name}" AS {text}').fetchall()
        clock = _Clock(cursor, self.timeout_s, self._engine_errors)
        self._clocks.add(clock)
        if self.stopped.is_set():
            raise QueryError("stopped")
        return cursor, clock

    def stop(self) -> None:
        """End queries that other threads run, and let no other begin."""
        self.stopped.set()
        for clock in list(self._clocks):
            clock.stop()

    @property
    def parser(self) -> duckdb.DuckDBPyConnection:
        """What parses a query."""
        with self._opening:
            return self._connection.cursor()

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
            f"SET allowed_directories = [{', '.join(map(literal, self.tables.folders))}]",
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
            if damaged := self.tables.damaged():
                raise damaged from None
            raise

    def _add(self, name: str, since: Since | None, made: Callable[[], tuple[str, Part]]) -> None:
        """Make a relation, once, of SQL and of what that names."""

        def add() -> None:
            (text, part), cursor = made(), self._cursor(since)
            if part.rows is not None and part.is_small:
                cursor.register(_ROWS_OF.format(name), part.rows)
            kind = "TABLE" if part.is_small else "VIEW"
            cursor.execute(f'CREATE {kind} "{name}" AS {text}').fetchall()

        self._made.get((self._schema(since), name), add)

    def _rows_of(self, relation: str, name: str, since: Since | None) -> tuple[str, Part]:
        """SQL for a table's rows, or for those since a time.

        Few rows are read now: each query that names a view of files takes milliseconds to bind it.
        """
        start = None if since is None else since.facts if name in FACTS else since.results
        part, registered = self.tables.part(name, Bounds(start)), _ROWS_OF.format(relation)
        if part.rows is not None and not part.is_small:
            registered = f"{registered} in {self._schema(since)}"
            self._registered[registered] = part.rows
        rows = part.sql(registered)
        if start is not None:
            rows = f"SELECT * FROM ({rows}) WHERE {TABLES[name].time} >= {literal(start)}"
        return rows, part

    def _schema(self, since: Since | None) -> str:
        """The schema of the views about the time from then on, made once."""

        def make() -> str:
            name = f"since_{next(self._numbers)}"
            self._cursor().execute(f"CREATE SCHEMA {name}").fetchall()
            return name

        return _MAIN if since is None else self._schemas.get(since, make)

    def _cursor(self, since: Since | None = None) -> duckdb.DuckDBPyConnection:
        """A cursor that sees all relations: what Python registers is known to one cursor alone."""
        with self._opening:
            cursor, registered = self._connection.cursor(), list(self._registered.items())
        for relation, rows in registered:
            cursor.register(relation, rows)
        if since is not None:
            cursor.execute(f"SET search_path = '{self._schema(since)},{_MAIN}'").fetchall()
        return cursor


def _text(view: View, since: Since | None) -> tuple[str, Part]:
    """The SQL of a view, which makes no rows of its own."""
    return in_duckdb(view.sql, views.events(view) if since else frozenset()), _OF_TABLES


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
        try:
            with self._errors():
                return future.result()
        finally:
            # It has the error, whose traceback has this frame: a cycle that keeps the database.
            del future

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
