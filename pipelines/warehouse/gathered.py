"""Tables of a catalog that have few rows, all read by one statement."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import pyarrow as pa

from quotaflow.pipelines.errors import QueryError
from quotaflow.schemas.table import Table
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.udfs.engine.database import quoted_name

if TYPE_CHECKING:
    from quotaflow.pipelines.warehouse.local_tables import Part
    from quotaflow.pipelines.warehouse.query_times import Bounds

MAX_VALUES = 2_000_000
"""A table with more values has too many rows. They take up to 40 MB."""


@dataclass(frozen=True, slots=True)
class Gathered:
    """The rows of a table from a time on; None: too many, or the table is not as it is declared."""

    start: datetime
    rows: pa.Table | None


@dataclass(frozen=True)
class GatheredTables:
    """Those tables, and others that do not exist, for a local database."""

    root: str
    made: Collection[str]
    gathered: Mapping[str, Gathered]
    folders: tuple[str, ...] = ()

    def has(self, name: str, start: datetime, *, by_views: bool) -> bool:
        """Whether it has the rows of a table from a time on, of which no view reads bytes."""
        if name not in self.made:
            return True
        each = self.gathered.get(name)
        is_whole = by_views or not bytes_of(name)
        return each is not None and each.rows is not None and each.start <= start and is_whole

    def is_made(self, table: str) -> bool:
        """Whether a table exists."""
        return table in self.made

    def damaged(self) -> None:
        """Nothing: no file is read here."""

    def leaves_out(self, *_: object) -> bool:
        """Nothing: rows are here."""
        return False

    def part(self, name: str, _: "Bounds") -> "Part":
        """The rows of a table, which it has."""
        from quotaflow.pipelines.warehouse.local_tables import Part  # noqa: PLC0415  with DuckDB

        rows = self.gathered[name].rows if name in self.made else TABLES[name].arrow.empty_table()
        return Part(lambda named: f"SELECT * FROM {quoted_name(named)}", rows, is_small=True)


def is_new(each: Gathered | None, start: datetime) -> bool:
    """Whether asking for rows of a table from this time on may give more than was given before."""
    return each is None or (each.start > start if each.rows is not None else each.start < start)


def gather(
    run: Callable[[str], pa.Table], starts: Mapping[str, tuple[datetime, str]]
) -> dict[str, Gathered]:
    """The rows of tables, each from a time on, by SQL for them.

    A table is one value: the list of its rows. The statement reads no more rows than it needs to
    see that there are too many, and then answers with null.
    """
    lists = ", ".join(
        f"(SELECT CASE WHEN count(*) <= {_max_rows(name)} THEN collect_list(row) END FROM "
        f"(SELECT struct(*) AS row FROM ({_without_bytes(name, rows)}) "
        f"LIMIT {_max_rows(name) + 1})) AS {name}"
        for name, (_, rows) in starts.items()
    )
    try:
        answer = run(f"SELECT {lists}")
    except QueryError:
        # Each question then says what is wrong, if it concerns it.
        return {name: Gathered(start, None) for name, (start, _) in starts.items()}
    return {
        name: Gathered(start, _rows(TABLES[name], answer[name].combine_chunks()))
        for name, (start, _) in starts.items()
    }


def _rows(table: Table, listed: pa.ListArray) -> pa.Table | None:
    rows = pa.Table.from_batches([pa.RecordBatch.from_struct_array(listed.flatten())])
    needed = {*table.column_names} - {*bytes_of(table.name)}
    if listed.null_count or needed - {*rows.column_names}:
        return None
    return as_declared(rows, table)


def bytes_of(name: str) -> list[str]:
    """The columns of a table that have payloads, which may be long. They are not gathered."""
    return [field.name for field in TABLES[name].arrow if pa.types.is_binary(field.type)]


def _without_bytes(name: str, rows: str) -> str:
    left_out = ", ".join(bytes_of(name))
    return f"SELECT * EXCEPT ({left_out}) FROM ({rows})" if left_out else rows


def _max_rows(name: str) -> int:
    return MAX_VALUES // width(TABLES[name].arrow)


def as_declared(rows: pa.Table, table: Table) -> pa.Table:
    """The declared columns in their types; one that the live table is_new yet is null."""
    columns = [
        rows[field.name].cast(field.type)
        if field.name in rows.column_names
        else pa.nulls(rows.num_rows, field.type)
        for field in table.arrow
    ]
    return pa.table(columns, schema=table.arrow)


def width(schema: pa.Schema) -> int:
    """How many values a row has, a list counted as one element."""
    return sum(map(_values, schema.types))


def _values(kind: pa.DataType) -> int:
    if pa.types.is_list(kind):
        return _values(kind.value_type)
    if pa.types.is_map(kind):
        return _values(kind.key_type) + _values(kind.item_type)
    if pa.types.is_struct(kind):
        return sum(_values(field.type) for field in kind)
    return 1
