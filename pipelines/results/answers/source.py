"""The tables that answers are computed from, by DuckDB in this process."""

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property

import duckdb
import pyarrow as pa

from quotaflow.pipelines.errors import ConfigError
from quotaflow.pipelines.results.answers.answer import Answer
from quotaflow.pipelines.warehouse import views
from quotaflow.pipelines.warehouse.kept_translations import in_duckdb
from quotaflow.pipelines.warehouse.sql_literals import literal
from quotaflow.pipelines.warehouse.time_ranges import TimeRange
from quotaflow.pipelines.warehouse.time_ranges import in_duckdb as time_in_duckdb
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.table import DOUBLE, STRING, TIMESTAMP, Table
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.udfs.engine.database import Database, Selection, opened
from quotaflow.udfs.engine.rule import Relation, Rule

QUIET = timedelta(days=1)
"""Lookbacks are measured before the newest row of a table, and texts measure them by cluster. So
this is added: a cluster may be silent for as long before its rows leave an answer."""

SETTINGS = """
    SELECT setting, max(CAST(setting_value AS DOUBLE)) AS number
    FROM current_settings
    WHERE setting IN ({})
    GROUP BY setting
"""
_MEMORY_MB = 1_024
_THREADS = 4
_EXPIRY = pa.schema([("expires_at", TIMESTAMP)])
_NUMBERS = pa.schema([("setting", STRING), ("number", DOUBLE)])


@dataclass(frozen=True, slots=True)
class Computed:
    """The rows of an answer, and from when on they differ though no input changes."""

    rows: pa.Table
    expires_at: datetime | None = None


@dataclass
class Source(ABC):
    """The tables of a warehouse.

    Threads may share it. One at a time computes, so that a view that several answers read is
    computed once: with a database for each thread, answers took a quarter more CPU time.
    """

    warehouse: Warehouse
    now: datetime
    _stack: ExitStack = field(default_factory=ExitStack, init=False)
    _computing: threading.Lock = field(default_factory=threading.Lock, init=False)

    @abstractmethod
    def stamp(self, table: str) -> str | None:
        """Text that is another one after each commit to a table; None if it does not exist."""

    @abstractmethod
    def relation(self, name: str, start: datetime | None = None) -> Relation:
        """What a rule reads of a table: at least its rows from `start` on."""

    @abstractmethod
    def newest(self, name: str) -> datetime | None:
        """The newest time of a table; None if it has no rows, or that is not stated."""

    @abstractmethod
    def changed(self, table: Table, rows: pa.Table, /) -> None:
        """Note that a table was written, which has these rows from now on."""

    @abstractmethod
    def prepare(self, answers: Collection[Answer], /) -> None:
        """Note which answers are to be computed next."""

    @property
    def failures(self) -> tuple[type[Exception], ...]:
        """What `compute` raises if an answer cannot be computed."""
        return (duckdb.Error, pa.ArrowException, OSError, ConfigError)

    @property
    def threads(self) -> int:
        """How many threads prepare, compute and write answers."""
        return min(_THREADS, os.cpu_count() or 1)

    def close(self) -> None:
        """End the database."""
        self._stack.close()

    def rows(self, table: Table) -> pa.Table:
        """All rows of an existing table."""
        whole = Rule(table.name, f"SELECT * FROM {table.name}", table.arrow)
        return self._computed(whole, {table.name: self.relation(table.name)})

    def compute(self, answer: Answer) -> Computed:
        """The rows of an answer; a table that does not exist has none.

        Raises the errors of `failures`.
        """
        starts = self.starts(answer)
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

    def starts(self, answer: Answer) -> dict[str, datetime]:
        """From when on an answer reads each table that `lookbacks` names and that has rows.

        A row from a clock that is ahead must not hide all others, so none counts as newer than now.
        """
        if not answer.lookbacks:
            return {}
        settings = self._settings(answer)
        newest = {name: self.newest(name) for name in answer.lookbacks}
        return {
            name: min(time, self.now) - answer.lookbacks[name].length(settings) - QUIET
            for name, time in newest.items()
            if time is not None
        }

    @cached_property
    def _database(self) -> Database:
        return self._stack.enter_context(opened({}, _MEMORY_MB))

    def _computed(
        self,
        rule: Rule,
        relations: Mapping[str, Relation],
        where: Mapping[str, str] | None = None,
    ) -> pa.Table:
        within = {name: (where or {}).get(name, "true") for name in relations}
        selections = {name: Selection(each, in_files=each) for name, each in within.items()}
        with self._computing:
            self._database.relations = relations
            return pa.Table.from_batches(self._database.compute(rule, selections), rule.schema)

    def _settings(self, answer: Answer) -> dict[str, float]:
        """The settings that the lookbacks of an answer name."""
        names = sorted({each.setting for each in answer.lookbacks.values() if each.setting})
        if not names:
            return {}
        sql = SETTINGS.format(", ".join(map(literal, names)))
        rule = Rule(
            "settings", in_duckdb(sql), _NUMBERS, views=dict(_translated(["current_settings"]))
        )
        rows = self._computed(rule, {"settings": self.relation("settings")})
        return {row["setting"]: row["number"] for row in rows.to_pylist()}


def _rule(answer: Answer, sql: str, schema: pa.Schema) -> Rule:
    columns = ", ".join(f'"{name}"' for name in schema.names)
    # As a view, which DuckDB plans once: it plans a query to know its columns, and to read it.
    rows = f"SELECT {columns} FROM (\n{in_duckdb(sql)}\n)"
    views = {**dict(_translated(answer.views)), "answer": rows}
    return Rule(answer.name, "SELECT * FROM answer", schema, views=views)


def _translated(names: Sequence[str]) -> Iterator[tuple[str, str]]:
    for name in names:
        yield name, in_duckdb(views.load()[name].sql)
