"""Translates SQL between Spark and DuckDB. Views are written once, in Spark's SQL."""

from functools import cache
from typing import ClassVar


@cache
def in_duckdb(sql: str) -> str:
    """A query in Spark's SQL as DuckDB reads it. Raises sqlglot.errors.ParseError."""
    import sqlglot  # noqa: PLC0415  takes a third of a second, and tables need none

    (translated,) = sqlglot.transpile(sql, read=_spark(), write="duckdb", pretty=True)
    return translated


@cache
def _spark() -> type:
    """Spark's dialect since 4.0: within a text, two quotes are one."""
    from sqlglot.dialects.spark import Spark  # noqa: PLC0415  as above

    class Spark4(Spark):
        class Tokenizer(Spark.Tokenizer):
            STRING_ESCAPES: ClassVar = ["'", *Spark.Tokenizer.STRING_ESCAPES]

    return Spark4
