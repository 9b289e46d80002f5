"""Answers a query in Spark's dialect, over the same tables and views."""

import logging
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.errors import ConfigError, QueryError, WrongQueryError
from quotaflow.pipelines.spark import session
from quotaflow.pipelines.warehouse import views
from quotaflow.pipelines.warehouse.query_check import check_encoding
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.tables.catalog import TABLES

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

_QUERY = re.compile(r"(?:\s|--[^\n]*(?:\n|$)|/\*.*?\*/|\()*(?:select|with|values)\b", re.I | re.S)
# Names, comments and text. A backslash escapes only in Spark's text.
_NAMED = r"`(?:[^`]|``)*`|--[^\n]*|/\*.*?\*/"
_QUOTED = (
    re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|" + _NAMED, re.S),
    re.compile(r"'[^']*'|\"[^\"]*\"|" + _NAMED, re.S),
)
_WRITES = re.compile(
    r"\b(?:insert\s+(?:into|overwrite)|merge\s+(?:with\s+schema\s+evolution\s+)?into|delete\s+from"
    r"|update\b(?=[^(),]*?\bset\b))",
    re.I,
)


def check_query(sql: str) -> None:
    """Raise ConfigError unless the text is a query: engines can also write, and read files."""
    check_encoding(sql)
    if not _QUERY.match(sql):
        word = (sql.split() or ["nothing"])[0]
        raise ConfigError(f"only queries are run here (SELECT, WITH or VALUES), not {word[:40]}")
    # In Spark, statements that write may start with WITH too.
    for quoted in _QUOTED:
        if match := _WRITES.search(quoted.sub(" ", sql)):
            word = " ".join(match[0].split()).upper()
            raise ConfigError(f"only queries are run here, and {word} writes")


def query(
    conf: Conf, sql: str, limit: int | None, report: Callable[[str], None] = lambda _: None
) -> "pa.RecordBatchReader":
    """The rows of a query, at most `limit`. Raises QueryError with Spark's first line."""
    check_query(sql)
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
    # After the session's own check.
    from pyspark.errors import AnalysisException, PySparkException  # noqa: PLC0415

    try:
        register(spark, warehouse, sql, registered)
        rows = spark.sql(sql)
        return (rows if limit is None else rows.limit(limit)).toArrow().to_reader()
    except PySparkException as error:
        message = str(error).strip().splitlines()
        # Those that Spark cannot parse are errors of analysis too.
        kind = WrongQueryError if isinstance(error, AnalysisException) else QueryError
        raise kind(message[0] if message else type(error).__name__) from None


def register_empty(
    spark: "SparkSession", warehouse: Warehouse, names: frozenset[str], registered: set[str]
) -> None:
    """Give the session tables without rows, by the names of those that do not exist."""
    for name in sorted(names - registered):
        if not warehouse.exists(spark, name):
            spark.sql(TABLES[name].empty_sql).createOrReplaceTempView(name)
            registered.add(name)


def register(
    spark: "SparkSession", warehouse: Warehouse, sql: str, registered: set[str] | None = None
) -> None:
    """Give the session the tables and views that a query reads, by their names.

    Skips tables that do not exist, views that need those, and what is `registered`, to which it
    adds. A table that no view needs is empty if it does not exist.
    """
    made = set[str]() if registered is None else registered
    named_tables, named_views = views.dependencies(sql)
    required = views.required(views.named(sql))
    for name in named_tables:
        if name in made:
            continue
        if warehouse.exists(spark, name):
            warehouse.check_readable(spark, name)
            warehouse.read(spark, name).createOrReplaceTempView(name)
            made.add(name)
        elif name not in required:
            spark.sql(TABLES[name].empty_sql).createOrReplaceTempView(name)
            made.add(name)
    loaded = views.load()
    for name in named_views:
        if name not in made and made.issuperset(views.sources(loaded[name])):
            spark.sql(loaded[name].sql).createOrReplaceTempView(name)
            made.add(name)
