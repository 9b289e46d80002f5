"""Answers over the tables of a catalog: by Spark, which alone may read them."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F

from quotaflow.pipelines.errors import ConfigError
from quotaflow.pipelines.results.answers import source
from quotaflow.pipelines.results.answers.answer import Answer
from quotaflow.pipelines.results.answers.source import Computed
from quotaflow.pipelines.spark.spark_errors import spark_errors
from quotaflow.pipelines.warehouse import views
from quotaflow.pipelines.warehouse.python_times import rows_of
from quotaflow.pipelines.warehouse.sql_literals import literal
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.table import Table
from quotaflow.schemas.tables.catalog import TABLES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass
class CatalogSource:
    """The tables of a catalog. The names of tables are temporary views until `close`."""

    spark: "SparkSession"
    warehouse: Warehouse
    now: datetime
    _registered: set[str] = field(default_factory=set)

    @property
    def threads(self) -> int:
        """One: an answer registers parts of tables under names that the next one uses again."""
        return 1

    @property
    def failures(self) -> tuple[type[Exception], ...]:
        """What `compute` raises if an answer cannot be computed."""
        return (*spark_errors(), pa.ArrowException, OSError, ConfigError)

    def close(self) -> None:
        """Remove the temporary views: their names mean parts of tables here."""
        for name in self._registered:
            self.spark.catalog.dropTempView(name)

    def stamp(self, table: str) -> str | None:
        """Version and time of the newest commit to a table; None if it does not exist."""
        if not self.warehouse.exists(self.spark, table):
            return None
        target = self.warehouse.target(table)
        history = self.spark.sql(f"DESCRIBE HISTORY {target} LIMIT 1")
        (newest,) = rows_of(history.select("timestamp", "version").toArrow())
        return f"{newest['timestamp']:%Y-%m-%dT%H:%M:%S.%f} {newest['version']}"

    def changed(self, table: str) -> None:
        """Nothing to do: each frame reads the newest version."""

    def rows(self, table: Table) -> pa.Table:
        """All rows of an existing table."""
        return _as_declared(self._live(table.name), table.arrow)

    def compute(self, answer: Answer) -> Computed:
        """The rows of an answer; a table that does not exist has none."""
        settings = self._settings(answer)
        for name in answer.inputs:
            self._register(name, self._part(answer, name, settings))
        for name in answer.views:
            self._register(name, self.spark.sql(views.load()[name].sql))
        rows = answer.derived(_as_declared(self.spark.sql(answer.sql), answer.schema))
        if answer.expiry is None:
            return Computed(rows)
        (expiry,) = self.spark.sql(answer.expiry).toArrow().to_pylist()
        return Computed(rows, expiry["expires_at"])

    def _part(self, answer: Answer, name: str, settings: dict[str, float]) -> "DataFrame":
        rows, time = self._live(name), TABLES[name].time
        if name not in answer.lookbacks:
            return rows
        (newest,) = rows.agg(F.max(time).alias("newest")).toArrow().to_pylist()
        if newest["newest"] is None:
            return rows
        start = source.since(answer, name, newest["newest"], self.now, settings)
        return rows.where(F.col(time) >= F.lit(start))

    def _settings(self, answer: Answer) -> dict[str, float]:
        names = source.setting_names(answer)
        if not names:
            return {}
        self._register("settings", self._live("settings"))
        self._register("current_settings", self.spark.sql(views.load()["current_settings"].sql))
        sql = source.SETTINGS.format(", ".join(map(literal, names)))
        return {row["setting"]: row["number"] for row in self.spark.sql(sql).toArrow().to_pylist()}

    def _live(self, name: str) -> "DataFrame":
        """A table with its declared columns, without rows if it does not exist."""
        if not self.warehouse.exists(self.spark, name):
            return self.spark.sql(TABLES[name].empty_sql)
        self.warehouse.check_readable(self.spark, name)
        rows = self.warehouse.read(self.spark, name)
        live = set(rows.columns)
        return rows.select(
            *(
                F.col(field.name) if field.name in live else F.lit(None).alias(field.name)
                for field in TABLES[name].arrow
            )
        )

    def _register(self, name: str, rows: "DataFrame") -> None:
        rows.createOrReplaceTempView(name)
        self._registered.add(name)


def _as_declared(rows: "DataFrame", schema: pa.Schema) -> pa.Table:
    return rows.select(*schema.names).toArrow().cast(schema)
