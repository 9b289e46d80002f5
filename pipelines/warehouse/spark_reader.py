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
    # Spark logs a wrong query with its whole stack trace; here it is one line.
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    from pyspark.errors import PySparkException  # noqa: PLC0415  after the session's own check

    try:
        register(spark, Warehouse(conf.warehouse), sql)
        answer = spark.sql(sql)
        return (answer if limit is None else answer.limit(limit)).toArrow().to_reader()
    except PySparkException as error:
        message = str(error).strip().splitlines()
        raise reader.QueryError(message[0] if message else type(error).__name__) from None


def register(spark: "SparkSession", warehouse: Warehouse, sql: str) -> None:
    """Register the existing tables and views that a query reads in the session, by their names."""
    named_tables, named_views = views.dependencies(sql)
    made = {name for name in named_tables if warehouse.exists(spark, name)}
    for name in made:
        warehouse.read(spark, name).createOrReplaceTempView(name)
    all_views = views.load()
    for name in named_views:
        reads = {
            *views.names_in(all_views[name].sql, TABLES),
            *views.names_in(all_views[name].sql, all_views),
        }
        if made.issuperset(reads - {name}):
            spark.sql(all_views[name].sql).createOrReplaceTempView(name)
            made.add(name)
