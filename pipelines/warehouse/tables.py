"""The tables of a warehouse, opened once by a command and handed down to all that reads them."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.spark import session
from quotaflow.pipelines.warehouse import spark_reader
from quotaflow.pipelines.warehouse.reader import Reader, check_query
from quotaflow.pipelines.warehouse.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Tables(Protocol):
    """Opened tables and views.

    A folder's table keeps the version it has when a query first names it, so all queries of one
    command see the same rows. After a write, open the tables again.
    """

    def rows(self, sql: str) -> list[dict[str, Any]]:
        """All rows of a query that bounds their number.

        Raises QueryError, and NeverMadeError for a table that does not exist yet.
        """
        ...

    def is_made(self, table: str) -> bool:
        """Whether a table exists."""
        ...


@dataclass(frozen=True)
class CatalogTables:
    """The tables of a catalog schema, read through one Spark session."""

    conf: Conf

    @cached_property
    def _spark(self) -> "SparkSession":
        return session.get(self.conf.spark)

    @cached_property
    def _registered(self) -> set[str]:
        return set()

    @cached_property
    def _warehouse(self) -> Warehouse:
        return Warehouse(self.conf.warehouse)

    def rows(self, sql: str) -> list[dict[str, Any]]:
        """All rows of a query that bounds their number. Raises QueryError."""
        check_query(sql)
        answer = spark_reader.answer(self._spark, self._warehouse, sql, None, self._registered)
        rows: list[dict[str, Any]] = answer.read_all().to_pylist()
        return rows

    def is_made(self, table: str) -> bool:
        """Whether a table exists."""
        return self._warehouse.exists(self._spark, table)


def open_tables(conf: Conf) -> Tables:
    """The tables of conf: of a folder without a JVM, of a catalog through one Spark session."""
    if conf.warehouse.catalog_schema:
        return CatalogTables(conf)
    return Reader(Warehouse(conf.warehouse))
