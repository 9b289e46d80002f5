"""Compares a snapshot with the current rows of a table: which rows to append.

Tables of snapshots have a row for each change, and one with `is_removed` when something went away.
So a row holds from its event_time to that of the next row of its identity.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F

from quotaflow.pipelines.snapshots.observations import UnansweredPart
from quotaflow.pipelines.spark import frames
from quotaflow.pipelines.spark.frames import null_safe
from quotaflow.schemas.table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_UNANSWERED = "is_unanswered"


def identity(table: Table) -> list[str]:
    """The columns that identify what a row is about, without its time."""
    return [name for name in table.key if name != table.time]


def current_rows(rows: "DataFrame", table: Table) -> "DataFrame":
    """The current rows: the newest of each identity, unless it is removed."""
    newest = F.max_by(F.struct(*table.column_names), table.time).alias("newest")
    return rows.groupBy(*identity(table)).agg(newest).select("newest.*").where("NOT is_removed")


def changes(
    observed: "DataFrame",
    current_state: "DataFrame",
    table: Table,
    now: datetime,
    unanswered: Iterable[UnansweredPart] = (),
) -> "DataFrame":
    """Rows to append for what is new, changed, or removed.

    `current_state` must have the scope of `observed`: its other rows count as removed, except those
    of `unanswered` parts. A column that `observed` does not have keeps its current value. A removed
    row keeps the values of the columns that the table is clustered by.
    """
    about, kept = identity(table), {*identity(table), *table.clustering}
    compared = [name for name in observed.columns if name not in {*about, table.time, "is_removed"}]
    marked = _with_unanswered(current_state, table, unanswered)
    both = observed.alias("observed").join(
        marked.alias("current"), null_safe(about, "observed", "current"), "full_outer"
    )
    is_missing = F.col("observed.is_removed").isNull()
    is_new = F.col("current.is_removed").isNull()

    def column(name: str) -> Column:
        if name not in observed.columns:
            return F.when(~is_missing, F.col(f"current.{name}"))
        if name in kept:
            return F.coalesce(f"observed.{name}", f"current.{name}")
        return F.col(f"observed.{name}")

    columns = {name: column(name) for name in table.column_names}
    columns |= {"is_removed": is_missing, table.time: F.lit(now)}
    changed = both.where(
        (is_missing & ~F.col(_UNANSWERED))
        | is_new
        | (~is_missing & ~null_safe(compared, "observed", "current"))
    )
    return changed.select(*(columns[n].alias(n) for n in table.column_names))


def _with_unanswered(
    current_state: "DataFrame", table: Table, gaps: Iterable[UnansweredPart]
) -> "DataFrame":
    """Mark the rows about which the cluster did not answer."""
    of_rows = [gap.identity for gap in gaps if not gap.columns]
    marked = current_state.withColumn(_UNANSWERED, F.lit(not all(of_rows)))
    by_names: dict[tuple[str, ...], list[Mapping[str, Any]]] = defaultdict(list)
    for key in of_rows:
        by_names[tuple(sorted(key))].append(key)
    for names, keys in filter(itemgetter(0), by_names.items()):
        schema = pa.schema([table.arrow.field(name) for name in names])
        content = pa.Table.from_pylist(keys, schema=schema)
        named = frames.from_arrow(current_state.sparkSession, content).distinct()
        marks = named.select("*", F.lit(True).alias("is_found")).alias("gap")
        joined = marked.alias("row").join(
            F.broadcast(marks), null_safe(names, "row", "gap"), "left"
        )
        is_unanswered = F.col(f"row.{_UNANSWERED}") | F.col("gap.is_found").isNotNull()
        marked = joined.select(
            *(f"row.{n}" for n in current_state.columns), is_unanswered.alias(_UNANSWERED)
        )
    return marked
