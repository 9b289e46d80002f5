"""Answers over the tables of a catalog.

Spark reads each table once for a refresh, by a statement that is cheap to plan, and DuckDB computes
the answers in this process, as over a folder: Spark plans the text of an answer for ten seconds. An
answer with an input that is too large for this process is one statement of Spark.
"""

import re
import threading
from collections import defaultdict
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from quotaflow.pipelines.errors import ConfigError, QueryError
from quotaflow.pipelines.results.answers.answer import Answer
from quotaflow.pipelines.results.answers.registry import ANSWERS
from quotaflow.pipelines.results.answers.source import Computed, Source
from quotaflow.pipelines.spark.spark_errors import spark_errors
from quotaflow.pipelines.warehouse import catalog_reader, gathered, kept_translations, views
from quotaflow.pipelines.warehouse.python_times import rows_of
from quotaflow.schemas.migrations import SchemaVersionError, check_readable
from quotaflow.schemas.table import Table
from quotaflow.schemas.tables.catalog import FACTS, TABLES
from quotaflow.udfs.counted import counted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_Locks = defaultdict[str, threading.Lock]
_THREADS = 8
SMALL_BYTES = 4 * 1024 * 1024
"""A table with files of at most this size is read whole: 300,000 rows of a result, 80 MB."""
MAX_VALUES = 5_000_000
"""Of a larger table, the rows of the time that an answer reads are read if they have at most this
many values, which take as much memory."""


