"""Reads the tables and views of a catalog's schema, by statements of Spark's SQL.

A statement names all that it reads: a view is a WITH clause, and a table has its full name. So it
needs no state in a session, and any engine of a catalog can run it.
"""

import re
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol

from quotaflow.pipelines.errors import ConfigError, NeverMadeError, WrongQueryError
from quotaflow.pipelines.warehouse import sql_dialects, views
from quotaflow.pipelines.warehouse.engine_errors import engine_errors
from quotaflow.pipelines.warehouse.python_times import microseconds, rows_of
from quotaflow.pipelines.warehouse.reader import TableSummary
from quotaflow.pipelines.warehouse.sql_literals import literal
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.migrations import SchemaVersionError, check_readable
from quotaflow.schemas.tables.catalog import EVENTS, FACTS, TABLES

if TYPE_CHECKING:
    import pyarrow as pa

    from quotaflow.pipelines.warehouse.gathered import Gathered
    from quotaflow.pipelines.warehouse.local_database import LocalDatabase
    from quotaflow.pipelines.warehouse.query_check import Query
    from quotaflow.pipelines.warehouse.query_times import Bounds
    from quotaflow.pipelines.warehouse.time_ranges import Since

WHOLE = datetime.min.replace(tzinfo=UTC)
"""The time from which all rows of a table are."""
_AT_ONCE, _LISTED_FOR_S = 8, 30.0
_OF_RUNS = ("query_progress", "answer_state", "plans", "config_changes", "quality_results")
_START = r"(?:\s|--[^\n]*(?:\n|$)|/\*.*?\*/)*"
_WITH = re.compile(_START + r"with\s+(recursive\s)?", re.I | re.S)
_QUERY = re.compile(_START + r"[\s(]*(?:select|with|values|from|table)\b", re.I | re.S)
_READ = re.compile(r"\b(FROM|JOIN) (\w+)\b(?!\.)(\s+AS\b)?")


class CatalogEngine(Protocol):
    """Runs statements over the tables of a catalog."""

    def run(self, statement: str) -> "pa.Table":
        """All rows of a statement. Raises QueryError; WrongQueryError for what cannot run at all.

        Times are in UTC.
        """
        ...

    def stop(self) -> None:
        """End statements that other threads run, and let no other begin: each is a QueryError."""
        ...


@dataclass
class _Local:
    """What was gathered, and databases over it, by the tables that may be empty."""

    gathered: dict[str, "Gathered"] = field(default_factory=dict)
    databases: "dict[frozenset[str], LocalDatabase]" = field(default_factory=dict)
    lock: threading.RLock = field(default_factory=threading.RLock)
    stopped: threading.Event = field(default_factory=threading.Event)


