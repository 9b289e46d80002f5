"""Answers over the tables of a catalog: by Spark, which alone may read them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

import pyarrow as pa

from quotaflow.pipelines.errors import ConfigError
from quotaflow.pipelines.results.answers import source
from quotaflow.pipelines.results.answers.answer import Answer
from quotaflow.pipelines.results.answers.source import Computed
from quotaflow.pipelines.spark.spark_errors import spark_errors
from quotaflow.pipelines.warehouse import catalog_reader, kept_translations
from quotaflow.pipelines.warehouse.python_times import rows_of
from quotaflow.pipelines.warehouse.sql_literals import literal
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.table import Table
from quotaflow.schemas.tables.catalog import TABLES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


_THREADS = 8


@dataclass
class CatalogSource:
    """The tables of a catalog. Threads may share it: a statement needs nothing beside its text."""

    spark: "SparkSession"
    warehouse: Warehouse
    now: datetime
    _newest: dict[str, datetime | None] = field(default_factory=dict)

    @property
    def threads(self) -> int:
        """How many threads compute answers: Spark plans each text on one core."""
        return _THREADS

    @property
    def failures(self) -> tuple[type[Exception], ...]:
        """What `compute` raises if an answer cannot be computed."""
        return (*spark_errors(), pa.ArrowException, OSError, ConfigError)

    def close(self) -> None:
        """Nothing to do."""

    def stamp(self, table: str) -> str | None:
        """Version and time of the newest commit to a table; None if it does not exist."""
        if not self.warehouse.exists(self.spark, table):
            return None
        target = self.warehouse.target(table)
        history = self.spark.sql(f"DESCRIBE HISTORY {target} LIMIT 1")
        (newest,) = rows_of(history.select("timestamp", "version").toArrow())
        return f"{newest['timestamp']:%Y-%m-%dT%H:%M:%S.%f} {newest['version']}"

    def changed(self, table: str) -> None:
        """Ask again for the newest row of a table."""
        self._newest.pop(table, None)

    def rows(self, table: Table) -> pa.Table:
        """All rows of an existing table."""
        return _as_declared(self.spark.sql(self._rows(table.name)), table.arrow)

    def compute(self, answer: Answer) -> Computed:
        """The rows of an answer; a table that does not exist has none."""
        starts = self._starts(answer)
        rows = answer.derived(_as_declared(self._frame(answer, answer.sql, starts), answer.schema))
        if answer.expiry is None:
            return Computed(rows)
        (expiry,) = self._frame(answer, answer.expiry, starts).toArrow().to_pylist()
        return Computed(rows, expiry["expires_at"])

    def _frame(self, answer: Answer, sql: str, starts: Mapping[str, datetime]) -> "DataFrame":
        tables = kept_translations.tables_in(sql)
        text = catalog_reader.statement(
            sql, tables, answer.views, lambda _, name: self._rows(name, starts.get(name))
        )
        return self.spark.sql(text)

    def _starts(self, answer: Answer) -> dict[str, datetime]:
        """From when on an answer reads each table of which it does not need all rows."""
        if not answer.lookbacks:
            return {}
        settings = self._settings(answer)
        newest = {name: self._newest_of(name) for name in answer.lookbacks}
        return {
            name: source.since(answer, name, time, self.now, settings)
            for name, time in newest.items()
            if time is not None
        }

    def _newest_of(self, name: str) -> datetime | None:
        if name not in self._newest:
            sql = f"SELECT max({TABLES[name].time}) AS newest FROM ({self._rows(name)})"
            self._newest[name] = rows_of(self.spark.sql(sql).toArrow())[0]["newest"]
        return self._newest[name]

    def _settings(self, answer: Answer) -> dict[str, float]:
        names = source.setting_names(answer)
        if not names:
            return {}
        sql = source.SETTINGS.format(", ".join(map(literal, names)))
        view = "current_settings"
        text = catalog_reader.statement(sql, [view], [view], lambda _, name: self._rows(name))
        return {row["setting"]: row["number"] for row in self.spark.sql(text).toArrow().to_pylist()}

    def _rows(self, name: str, start: datetime | None = None) -> str:
        """SQL for the rows of a table from a time on; without rows if it does not exist."""
        if not self.warehouse.exists(self.spark, name):
            return TABLES[name].empty_sql
        self.warehouse.check_readable(self.spark, name)
        return catalog_reader.rows_since(self.warehouse, name, start)


def _as_declared(rows: "DataFrame", schema: pa.Schema) -> pa.Table:
    return rows.select(*schema.names).toArrow().cast(schema)
