"""Arrow rows as a frame: the only place that passes rows to Spark."""

from collections.abc import Iterable
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING

from quotaflow.schemas.table import sql_columns

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, SparkSession


def from_arrow(spark: "SparkSession", rows: "pa.Table") -> "DataFrame":
    """These rows, with the column types of Delta tables."""
    if rows.num_rows:
        return spark.createDataFrame(rows)
    # Spark Connect drops the types of a table without rows.
    return spark.createDataFrame([], sql_columns(rows.schema))


def null_safe(names: Iterable[str], left: str, right: str) -> "Column":
    """Whether the frames with these aliases are equal in all of `names`; null equals null."""
    from pyspark.sql import functions as F  # noqa: PLC0415  pyspark is not a base dependency

    equal = (F.col(f"{left}.{name}").eqNullSafe(F.col(f"{right}.{name}")) for name in names)
    return reduce(and_, equal, F.lit(True))


def without(rows: "DataFrame", others: "DataFrame", names: Iterable[str]) -> "DataFrame":
    """The rows that equal no other in all of `names`; null equals null."""
    same = null_safe(names, "rows", "others")
    return rows.alias("rows").join(others.alias("others"), same, "left_anti")