@dataclass(frozen=True)
class CatalogReader:
    """Answers queries over the tables of a catalog's schema.

    What is gathered is answered by DuckDB in this process, anything else by a statement.
    """

    warehouse: Warehouse
    engine: CatalogEngine
    empty: frozenset[str] = frozenset()
    threads: int = _AT_ONCE
    _made: set[str] = field(default_factory=set, repr=False, compare=False)
    _local: "_Local" = field(default_factory=_Local, repr=False, compare=False)
    _listing: list[float] = field(
        default_factory=lambda: [-_LISTED_FOR_S], repr=False, compare=False
    )
    _listing_lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def rows(self, sql: str, since: "Since | None" = None) -> list[dict[str, Any]]:
        """All rows of a query that limits their number: with arguments and errors of `query`."""
        query = self._checked(sql)
        if (database := self._gathered(sql, query, since)) is not None:
            with engine_errors(sql):
                return database.rows(sql, {}, since)
        return rows_of(self._run(sql, query, since))

    def read(self, sql: str, schema: "pa.Schema") -> "pa.Table":
        """The same rows as Arrow, in columns of these names and types."""
        return self._answer(sql).select(schema.names).cast(schema)

    def query(self, sql: str, since: "Since | None" = None) -> "pa.RecordBatchReader":
        """The rows of one query over tables and views.

        With `since`, its views are about the time from then on. Raises ConfigError for a text that
        is no query or that may not run, and for a table of another schema version, QueryError, and
        NeverMadeError if the query reads a table that does not exist yet.
        """
        return self._answer(sql, since).to_reader()

    def is_made(self, table: str) -> bool:
        """Whether a table exists."""
        with self._listing_lock:
            if table not in self._made and time.monotonic() - self._listing[0] > _LISTED_FOR_S:
                self._made.update(listed(self.warehouse, self.engine.run))
                self._listing[0] = time.monotonic()
            return table in self._made

    def with_empty(self, names: frozenset[str]) -> "CatalogReader":
        """The same tables; each of `names` that does not exist has no rows instead of an error."""
        return replace(self, empty=names)

    def types(self, table: str) -> dict[str, str]:
        """The type of each column of the live table, as `ddl.live_types`."""
        described = rows_of(self.engine.run(f"DESCRIBE TABLE {self._target(table)}"))
        named = [row["col_name"] for row in described]
        # Below the columns follow facts about partitions.
        end = next((i for i, name in enumerate(named) if not name or name.startswith("#")), None)
        return {row["col_name"]: row["data_type"] for row in described[:end]}

    def extents(self, names: Iterable[str]) -> dict[str, TableSummary]:
        """Rows, newest event_time and bytes of the newest version of each table."""
        summaries = dict.fromkeys(names, TableSummary())
        made = [name for name in summaries if self.is_made(name)]
        if not made:
            return summaries
        counts = " UNION ALL ".join(
            f"SELECT '{name}' AS name, count(*) AS n, max({TABLES[name].time}) AS last "
            f"FROM {self.warehouse.target(name)}"
            for name in made
        )
        with ThreadPoolExecutor(_AT_ONCE, "details") as pool:
            sizes = pool.map(self._size, made)
            counted = self.engine.run(counts)
            sized = dict(zip(made, sizes, strict=True))
        columns = (counted["name"].to_pylist(), counted["n"].to_pylist())
        for name, n, last in zip(*columns, microseconds(counted["last"]), strict=True):
            summaries[name] = TableSummary(n, last, sized[name])
        return summaries

    def table_id(self, table: str) -> str:
        """The id of a table in checkpoints of queries. A table made again has another id."""
        return str(self._detail(table)["id"])

    def versions(self) -> dict[str, str]:
        """The newest time of each table to which every run adds rows.

        To ask a hundred tables for the newest version of each takes a hundred statements.
        """
        made = [name for name in _OF_RUNS if self.is_made(name)]
        if not made:
            return {}
        newest = self.engine.run(
            " UNION ALL ".join(
                f"SELECT '{name}' AS name, CAST(max({TABLES[name].time}) AS STRING) AS newest "
                f"FROM {self.warehouse.target(name)}"
                for name in made
            )
        )
        return {row["name"]: row["newest"] or "" for row in rows_of(newest)}

    def expect(self, names: Iterable[str]) -> None:
        """Nothing: `gather` asks for all of them."""

    def gather(self, names: Iterable[str], since: "Since") -> None:
        """Read tables of few rows at once, by one statement, for questions that come."""
        from quotaflow.pipelines.warehouse.query_times import Bounds  # noqa: PLC0415  imports DuckDB

        named = frozenset(names)
        bounds = {name: Bounds(_start(name, since)) for name in named & EVENTS}
        self._gather(_starts(named, bounds, since))

    def gather_for(self, queries: Iterable[str]) -> None:
        """The same for all that these queries read."""
        from quotaflow.pipelines.warehouse import query_check  # noqa: PLC0415  imports DuckDB

        earliest: dict[str, datetime] = {}
        for sql in queries:
            query = query_check.checked(sql, frozenset([*TABLES, *views.load()]))
            for name, start in _starts(query.names, query.bounds, None).items():
                earliest[name] = min(earliest.get(name, start), start)
        self._gather(earliest)

    def _gather(self, earliest: Mapping[str, datetime]) -> None:
        from quotaflow.pipelines.warehouse import gathered  # noqa: PLC0415  imports DuckDB

        with self._local.lock:
            starts = {
                name: (start, rows_since(self.warehouse, name, start))
                for name, start in earliest.items()
                if self.is_made(name) and gathered.is_new(self._local.gathered.get(name), start)
            }
            if starts:
                self._local.gathered |= gathered.gather(self.engine.run, starts)
                self._local.databases.clear()

    def stop(self) -> None:
        """End queries that other threads run, and let no other begin: each is a QueryError."""
        self._local.stopped.set()
        # Also a statement that gathers, and so has the lock.
        self.engine.stop()
        with self._local.lock:
            opened = list(self._local.databases.values())
        for database in opened:
            database.stop()

    def _size(self, name: str) -> int:
        return int(self._detail(name)["sizeInBytes"])

    def _detail(self, name: str) -> dict[str, Any]:
        (row,) = rows_of(self.engine.run(f"DESCRIBE DETAIL {self._target(name)}"))
        return row

    def _target(self, table: str) -> str:
        if not self.is_made(table):
            raise NeverMadeError(table, str(self.warehouse.conf.catalog_schema))
        return self.warehouse.target(table)

    def _answer(self, sql: str, since: "Since | None" = None) -> "pa.Table":
        query = self._checked(sql)
        if (database := self._gathered(sql, query, since)) is not None:
            with engine_errors(sql):
                return database.read(sql, {}, since).read_all()
        return self._run(sql, query, since)

    def _checked(self, sql: str) -> "Query":
        from quotaflow.pipelines.warehouse import query_check  # noqa: PLC0415  imports DuckDB

        query = query_check.checked(sql, frozenset([*TABLES, *views.load()]))
        if query.describes_all or not _QUERY.match(sql):
            raise ConfigError(
                "over a catalog only SELECT, WITH and VALUES are run here: quotaflow tables and "
                "quotaflow describe NAME list tables and columns"
            )
        if query.perhaps:
            name = min(query.perhaps)
            raise WrongQueryError(f"WITH names {name} as the table is named: take another name")
        return query

    def _run(self, sql: str, query: "Query", since: "Since | None") -> "pa.Table":
        """The rows by the catalog's engine."""
        text = self._statement(sql_dialects.in_spark(sql), query.names, since)
        try:
            return self.engine.run(text)
        except WrongQueryError:
            self._check_readable(query.names)
            raise

    def _gathered(self, sql: str, query: "Query", since: "Since | None") -> "LocalDatabase | None":
        """The database that answers a query; None: not all that it reads was gathered."""
        database = self._database(query, since) if self._local.gathered else None
        if database is not None:
            with engine_errors(sql):
                database.open(query.names, since=since)
        return database

    def _database(self, query: "Query", since: "Since | None") -> "LocalDatabase | None":
        """The database that has all rows that a query reads; None: not all were gathered."""
        from quotaflow.pipelines.warehouse.gathered import GatheredTables  # noqa: PLC0415  as above
        from quotaflow.pipelines.warehouse.local_database import LocalDatabase  # noqa: PLC0415

        conf = self.warehouse.conf
        with self._local.lock:
            needed = _starts(query.names, query.bounds, since)
            made = frozenset(filter(self.is_made, TABLES))
            # Others of this process may gather more while the database is asked.
            tables = GatheredTables(str(conf.catalog_schema), made, dict(self._local.gathered))
            if not all(
                tables.has(each, start, by_views=each not in query.names)
                for each, start in needed.items()
            ):
                return None
            if self.empty not in self._local.databases:
                limits = (conf.query_memory_mb, conf.query_timeout_s)
                self._local.databases[self.empty] = LocalDatabase(
                    tables, *limits, self.empty, self._local.stopped
                )
            return self._local.databases[self.empty]

    def _check_readable(self, names: frozenset[str]) -> None:
        """Raise ConfigError for a table of another schema version."""
        for name in filter(self.is_made, views.read_by(names)[0]):
            listed = self.engine.run(f"SHOW TBLPROPERTIES {self.warehouse.target(name)}")
            try:
                check_readable(name, {row["key"]: row["value"] for row in rows_of(listed)})
            except SchemaVersionError as error:
                raise ConfigError(str(error)) from None

    def _statement(self, sql: str, names: frozenset[str], since: "Since | None") -> str:
        for name in views.required(names):
            if name not in self.empty and not self.is_made(name):
                raise NeverMadeError(name, str(self.warehouse.conf.catalog_schema))

        def rows(view: str | None, name: str) -> str:
            if not self.is_made(name):
                return TABLES[name].empty_sql
            start = None
            if since is not None and view is not None and name in views.events(views.load()[view]):
                start = _start(name, since)
            return rows_since(self.warehouse, name, start)

        return statement(sql, names, views.read_by(names)[1], rows)


