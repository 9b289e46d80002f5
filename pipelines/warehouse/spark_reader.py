"""Answers a query in Spark's dialect, over the same tables and views."""

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.spark import session
from quotaflow.pipelines.warehouse import reader, views
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.tables.catalog import TABLES

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession


def query(
    conf: Conf, sql: str, limit: int | None, report: Callable[[str], None] = lambda _: None
) -> "pa.RecordBatchReader":
    """The rows of a query, at most `limit`. Raises QueryError with Spark's first line."""
    reader.check_query(sql)
    spark = session.get(conf.spark, report)
    return answer(spark, Warehouse(conf.warehouse), sql, limit, set())


def answer(
    spark: "SparkSession", warehouse: Warehouse, sql: str, limit: int | None, registered: set[str]
) -> "pa.RecordBatchReader":
    """The same in a session that has the `registered` tables and views; those it lacks are added.

    The text must be a query: see `check_query`.
    """
    # Spark would log the whole stack of a wrong query; QueryError says it in one line.
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    from pyspark.errors import PySparkException  # noqa: PLC0415  after the session's own check

    try:
        register(spark, warehouse, sql, registered)
        rows = spark.sql(sql)
        return (rows if limit is None else rows.limit(limit)).toArrow().to_reader()
    except PySparkException as error:
        message = str(error).strip().splitlines()
        raise reader.QueryError(message[0] if message else type(error).__name__) from None


def register(
    spark: "SparkSession", warehouse: Warehouse, sql: str, registered: set[str] | None = None
) -> None:
    """Give the session the tables and views that a query reads, by their names.

    Skips tables that do not exist, views over those, and what is `registered`, to which it adds.
    """
    made = set[str]() if registered is None else registered
    named_tables, named_views = views.dependencies(sql)
    for name in named_tables:
        if name not in made and warehouse.exists(spark, name):
            warehouse.check_readable(spark, name)
            warehouse.read(spark, name).createOrReplaceTempView(name)
            made.add(name)
    loaded = views.load()
    for name in named_views:
        reads = {
            *views.names_in(loaded[name].sql, TABLES),
            *views.names_in(loaded[name].sql, loaded),
        }
        if name not in made and made.issuperset(reads - {name}):
            spark.sql(loaded[name].sql).createOrReplaceTempView(name)
            made.add(name)
