"""Whether two rows agree in columns that may be null."""

from collections.abc import Iterable
from functools import reduce
from operator import and_

from pyspark.sql import Column
from pyspark.sql import functions as F


def null_safe(names: Iterable[str], left: str, right: str) -> Column:
    """Whether the frames with these aliases agree in all of `names`; null equals null."""
    equal = (F.col(f"{left}.{name}").eqNullSafe(F.col(f"{right}.{name}")) for name in names)
    return reduce(and_, equal, F.lit(True))
