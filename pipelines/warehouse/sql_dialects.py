"""Translates SQL between Spark and DuckDB. Views are written once, in Spark's SQL."""

from functools import cache


@cache
def in_duckdb(sql: str) -> str:
    """A query in Spark's SQL as DuckDB reads it. Raises sqlglot.errors.ParseError."""
    import sqlglot  # noqa: PLC0415  takes a third of a second, and tables need none

    (translated,) = sqlglot.transpile(sql, read="spark", write="duckdb", pretty=True)
    return translated