def _start(name: str, since: "Since") -> datetime:
    return since.facts if name in FACTS else since.results


def _starts(
    names: frozenset[str], bounds: Mapping[str, "Bounds"], since: "Since | None"
) -> dict[str, datetime]:
    """The tables that a query of these names and bounds reads, each from a time on."""
    starts = {name: bounds[name].start or WHOLE if name in bounds else WHOLE for name in names}
    starts = {name: start for name, start in starts.items() if name in TABLES}
    for view in (views.load()[name] for name in views.read_by(names)[1]):
        for name in frozenset(views.sources(view)) & TABLES.keys():
            is_bounded = since is not None and name in views.events(view)
            start = _start(name, since) if since is not None and is_bounded else WHOLE
            starts[name] = min(starts.get(name, start), start)
    return starts


def listed(warehouse: Warehouse, run: Callable[[str], "pa.Table"]) -> set[str]:
    """The tables of a catalog that there are now; of the ledger's schema only the operator's."""
    conf = warehouse.conf
    made = set[str]()
    for schema in {*filter(None, [conf.catalog_schema, conf.ledger_schema])}:
        rows = rows_of(run(f"SHOW TABLES IN {schema}"))
        names = {row["tableName"] for row in rows if not row["isTemporary"]} & TABLES.keys()
        made |= {name for name in names if warehouse.target(name) == f"{schema}.{name}"}
    return made


