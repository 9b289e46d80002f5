"""Rows at hand as frames, as classic sessions and those of Spark Connect take them."""

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from quotaflow.pipelines.spark import frames
from quotaflow.schemas.tables.catalog import TABLES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Connect:
    """What a session of Spark Connect says to no rows without types."""

    def createDataFrame(self, rows: Any, columns: str | None = None) -> str | None:  # noqa: N802
        if len(rows) == 0 and columns is None:
            raise ValueError("CANNOT_INFER_EMPTY_SCHEMA")
        return columns


def test_no_rows_have_the_types_of_their_columns_behind_spark_connect() -> None:
    session: Any = Connect()
    for table in TABLES.values():
        assert frames.from_arrow(session, table.arrow.empty_table()) == table.sql_schema
    assert frames.from_arrow(session, pa.table({"n": [1]})) is None


@pytest.mark.spark
def test_some_rows_and_none_have_the_same_types(spark: "SparkSession") -> None:
    for table in TABLES.values():
        row = pa.Table.from_pylist([dict.fromkeys(table.column_names)], schema=table.arrow)
        types = [(field.name, field.dataType) for field in frames.from_arrow(spark, row).schema]
        none = frames.from_arrow(spark, row.slice(1))
        assert [(field.name, field.dataType) for field in none.schema] == types
    assert none.count() == 0
