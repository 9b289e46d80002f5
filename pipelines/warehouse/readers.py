"""Opens the reader of conf's tables: once for a command, which hands it to all that asks."""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from quotaflow.pipelines.config import Conf, WarehouseSection
from quotaflow.pipelines.errors import DamagedError
from quotaflow.pipelines.warehouse.folder_reader import FolderReader
from quotaflow.pipelines.warehouse.reader import Reader
from quotaflow.pipelines.warehouse.warehouse import OpenSession, Warehouse, check_address_space

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from quotaflow.pipelines.warehouse.catalog_reader import CatalogEngine

_T = TypeVar("_T")


def open_reader(conf: Conf, open_session: OpenSession | None = None) -> Reader:
    """The reader of conf's tables: over files without a JVM, of a catalog through a Spark session.

    That is the session of conf, unless a function opens another.
    """

    def own() -> "SparkSession":
        from quotaflow.pipelines.spark import session  # noqa: PLC0415  a folder needs none

        return session.get(session.short_lived(conf.spark))

    return reader_of(Warehouse(conf.warehouse), open_session or own)


def reader_of(warehouse: Warehouse, open_session: OpenSession) -> Reader:
    """The reader of a warehouse, for what has no whole conf."""
    if warehouse.conf.catalog_schema:
        from quotaflow.pipelines.warehouse.catalog_reader import CatalogReader  # noqa: PLC0415

        return CatalogReader(warehouse, _engine(warehouse.conf, open_session))
    check_address_space()
    return FolderReader(warehouse)


def going_on(ask: Callable[[Reader], _T], tables: Reader, report: Callable[[str], None]) -> _T:
    """What `ask` returns of the tables that can be read; each damaged one is reported."""
    while True:
        try:
            return ask(tables)
        except DamagedError as error:
            if not isinstance(tables, FolderReader) or error.table in tables.left_out:
                raise
            report(f"{error}. What it has is missing here")
            tables = tables.without(error.table)


def _engine(conf: WarehouseSection, open_session: OpenSession) -> "CatalogEngine":
    from quotaflow.pipelines.warehouse.spark_reader import SparkEngine  # noqa: PLC0415  as above
    from quotaflow.pipelines.warehouse.sql_warehouse import SqlWarehouse  # noqa: PLC0415

    if conf.sql_warehouse:
        return SqlWarehouse(conf.sql_warehouse, conf.query_timeout_s)
    return SparkEngine(open_session, conf.query_timeout_s)
