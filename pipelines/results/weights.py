"""How many requests a row of `requests` stands for: more than one if ingest samples its API."""

from pyspark.sql import Column
from pyspark.sql import functions as F

WEIGHT = "cast(coalesce(weight, 1) as bigint)"
"""SQL. A whole number, so that sums are exact in any order; rows before sampling have null."""


def weight() -> Column:
    """The same as a column."""
    return F.expr(WEIGHT)


def count(condition: Column | None = None) -> Column:
    """The number of requests in a group, or of those for which a condition is true."""
    counted = weight() if condition is None else F.when(condition, weight())
    return F.coalesce(F.sum(counted), F.lit(0).cast("bigint"))
