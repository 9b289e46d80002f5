"""What changed between what a table holds and what a snapshot saw: rows to append.

Tables of snapshots keep a row for each change, and one with `is_removed` for what went away; so a
row holds from its event_time to that of the next row of its identity.
"""

from collections.abc import Iterable
from datetime import datetime
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING

from pyspark.sql import Column
from pyspark.sql import functions as F

from quotaflow.schemas.table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def identity(table: Table) -> list[str]:
    """The columns that tell what a row is about, whenever it was seen."""
    return [name for name in table.key if name != table.time]


def current(rows: "DataFrame", table: Table) -> "DataFrame":
    """The rows that stand: the newest of each identity, unless it says that it is gone."""
    newest = F.max_by(F.struct(*table.column_names), table.time).alias("newest")
    return rows.groupBy(*identity(table)).agg(newest).select("newest.*").where("NOT is_removed")


def changes(seen: "DataFrame", standing: "DataFrame", table: Table, now: datetime) -> "DataFrame":
    """Rows to append for what is new, changed, or removed; both frames have the table's columns.

    `standing` must be of the same scope as `seen`: what it holds beyond that counts as removed.
    """
    about = identity(table)
    told = [n for n in table.column_names if n not in {*about, table.time, "is_removed"}]
    both = seen.alias("seen").join(standing.alias("standing"), _same(about), "full_outer")
    is_gone = F.col("seen.is_removed").isNull()
    is_new = F.col("standing.is_removed").isNull()
    columns = {
        **{n: F.coalesce(f"seen.{n}", f"standing.{n}") for n in about},
        **{n: F.col(f"seen.{n}") for n in told},
        "is_removed": is_gone,
        table.time: F.lit(now),
    }
    changed = both.where(is_gone | is_new | ~_same(told))
    return changed.select(*(columns[n].alias(n) for n in table.column_names))


def _same(names: Iterable[str]) -> Column:
    equal = (F.col(f"seen.{n}").eqNullSafe(F.col(f"standing.{n}")) for n in names)
    return reduce(and_, equal, F.lit(True))
