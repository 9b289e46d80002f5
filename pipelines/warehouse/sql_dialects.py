"""Translates SQL between Spark and DuckDB. Views are written once, in Spark's SQL."""

from functools import cache

import sqlglot


@cache
def in_duckdb(sql: str) -> str:
    """A query in Spark's SQL as DuckDB reads it. Raises sqlglot.errors.ParseError."""
    (translated,) = sqlglot.transpile(sql, read="spark", write="duckdb", pretty=True)
    return translated