class TooLargeError(QueryError):
    """A table has more rows than this process should read."""


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows of a table: all, or those from `start` on."""

    rows: pa.Table
    start: datetime | None


@dataclass
class CatalogSource(Source):
    """The tables of a catalog, each read once."""

    spark: "SparkSession"
    _details: dict[str, dict[str, Any]] = field(default_factory=dict, init=False)
    _read: dict[str, _Rows] = field(default_factory=dict, init=False)
    _too_large: dict[str, datetime | None] = field(default_factory=dict, init=False)
    """Tables that have too many rows, from a time on or at all."""
    _describing: _Locks = field(default_factory=lambda: defaultdict(threading.Lock), init=False)
    _reading: _Locks = field(default_factory=lambda: defaultdict(threading.Lock), init=False)

    @property
    def threads(self) -> int:
        """How many threads compute answers: they mostly wait for Spark, which writes the rows."""
        return _THREADS

    @property
    def failures(self) -> tuple[type[Exception], ...]:
        """What `compute` raises if an answer cannot be computed."""
        return (*super().failures, *spark_errors(), QueryError)

    def stamp(self, table: str) -> str | None:
        """Id, time of the newest commit and size of a table; None if it does not exist."""
        if table not in self._made:
            return None
        detail = self._detail(table)
        size = f"{detail['numFiles']} {detail['sizeInBytes']}"
        return f"{detail['id']} {detail['lastModified']:%Y-%m-%dT%H:%M:%S.%f} {size}"

    def prepare(self, answers: Collection[Answer]) -> None:
        """Read their small inputs side by side: of another an answer may need a part."""
        names = {name for answer in answers for name in (answer.name, *answer.inputs)}

        def read(name: str) -> None:
            # An answer that needs it meets the error again.
            with suppress(*self.failures):
                if name in self._made and self._is_small(name):
                    self.relation(name)

        with ThreadPoolExecutor(_THREADS, "inputs") as pool:
            list(pool.map(read, sorted(names)))

    def changed(self, table: Table, rows: pa.Table) -> None:
        """Note that a table was written, which has these rows from now on."""
        self._made.add(table.name)
        self._details.pop(table.name, None)
        self._read[table.name] = _Rows(rows, None)

    def rows(self, table: Table) -> pa.Table:
        """All rows of a table that this process computed, so they have room in it."""
        with self._reading[table.name]:
            read = self._read.get(table.name)
            if read is None or read.start is not None:
                self._check_readable(table.name)
                self._read[table.name] = _Rows(self._arrow(table.name, None, None), None)
        return super().rows(table)

    def relation(self, name: str, start: datetime | None = None) -> pa.Table:
        """What a rule reads of a table. Raises TooLargeError."""
        if name not in self._made:
            return TABLES[name].arrow.empty_table()
        with self._reading[name]:
            read = self._read.get(name)
            if read is None or (read.start is not None and (start is None or start < read.start)):
                read = self._read[name] = self._rows_from(name, start)
            return read.rows

    def newest(self, name: str) -> datetime | None:
        """The newest time of a table; None if it has no rows."""
        newest: datetime | None
        if name not in self._made or self._is_small(name):
            newest = pc.max(self.relation(name)[TABLES[name].time]).as_py()
        else:
            statement = f"SELECT max({TABLES[name].time}) FROM {self.warehouse.target(name)}"
            newest = self.spark.sql(statement).toArrow()[0][0].as_py()
        return newest

    def compute(self, answer: Answer) -> Computed:
        """The rows of an answer; a table that does not exist has none."""
        try:
            return super().compute(answer)
        except TooLargeError:
            return self._by_spark(answer, self.starts(answer))

    @cached_property
    def _made(self) -> set[str]:
        return catalog_reader.listed(self.warehouse, lambda sql: self.spark.sql(sql).toArrow())

    def _detail(self, name: str) -> dict[str, Any]:
        with self._describing[name]:
            if name not in self._details:
                statement = f"DESCRIBE DETAIL {self.warehouse.target(name)}"
                (self._details[name],) = rows_of(self.spark.sql(statement).toArrow())
            return self._details[name]

    def _is_small(self, name: str) -> bool:
        return bool(self._detail(name)["sizeInBytes"] <= SMALL_BYTES)

    def _rows_from(self, name: str, start: datetime | None) -> _Rows:
        self._check_readable(name)
        if self._is_small(name):
            return _Rows(self._arrow(name, None, None), None)
        max_rows = MAX_VALUES // gathered.width(TABLES[name].arrow)
        if not self._is_too_large(name, start):
            rows = self._arrow(name, start, max_rows + 1)
            if rows.num_rows <= max_rows:
                return _Rows(rows, start)
            self._too_large[name] = start
        raise TooLargeError(f"{name} has more than {counted(max_rows, 'row')} for this process")

    def _is_too_large(self, name: str, start: datetime | None) -> bool:
        """Whether fewer rows than these were too many."""
        if name not in self._too_large:
            return False
        refused = self._too_large[name]
        return start is None or (refused is not None and start <= refused)

    def _arrow(self, name: str, start: datetime | None, limit: int | None) -> pa.Table:
        frame = self.spark.sql(catalog_reader.rows_since(self.warehouse, name, start))
        needed = _needed(name)
        frame = frame.select(*(each for each in frame.columns if each in needed))
        rows = (frame if limit is None else frame.limit(limit)).toArrow()
        return gathered.as_declared(rows, TABLES[name])

    def _check_readable(self, name: str) -> None:
        try:
            check_readable(name, dict(self._detail(name)["properties"]))
        except SchemaVersionError as error:
            raise ConfigError(str(error)) from None

    def _by_spark(self, answer: Answer, starts: Mapping[str, datetime]) -> Computed:
        frame = self._frame(answer, answer.sql, starts).select(*answer.schema.names)
        rows = answer.derived(frame.toArrow().cast(answer.schema))
        if answer.expiry is None:
            return Computed(rows)
        (expiry,) = self._frame(answer, answer.expiry, starts).toArrow().to_pylist()
        return Computed(rows, expiry["expires_at"])

    def _frame(self, answer: Answer, sql: str, starts: Mapping[str, datetime]) -> "DataFrame":
        def rows(_: str | None, name: str) -> str:
            if name not in self._made:
                return TABLES[name].empty_sql
            self._check_readable(name)
            return catalog_reader.rows_since(self.warehouse, name, starts.get(name))

        tables = kept_translations.tables_in(sql)
        return self.spark.sql(catalog_reader.statement(sql, tables, answer.views, rows))


@cache
def _needed(name: str) -> frozenset[str]:
    """The columns of a table that are read; of facts, whose rows are long, what a text names."""
    if name not in FACTS:
        return frozenset(TABLES[name].column_names)
    readers = [answer for answer in ANSWERS if name in answer.inputs]
    texts = [text for each in readers for text in each.texts]
    texts += [views.load()[view].sql for each in readers for view in each.views]
    return frozenset(re.findall(r"\w+", " ".join(texts))) | {TABLES[name].time}
