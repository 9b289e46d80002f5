"""Answers over tables of a folder or an object store: by DuckDB in this process, without a JVM."""

import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa

from quotaflow.pipelines.errors import ConfigError
from quotaflow.pipelines.results.answers import source
from quotaflow.pipelines.results.answers.answer import Answer
from quotaflow.pipelines.results.answers.source import Computed
from quotaflow.pipelines.warehouse import delta_files, views
from quotaflow.pipelines.warehouse.delta_files import DataFile
from quotaflow.pipelines.warehouse.kept_translations import in_duckdb
from quotaflow.pipelines.warehouse.sql_literals import literal
from quotaflow.pipelines.warehouse.time_ranges import TimeRange
from quotaflow.pipelines.warehouse.time_ranges import in_duckdb as time_in_duckdb
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.migrations import SchemaVersionError, check_readable
from quotaflow.schemas.table import DOUBLE, STRING, TIMESTAMP, Table
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.udfs.engine.database import Database, Selection
from quotaflow.udfs.engine.instances import Instance, borrowed
from quotaflow.udfs.engine.rule import Relation, Rule

if TYPE_CHECKING:
    from deltalake import DeltaTable

_MEMORY_MB = 1_024
_THREADS = 4
_EXPIRY = pa.schema([("expires_at", TIMESTAMP)])
_NUMBERS = pa.schema([("setting", STRING), ("number", DOUBLE)])


@dataclass
class FolderSource:
    """The tables of a place, each in the version that it has when it is first named here.

    Threads may share it. They have one instance of DuckDB and its memory, each with a connection.
    """

    warehouse: Warehouse
    now: datetime
    _opened: "dict[str, DeltaTable]" = field(default_factory=dict)
    _stack: ExitStack = field(default_factory=ExitStack)
    _of_thread: threading.local = field(default_factory=threading.local)
    _opening: threading.Lock = field(default_factory=threading.Lock)
    _instance: Instance | None = None

    @property
    def failures(self) -> tuple[type[Exception], ...]:
        """What `compute` raises if an answer cannot be computed."""
        from deltalake.exceptions import DeltaError  # noqa: PLC0415  --help need not wait for it
        from sqlglot.errors import SqlglotError  # noqa: PLC0415  as above

        return (duckdb.Error, pa.ArrowException, DeltaError, SqlglotError, OSError, ConfigError)

    @property
    def threads(self) -> int:
        """How many threads compute answers: DuckDB plans a text and reads few rows on one."""
        return min(_THREADS, os.cpu_count() or 1)

    def close(self) -> None:
        """End the database."""
        self._stack.close()

    def stamp(self, table: str) -> str | None:
        """Id and version of a table; None if it does not exist."""
        if not self.warehouse.place.is_made(table):
            return None
        live = self._live(table)
        return f"{live.metadata().id} {live.version()}"

    def changed(self, table: str) -> None:
        """Open a table again when it is next named."""
        self._opened.pop(table, None)

    def rows(self, table: Table) -> pa.Table:
        """All rows of an existing table."""
        if not self._listed(table.name):
            return table.arrow.empty_table()
        whole = Rule(table.name, f"SELECT * FROM {table.name}", table.arrow)
        return self._computed(whole, {table.name: self.relation(table.name)})

    def compute(self, answer: Answer) -> Computed:
        """The rows of an answer; a table that does not exist has none."""
        starts = self._starts(answer)
        relations = {name: self.relation(name, starts.get(name)) for name in answer.inputs}
        where = {
            name: TimeRange(start).condition(TABLES[name].time, time_in_duckdb)
            for name, start in starts.items()
        }
        rule = _rule(answer, answer.sql, answer.schema)
        rows = answer.derived(self._computed(rule, relations, where))
        if answer.expiry is None:
            return Computed(rows)
        rule = _rule(answer, answer.expiry, _EXPIRY)
        (expiry,) = self._computed(rule, relations, where).to_pylist()
        return Computed(rows, expiry["expires_at"])

    def relation(self, name: str, start: datetime | None = None) -> Relation:
        """What a rule reads of a table: at least its rows from `start` on."""
        table = TABLES[name]
        if not self.warehouse.place.is_made(name):
            return table.arrow.empty_table()
        paths = sorted(f.path for f in self._listed(name) if f.may_have(start, None))
        return self.warehouse.place.files(table, paths)

    def newest(self, name: str) -> datetime | None:
        """The newest time of a table; None if it has no rows, or its files do not say it."""
        return _newest(self._listed(name)) if self.warehouse.place.is_made(name) else None

    def database(self) -> Database:
        """The database in which this thread computes answers, opened once."""
        if not hasattr(self._of_thread, "database"):
            with self._opening:
                self._of_thread.database = self._connected()
        database: Database = self._of_thread.database
        return database

    def _connected(self) -> Database:
        if self._instance is None:
            self._instance = self._stack.enter_context(borrowed(_MEMORY_MB, threads=1))
        connection = self._stack.enter_context(self._instance.connected())
        return Database(self._instance, connection, {})

    def _computed(
        self,
        rule: Rule,
        relations: Mapping[str, Relation],
        where: Mapping[str, str] | None = None,
    ) -> pa.Table:
        database = self.database()
        database.relations = relations
        selections = {name: Selection((where or {}).get(name, "true")) for name in relations}
        return pa.Table.from_batches(database.compute(rule, selections), rule.schema)

    def _starts(self, answer: Answer) -> dict[str, datetime]:
        settings = self._settings(answer)
        newest = {name: self.newest(name) for name in answer.lookbacks}
        return {
            name: source.since(answer, name, time, self.now, settings)
            for name, time in newest.items()
            if time is not None
        }

    def _settings(self, answer: Answer) -> dict[str, float]:
        names = source.setting_names(answer)
        if not names:
            return {}
        sql = source.SETTINGS.format(", ".join(map(literal, names)))
        rule = Rule(
            "settings", in_duckdb(sql), _NUMBERS, views=dict(_translated(["current_settings"]))
        )
        rows = self._computed(rule, {"settings": self.relation("settings")})
        return {row["setting"]: row["number"] for row in rows.to_pylist()}

    def _listed(self, name: str) -> list[DataFile]:
        live = self._live(name)
        try:
            check_readable(name, live.metadata().configuration)
        except SchemaVersionError as error:
            raise ConfigError(str(error)) from None
        return delta_files.of_version(live, self.warehouse.place.path(name), TABLES[name].time)

    def _live(self, name: str) -> "DeltaTable":
        # The first thread decides which version all of them read.
        return self._opened.get(name) or self._opened.setdefault(
            name, self.warehouse.place.open(name)
        )


def _newest(files: Sequence[DataFile]) -> datetime | None:
    """The newest time of files; None if they do not say it."""
    times = [file.last for file in files]
    stated = [time.astimezone(UTC) for time in times if time is not None]
    return max(stated) if stated and len(stated) == len(times) else None


def _rule(answer: Answer, sql: str, schema: pa.Schema) -> Rule:
    return Rule(answer.name, in_duckdb(sql), schema, views=dict(_translated(answer.views)))


def _translated(names: Sequence[str]) -> Iterator[tuple[str, str]]:
    for name in names:
        yield name, in_duckdb(views.load()[name].sql)
