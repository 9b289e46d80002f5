"""Every view, on tables as jobs make them: both engines take it and give the same rows."""

import re
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from quotaflow.pipelines.config import ReplicationSection
from quotaflow.pipelines.feedback.ledger import journal
from quotaflow.pipelines.feedback.planning import (
    cluster_watch,
    evidence_checks,
    input_ages,
    other_writers,
    plan_inputs,
)
from quotaflow.pipelines.terminal import values
from quotaflow.pipelines.warehouse import views
from quotaflow.pipelines.warehouse.folder_reader import FolderReader
from quotaflow.pipelines.warehouse.sql_literals import literal
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas import ddl
from quotaflow.schemas.tables.catalog import TABLES

from ...delta_tables import NOON
from .filled_views import FILLED
from .memory_tables import MemoryTables
from .view_tables import make_tables_and_answers, rows

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

SINCE = NOON - timedelta(days=3)
WINDOWS = {
    "part": "CAST(floor(unix_micros(event_time) / 3600000000e0) AS BIGINT)",
    "is_after": "unix_micros(event_time) % 3600000000 < 900000000",
    "is_in_range": f"event_time >= {literal(SINCE)}",
    "is_other": "principal NOT IN ('User:mallory')",
}
MOMENTS = [(0, False, NOON), (0, True, NOON + timedelta(days=1))]
QUERIES_OF_PLANS = (
    input_ages.NEWEST.format("true"),
    input_ages.LAGS.format("true", literal(SINCE), input_ages.ENDS),
    input_ages.LAGS.format("true", literal(SINCE), input_ages.NO_ENDS),
    *(sql for _, sql in cluster_watch.queries(WINDOWS, MOMENTS, "c1", ReplicationSection())),
    plan_inputs.PROTECTED.format("cluster_id = 'c1'"),
    plan_inputs.MOVED.format("cluster_id = 'c1'"),
    other_writers.LAST_ALTERATIONS,
    *(sql.format("cluster_id = 'c1'") for sql in plan_inputs.ENTITY_COUNTS.values()),
    other_writers.WRITERS,
    other_writers.MANAGERS.format("cluster_id = 'c1'"),
    input_ages.DEAD_TIME.format("true"),
    journal.SELECT,
    evidence_checks.CURRENT_CHECKS,
)
WITH = re.compile(r"^(?:WITH )?(\w+) AS \($", re.MULTILINE)


def lines(batches: "pa.RecordBatchReader") -> list[str]:
    return sorted(values.json_line(row) for row in values.rows(batches))


def test_no_with_bears_the_name_of_a_table_or_view() -> None:
    # It would be taken for one that the view reads, and so must be made first.
    taken = {*TABLES, *views.load()}
    withs = {(v.name, w) for v in views.load().values() for w in WITH.findall(v.sql)}
    assert {(view, name) for view, name in withs if name in taken} == set()
    assert len(withs) > 50


def test_every_view_of_empty_tables_is_empty() -> None:
    # A view of constants has the same rows over any tables.
    of_tables = [v.name for v in views.load().values() if any(views.dependencies(v.sql))]
    empty = MemoryTables()
    actual = {name: rows(empty, f"SELECT * FROM {name}") for name in of_tables}
    assert actual == {name: [] for name in of_tables}


@pytest.mark.spark
def test_every_view_has_the_same_described_columns_in_spark(
    folder_warehouse: Warehouse, spark: "SparkSession"
) -> None:
    make_tables_and_answers(folder_warehouse, {})
    for table in TABLES.values():
        spark.createDataFrame([], table.sql_schema).createOrReplaceTempView(table.name)
    for name, view in views.load().items():
        analyzed = spark.sql(view.sql).schema
        # Views that read this one take none of its plan: deep ones would take minutes.
        spark.createDataFrame([], analyzed).createOrReplaceTempView(f"{name}_analyzed")
        text = ddl.create_view(replace(view, sql=f"SELECT * FROM {name}_analyzed"))
        spark.sql(text.replace(" VIEW ", " TEMPORARY VIEW ", 1))
        created = spark.table(name).schema
        described = [column.name for column in view.columns]
        assert described == analyzed.names == created.names
        assert [field.metadata["comment"] for field in created] == [
            column.comment for column in view.columns
        ]


@pytest.mark.spark
@pytest.mark.faults
def test_every_view_answers_alike_in_spark(
    folder_warehouse: Warehouse, spark: "SparkSession"
) -> None:
    make_tables_and_answers(folder_warehouse, FILLED)
    for name in TABLES:
        folder_warehouse.read(spark, name).createOrReplaceTempView(name)
    reader = FolderReader(folder_warehouse)
    different = {}
    for name, view in views.load().items():
        within = spark.sql(view.sql).toArrow()
        # Views that read this one read its rows: planned again in each, deep ones take minutes.
        spark.createDataFrame(within).createOrReplaceTempView(name)
        without = reader.query(f"SELECT * FROM {name}")
        assert without.schema.names == within.schema.names
        pair = lines(without), lines(within.to_reader())
        if pair[0] != pair[1]:
            different[name] = pair
    for sql in QUERIES_OF_PLANS:
        within = spark.sql(sql).toArrow()
        assert lines(reader.query(sql)) == lines(within.to_reader()), sql
    assert different == {}
