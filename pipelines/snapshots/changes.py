"""What changed between what a table holds and what a snapshot saw: rows to append.

Tables of snapshots keep a row for each change, and one with `is_removed` for what went away; so a
row holds from its event_time to that of the next row of its identity.
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

_UNANSWERED = "is_untold"


def identity(table: Table) -> list[str]:
    """The columns that tell what a row is about, whenever it was seen."""
    return [name for name in table.key if name != table.time]


def current_rows(rows: "DataFrame", table: Table) -> "DataFrame":
    """The rows that stand: the newest of each identity, unless it says that it is gone."""
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

    `standing` must be of the same scope as `seen`: what it holds beyond that counts as removed,
    but for what the gaps name. A column that `seen` lacks stays as it stands. A row that says that
    something went keeps, of what it was, what the table is laid out by.
    """
    about, kept = identity(table), {*identity(table), *table.clustering}
    told = [name for name in observed.columns if name not in {*about, table.time, "is_removed"}]
    marked = _with_unanswered(current_state, table, unanswered)
    both = observed.alias("seen").join(
        marked.alias("standing"), null_safe(about, "seen", "standing"), "full_outer"
    )
    is_gone = F.col("seen.is_removed").isNull()
    is_new = F.col("standing.is_removed").isNull()

    def column(name: str) -> Column:
        if name not in observed.columns:
            return F.when(~is_gone, F.col(f"standing.{name}"))
        if name in kept:
            return F.coalesce(f"seen.{name}", f"standing.{name}")
        return F.col(f"seen.{name}")

    columns = {name: column(name) for name in table.column_names}
    columns |= {"is_removed": is_gone, table.time: F.lit(now)}
    changed = both.where(
        (is_gone & ~F.col(_UNANSWERED)) | is_new | (~is_gone & ~null_safe(told, "seen", "standing"))
    )
    return changed.select(*(columns[n].alias(n) for n in table.column_names))


def _with_unanswered(
    standing: "DataFrame", table: Table, gaps: Iterable[UnansweredPart]
) -> "DataFrame":
    """Mark the rows about which the cluster told nothing, be they there or not."""
    of_rows = [gap.identity for gap in gaps if not gap.columns]
    marked = standing.withColumn(_UNANSWERED, F.lit(not all(of_rows)))
    by_names: dict[tuple[str, ...], list[Mapping[str, Any]]] = defaultdict(list)
    for of in of_rows:
        by_names[tuple(sorted(of))].append(of)
    for names, keys in filter(itemgetter(0), by_names.items()):
        schema = pa.schema([table.arrow.field(name) for name in names])
        content = pa.Table.from_pylist(keys, schema=schema)
        untold = frames.from_arrow(standing.sparkSession, content).distinct()
        found = untold.select("*", F.lit(True).alias("is_found")).alias("gap")
        joined = marked.alias("row").join(
            F.broadcast(found), null_safe(names, "row", "gap"), "left"
        )
        is_untold = F.col(f"row.{_UNANSWERED}") | F.col("gap.is_found").isNotNull()
        marked = joined.select(
            *(f"row.{n}" for n in standing.columns), is_untold.alias(_UNANSWERED)
        )
    return marked
