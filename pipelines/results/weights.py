"""How many requests a row of `requests` stands for: more than one where ingest sampled its API."""

from pyspark.sql import Column
from pyspark.sql import functions as F

WEIGHT = "cast(coalesce(weight, 1) as bigint)"
"""SQL. Whole, so that sums are exact in any order; rows of before there was sampling have none."""


def weight() -> Column:
    """The same as a column."""
    return F.expr(WEIGHT)


def count(condition: Column | None = None) -> Column:
    """Requests of a group, or those for which a condition holds."""
    counted = weight() if condition is None else F.when(condition, weight())
    return F.coalesce(F.sum(counted), F.lit(0).cast("bigint"))
