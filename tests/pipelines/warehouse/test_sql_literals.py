"""A literal is its value and nothing else, in both dialects, whatever a client calls itself."""

from datetime import UTC, datetime

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from quotaflow.pipelines.warehouse.sql_literals import literal

HOSTILE = (
    *("a", "", "it's", "'; DROP TABLE x; --", "\\", "\\'", "\\' OR 1=1 --", "'\\''", "\\\\"),
    *("${spark.app.name}${env:HOME}", "$", "%_", "\n\t\x00"),
    *("é\U0001f600", "/* */ --", '"', "`", "\\u0027", "\\x"),
)


def selected(text: str) -> str:
    ((value,),) = duckdb.connect().execute(f"SELECT {literal(text)}").fetchall()
    return str(value)


@pytest.mark.parametrize("text", HOSTILE)
def test_duckdb_reads_what_was_written(text: str) -> None:
    assert selected(text) == text


@given(st.text(st.sampled_from("a'\\\"`%;-\n${}"), max_size=20))
def test_no_text_ends_its_literal(text: str) -> None:
    assert selected(text) == text


@pytest.mark.spark
def test_spark_reads_what_was_written(spark: SparkSession) -> None:
    (row,) = spark.sql(f"SELECT {', '.join(map(literal, HOSTILE))}").collect()
    assert tuple(row) == HOSTILE


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, "NULL"),
        (1.5, "1.5"),
        (datetime(2026, 11, 21, 12, tzinfo=UTC), "timestamp '2026-11-21T12:00:00.000000Z'"),
    ],
)
def test_other_values(value: float | datetime | None, expected: str) -> None:
    assert literal(value) == expected
