"""The tables of a warehouse, opened once by a command and handed down to all that reads them."""

from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Protocol

from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.spark import session
from quotaflow.pipelines.warehouse import spark_reader
from quotaflow.pipelines.warehouse.python_times import rows_of
from quotaflow.pipelines.warehouse.reader import Reader
from quotaflow.pipelines.warehouse.warehouse import OpenSession, Warehouse

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from quotaflow.pipelines.warehouse.time_ranges import Since


class Tables(Protocol):
    """Opened tables and views.

    A folder's table keeps the version it has when a query first names it, so all queries of one
    command see the same rows. After a write, open the tables again.
    """

    def rows(self, sql: str, since: "Since | None" = None) -> list[dict[str, Any]]:
        """All rows of a query that bounds their number; with `since`, of that time and later.

        Raises QueryError, and NeverMadeError for a table that does not exist yet.
        """
        ...

    def read(self, sql: str, schema: "pa.Schema") -> "pa.Table":
        """The same rows as Arrow, in columns of these names and types."""
        ...

    def is_made(self, table: str) -> bool:
        """Whether a table exists."""
        ...

    def with_empty(self, names: frozenset[str]) -> "Tables":
        """The same tables; each of `names` that does not exist has no rows instead of an error."""
        ...


@dataclass(frozen=True)
class CatalogTables:
    """The tables of a catalog schema, read through one Spark session."""

    warehouse: Warehouse
    open_session: OpenSession
    empty: frozenset[str] = frozenset()

    @cached_property
    def _spark(self) -> "SparkSession":
        return self.open_session()

    @cached_property
    def _registered(self) -> set[str]:
        return set()

    def rows(self, sql: str, since: "Since | None" = None) -> list[dict[str, Any]]:  # noqa: ARG002
        """All rows of a query that bounds their number; Spark finds their files by itself.

        Raises QueryError.
        """
        return rows_of(self._answer(sql))

    def read(self, sql: str, schema: "pa.Schema") -> "pa.Table":
        """The same rows as Arrow, in columns of these names and types."""
        return self._answer(sql).select(schema.names).cast(schema)

    def is_made(self, table: str) -> bool:
        """Whether a table exists."""
        return self.warehouse.exists(self._spark, table)

    def with_empty(self, names: frozenset[str]) -> "CatalogTables":
        """The same tables; each of `names` that does not exist has no rows instead of an error."""
        return replace(self, empty=names)

    def _answer(self, sql: str) -> "pa.Table":
        spark_reader.check_query(sql)
        spark_reader.register_empty(self._spark, self.warehouse, self.empty, self._registered)
        answer = spark_reader.answer(self._spark, self.warehouse, sql, None, self._registered)
        return answer.read_all()


def open_tables(conf: Conf, open_session: OpenSession | None = None) -> Tables:
    """The tables of conf: of a folder without a JVM, of a catalog through one Spark session.

    That is the session of conf, unless a function opens another.
    """
    return tables_of(Warehouse(conf.warehouse), open_session or partial(session.get, conf.spark))


def tables_of(warehouse: Warehouse, open_session: OpenSession) -> Tables:
    """The tables of a warehouse, for what has no whole conf."""
    if warehouse.conf.catalog_schema:
        return CatalogTables(warehouse, open_session)
    return Reader(warehouse)
