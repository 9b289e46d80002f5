"""Tables of a test in memory, and what views and answers make of them, by the product's SQL.

To make a folder of all tables, and to open one, takes longer than to plan and compute a view.
"""

import atexit
import operator
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from quotaflow.pipelines import config
from quotaflow.pipelines.results.answers.answer import Answer
from quotaflow.pipelines.results.answers.refresh import in_order
from quotaflow.pipelines.results.answers.registry import ANSWERS
from quotaflow.pipelines.results.answers.source import Source
from quotaflow.pipelines.warehouse import arrow_types, views
from quotaflow.pipelines.warehouse.kept_translations import in_duckdb
from quotaflow.pipelines.warehouse.local_database import MACROS
from quotaflow.pipelines.warehouse.time_ranges import Since
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.table import Table
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.udfs.engine.connections import connect
from quotaflow.udfs.engine.database import Database

from ...delta_tables import NOON
from ...rows import Row
from ...rule_rows import database as rules

_NOW = NOON + timedelta(hours=2)
"""All rows of tests but those of clocks that are wrong are older."""
_NO_REFRESH = "answers of memory tables are computed, and not refreshed"
_ANSWERS = {answer.name: answer for answer in ANSWERS}
_LOADED: dict[str, pa.Table] = {}
"""The rows of each table of the database of queries."""
_MADE: set[str] = set()
"""Views of that database."""
_LAST: dict[str, tuple[list[pa.Table], pa.Table]] = {}
"""What each answer was computed from last, and its rows."""


def answers_for(tables: list[str]) -> set[str]:
    """The answers among tables that a query reads, and those that these are computed from."""
    needed = set(tables) & _ANSWERS.keys()
    left = list(needed)
    while left:
        new = _ANSWERS.keys() & set(_ANSWERS[left.pop()].inputs) - needed
        needed |= new
        left += new
    return needed


@dataclass(frozen=True)
class MemoryTables:
    """The tables of one test; those without rows are empty."""

    content: dict[str, pa.Table] = field(default_factory=dict)

    def put(self, name: str, rows: list[Row]) -> None:
        """Let a table have these rows alone."""
        self.content[name] = _arrow(name, rows)

    def table(self, name: str) -> pa.Table:
        """The rows of a table."""
        return self.content.get(name, _empty(name))

    def is_made(self, _: str) -> bool:
        """Every table is."""
        return True

    def rows(self, sql: str, _: Since | None = None) -> list[Row]:
        """The rows of a query, after the answers that it reads were computed."""
        rows: list[Row] = self.read(sql).to_pylist()
        return rows

    def read(self, sql: str) -> pa.Table:
        """The same as a reader of a folder gives them."""
        tables, needed = views.dependencies(sql)
        answers = self._answers(tables)
        for name in tables:
            _load(name, answers.get(name, self.table(name)))
        for name in needed:
            _add_view(name)
        batches = _database().sql(sql).to_arrow_reader()
        schema = arrow_types.plain_schema(batches.schema)
        plain = [arrow_types.plain_batch(batch, schema) for batch in batches]
        return pa.Table.from_batches(plain, schema)

    def compute(self, answer: Answer) -> pa.Table:
        """The rows of an answer as it is declared here, of others as the product declares them."""
        others = [name for name in answer.inputs if name != answer.name]
        return _MemorySource(self, self._answers(others)).compute(answer).rows

    def _answers(self, tables: list[str]) -> dict[str, pa.Table]:
        needed = answers_for(tables)
        computed: dict[str, pa.Table] = {}
        source = _MemorySource(self, computed)
        for name in _in_order():
            if name in needed:
                given = self.content.get(name)
                computed[name] = source.rows_of(_ANSWERS[name]) if given is None else given
        return computed


class _MemorySource(Source):
    """The same tables as a refresh of answers reads them."""

    def __init__(self, tables: MemoryTables, computed: Mapping[str, pa.Table]) -> None:
        super().__init__(Warehouse(config.WarehouseSection()), _NOW)
        self.tables, self.computed = tables, computed
        self.of_rules = rules().over({})

    def rows_of(self, answer: Answer) -> pa.Table:
        """The rows of an answer, computed again if one of its inputs is another."""
        inputs = [self.relation(name) for name in answer.inputs]
        last = _LAST.get(answer.name)
        if last is None or any(map(operator.is_not, last[0], inputs)):
            last = _LAST[answer.name] = (inputs, self.compute(answer).rows)
        return last[1]

    def relation(self, name: str, _start: datetime | None = None) -> pa.Table:
        return self.computed.get(name, self.tables.table(name))

    def stamp(self, _table: str) -> str | None:
        raise AssertionError(_NO_REFRESH)

    def prepare(self, _answers: Collection[Answer]) -> None:
        raise AssertionError(_NO_REFRESH)

    def changed(self, _table: Table, _rows: pa.Table) -> None:
        raise AssertionError(_NO_REFRESH)

    def newest(self, name: str) -> datetime | None:
        newest = pc.max(self.relation(name)[TABLES[name].time]).as_py()
        return None if newest is None else newest.astimezone(UTC)

    def database(self) -> Database:
        return self.of_rules


@cache
def _in_order() -> list[str]:
    return list(in_order(ANSWERS).static_order())


@cache
def _database() -> duckdb.DuckDBPyConnection:
    """The database of all queries."""
    database = connect(threads=1)
    atexit.register(database.close)
    database.execute(MACROS)
    return database


def _load(name: str, rows: pa.Table) -> None:
    if _LOADED.get(name) is rows:
        return
    _database().register("given", rows)
    _database().execute(f'CREATE OR REPLACE TABLE "{name}" AS SELECT * FROM given')
    _LOADED[name] = rows


def _add_view(name: str) -> None:
    if name not in _MADE:
        _database().execute(f'CREATE VIEW "{name}" AS {in_duckdb(views.load()[name].sql)}')
        _MADE.add(name)


@cache
def _empty(name: str) -> pa.Table:
    return TABLES[name].arrow.empty_table()


def _arrow(name: str, rows: list[Row]) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=TABLES[name].arrow)
