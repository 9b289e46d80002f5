"""Expectations in SQL: each passes on correct tables, and finds the row that violates it."""

import re
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from quotaflow.pipelines.quality import suites
from quotaflow.pipelines.warehouse import views
from quotaflow.schemas.tables.catalog import TABLES

from ...rows import Row
from .planted import BAD, GOOD, Content

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SQL = "unexpected_rows_query"
VALUES = {"max_clock_skew_s": 60, "max_lateness_s": 3_600}
QUERIES = {
    (table, check.name): check.kwargs[SQL]
    for table in TABLES
    for check in suites.expected(table, VALUES)
    if SQL in check.kwargs
}


def show(spark: "SparkSession", name: str, as_name: str, rows: list[Row]) -> None:
    """Rows of a table under a name of their own."""
    content = pa.Table.from_pylist(rows, schema=TABLES[name].arrow)
    spark.createDataFrame(content).createOrReplaceTempView(as_name)


def failed_rows_sql(
    spark: "SparkSession", nth: int, query: str, table: str, content: Content
) -> str:
    """SQL that counts what a query finds, where these tables have other rows than GOOD."""
    sql = query.format(batch=table)
    for name in views.names_in(f"{sql} {table}", TABLES):
        show(spark, name, f"{name}_{nth}", content.get(name, GOOD.get(name, [])))
        sql = re.sub(rf"\b(FROM|JOIN) {name}\b(?! AS)", rf"\1 {name} AS {name}", sql)
        sql = re.sub(rf"\b(FROM|JOIN) {name}\b", rf"\1 {name}_{nth}", sql)
    return f"SELECT {nth} AS nth, count(*) AS found FROM ({sql})"


@pytest.mark.spark
def test_each_finds_what_it_is_for_and_nothing_else(spark: "SparkSession") -> None:
    assert QUERIES.keys() == BAD.keys()
    scenes: list[tuple[str, str, Content]] = []
    for (table, name), rows in BAD.items():
        scenes += [(table, name, {}), (table, name, {table: [*GOOD[table], *rows]})]
    queries = (
        failed_rows_sql(spark, nth, QUERIES[table, name], table, content)
        for nth, (table, name, content) in enumerate(scenes)
    )
    counts = {row["nth"]: row["found"] for row in spark.sql(" UNION ALL ".join(queries)).collect()}
    results = {
        scenes[nth][:2]: (counts[nth], counts[nth + 1] > 0) for nth in range(0, len(scenes), 2)
    }
    assert results == dict.fromkeys(BAD, (0, True))
