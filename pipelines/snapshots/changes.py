"""Compares a snapshot with the current rows of a table: which rows to append.

Tables of snapshots have a row for each change, and one with `is_removed` when something went away.
So a row holds from its event_time to that of the next row of its identity.
"""

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from quotaflow.pipelines.snapshots.observations import Row, UnansweredPart
from quotaflow.pipelines.warehouse.time_ranges import in_duckdb
from quotaflow.schemas.table import Table
from quotaflow.udfs.engine.database import opened


def identity(table: Table) -> list[str]:
    """The columns that identify what a row is about, without its time."""
    return [name for name in table.key if name != table.time]


def newest_rows(table: Table, source: str, where: str) -> str:
    """SQL of any engine for the newest row of each identity, of rows for which `where` is true.

    It is current unless it is removed. That is no condition here, because with it DuckDB sorts the
    whole history.
    """
    return newest_of(table.column_names, identity(table), table.time, source, where)


def newest_of(
    columns: Iterable[str], about: Iterable[str], time: str, source: str, where: str
) -> str:
    """SQL of any engine for the newest row of each value of `about`."""
    listed = ", ".join(columns)
    place = f"row_number() OVER (PARTITION BY {', '.join(about)} ORDER BY {time} DESC) AS place"
    ranked = f"SELECT {listed}, {place} FROM {source} WHERE {where}"
    return f"SELECT {listed} FROM ({ranked}) AS ranked WHERE place = 1"


def current_rows(newest: pa.Table) -> pa.Table:
    """Those of the newest rows that are current."""
    return newest.filter(pc.invert(newest["is_removed"]))


def changes(
    observed: pa.Table,
    current: pa.Table,
    table: Table,
    now: datetime,
    unanswered: Iterable[UnansweredPart] = (),
) -> pa.Table:
    """Rows to append for what is new, changed, or removed.

    `current` must have the scope of `observed`: its other rows count as removed, except those of
    `unanswered` parts. A column that `observed` does not have keeps its current value. A removed
    row keeps the values of the columns that the table is clustered by.
    """
    about, kept = identity(table), {*identity(table), *table.clustering}
    compared = [n for n in observed.column_names if n not in {*about, table.time, "is_removed"}]

    def column(name: str) -> str:
        if name == table.time:
            return in_duckdb(now)
        if name == "is_removed":
            return "observed.is_removed IS NULL"
        if name not in observed.column_names:
            return f'CASE WHEN observed.is_removed IS NOT NULL THEN marked."{name}" END'
        if name in kept:
            return f'coalesce(observed."{name}", marked."{name}")'
        return f'observed."{name}"'

    columns = ", ".join(f'{column(name)} AS "{name}"' for name in table.column_names)
    is_unanswered, parts = _unanswered(table, unanswered)
    sql = f"""
        WITH marked AS (SELECT *, {is_unanswered} AS is_unanswered FROM current_rows)
        SELECT {columns}
        FROM observed FULL JOIN marked ON {same(about, "observed", "marked")}
        WHERE CASE
            WHEN observed.is_removed IS NULL THEN NOT marked.is_unanswered
            ELSE marked.is_removed IS NULL OR NOT ({same(compared, "observed", "marked")})
        END
    """
    with opened({"observed": observed, "current_rows": current} | parts) as database:
        return pa.Table.from_batches(database.query(sql, table.arrow), table.arrow)


def same(names: Iterable[str], left: str, right: str) -> str:
    """SQL of DuckDB that is true where two relations are equal in all of `names`; null is null."""
    equal = (f'{left}."{name}" IS NOT DISTINCT FROM {right}."{name}"' for name in names)
    return " AND ".join(equal) or "true"


def _unanswered(table: Table, parts: Iterable[UnansweredPart]) -> tuple[str, dict[str, pa.Table]]:
    """SQL that is true for current rows about which the cluster did not answer.

    It reads the relations returned, which have the identities of the parts.
    """
    by_names: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    for part in parts:
        if not (part.identity or part.columns):
            return "true", {}
        if not part.columns:
            by_names[tuple(sorted(part.identity))].append(part.identity)
    conditions, relations = ["false"], dict[str, pa.Table]()
    for names, identities in by_names.items():
        schema = pa.schema([table.arrow.field(name) for name in names])
        relation = f"unanswered_{len(relations)}"
        relations[relation] = pa.Table.from_pylist(identities, schema=schema)
        is_of_part = same(names, relation, "current_rows")
        conditions.append(f"EXISTS (SELECT 1 FROM {relation} WHERE {is_of_part})")
    return " OR ".join(conditions), relations