def rows_since(warehouse: Warehouse, name: str, start: datetime | None) -> str:
    """SQL for the rows of a table of a catalog, from a time on."""
    rows, is_whole = f"SELECT * FROM {warehouse.target(name)}", start in {None, WHOLE}
    return rows if is_whole else f"{rows} WHERE {TABLES[name].time} >= {literal(start)}"


def statement(
    sql: str,
    names: Collection[str],
    needed_views: Iterable[str],
    rows: Callable[[str | None, str], str],
) -> str:
    """A query that needs nothing beside its text.

    `names` are the tables and views that it names itself, `needed_views` those and what they read,
    each after its sources. `rows` is SQL for what a view, or the query itself, reads of a table.
    """
    parts = {name: rows(None, name) for name in TABLES if name in names}
    for name in needed_views:
        parts[name] = _with_rows(name, rows)
    if not parts:
        return sql
    clauses = ",\n".join(f"{name} AS (\n{text}\n)" for name, text in parts.items())
    own = _WITH.match(sql)
    recursive = "RECURSIVE " if own and own[1] else ""
    return f"WITH {recursive}{clauses}{',' if own else ''}\n{sql[own.end() :] if own else sql}"


def _with_rows(view: str, rows: Callable[[str | None, str], str]) -> str:
    """The text of a view, which reads tables by what `rows` says."""

    def read(word: re.Match[str]) -> str:
        place, name, alias = word.groups()
        if name not in TABLES:
            return word[0]
        return f"{place} ({rows(view, name)}){alias or f' AS {name}'}"

    return _READ.sub(read, views.load()[view].sql)
