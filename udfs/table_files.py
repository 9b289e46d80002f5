"""Writes rows of Delta tables as Parquet files in Spark's tasks; the driver commits their names.

To pass wide rows back to the JVM takes several times as long as to make them. A file that no commit
names is not in the table: readers never see it, and upkeep removes it.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from uuid import uuid4

import pyarrow as pa

from quotaflow.schemas.table import LONG, STRING
from quotaflow.udfs.stores import Store, key_of

if TYPE_CHECKING:
    import pyarrow.parquet as pq

FILE = pa.schema(
    [
        pa.field("table", STRING),
        pa.field("path", STRING),
        pa.field("size_bytes", LONG),
        pa.field("rows", LONG),
        pa.field("stats", STRING),
    ]
)
"""A written file: its table, its name in the table's folder, and Delta's statistics as JSON."""

ROWS_PER_GROUP = 100_000
_CODEC = "snappy"
_STRING_CHARS = 32
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TIME = "%Y-%m-%dT%H:%M:%S.%fZ"


@dataclass(frozen=True, slots=True)
class Target:
    """A table whose rows a task writes: its folder, its columns, and those with statistics.

    `store` has the folder; None if it is on disk.
    """

    name: str
    folder: str
    schema: pa.Schema
    indexed: Sequence[str]
    store: Store | None = None

    def open(self, name: str) -> IO[bytes] | pa.NativeFile:
        """A new file of this name, to be written from its start. Raises OSError."""
        if self.store is None:
            return Path(self.folder, name).open("xb")
        return self.store.filesystem().open_output_stream(key_of(f"{self.folder}/{name}"))


@dataclass(slots=True)
class _Bounds:
    """Least and greatest value of a column, and the number of its nulls."""

    least: Any = None
    greatest: Any = None
    nulls: int = 0

    def add(self, column: pa.ChunkedArray) -> None:
        """Widen the bounds by further rows."""
        import pyarrow.compute as pc  # noqa: PLC0415  readers of tables do without it

        self.nulls += column.null_count
        bounds = pc.min_max(column)
        least, greatest = (_value(bounds[name]) for name in ("min", "max"))
        if least is not None:
            self.least = least if self.least is None else min(self.least, least)
            self.greatest = greatest if self.greatest is None else max(self.greatest, greatest)

    def stated(self) -> tuple[Any, Any]:
        """The bounds as Delta writes them; None where there is none, or it is too long a text."""
        return _least(self.least), _greatest(self.greatest)


@dataclass(slots=True)
class TableFile:
    """One Parquet file of a table, made at its first row. Use as a context.

    An error within the context leaves the file without a commit.
    """

    target: Target
    rows: int = 0
    _name: str = ""
    _size: int = 0
    _file: IO[bytes] | pa.NativeFile | None = None
    _writer: "pq.ParquetWriter | None" = None
    _bounds: dict[str, _Bounds] = field(default_factory=dict)

    def __enter__(self) -> "TableFile":
        """Begin without a file."""
        self._bounds = {name: _Bounds() for name in self.target.indexed}
        return self

    def __exit__(self, *error: object) -> None:
        """Close the file."""
        if self._writer is not None and self._file is not None:
            with self._file:
                self._writer.close()
                self._size = self._file.tell()

    def write(self, rows: pa.Table) -> None:
        """Append rows with the columns and types of the table. Raises OSError."""
        if not rows.num_rows:
            return
        if self._writer is None:
            self._name = f"part-{uuid4()}.{_CODEC}.parquet"
            self._file = self.target.open(self._name)
            # Readers of Delta need no statistics of Parquet: nested columns would cost most.
            indexed: Any = list(self.target.indexed)
            import pyarrow.parquet as pq  # noqa: PLC0415  readers of tables do without it

            self._writer = pq.ParquetWriter(
                self._file,
                self.target.schema,
                compression=_CODEC,
                write_statistics=indexed,
            )
        self._writer.write_table(rows, row_group_size=ROWS_PER_GROUP)
        self.rows += rows.num_rows
        for name, bounds in self._bounds.items():
            bounds.add(rows[name])

    def described(self) -> dict[str, object] | None:
        """The closed file as a row of FILE; None if it had no rows."""
        if self._writer is None:
            return None
        return {
            "table": self.target.name,
            "path": self._name,
            "size_bytes": self._size,
            "rows": self.rows,
            "stats": self._stats(),
        }

    def _stats(self) -> str:
        bounds = {name: each.stated() for name, each in self._bounds.items()}
        stated = {
            "numRecords": self.rows,
            "minValues": {name: least for name, (least, _) in bounds.items() if least is not None},
            "maxValues": {name: most for name, (_, most) in bounds.items() if most is not None},
            "nullCount": {name: each.nulls for name, each in self._bounds.items()},
        }
        return json.dumps(stated)


def joined(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    """The same rows in batches of at least so many, except the last."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        waiting.append(batch)
        if sum(each.num_rows for each in waiting) >= rows:
            yield pa.concat_batches(waiting)
            waiting = []
    if any(each.num_rows for each in waiting):
        yield pa.concat_batches(waiting)


def described(files: Iterable[TableFile]) -> pa.RecordBatch:
    """Closed files with rows, as FILE."""
    rows = [row for file in files if (row := file.described()) is not None]
    return pa.RecordBatch.from_pylist(rows, schema=FILE)


def _value(bound: pa.Scalar) -> Any:
    """A bound in Python. Datetime lacks some years, so it raises OverflowError for such a time."""
    if bound.is_valid and pa.types.is_timestamp(bound.type):
        return _EPOCH + timedelta(microseconds=bound.cast(LONG).as_py())
    return bound.as_py()


def _least(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.strftime(_TIME)
    # A prefix of a text is at most the text.
    return value[:_STRING_CHARS] if isinstance(value, str) else value


def _greatest(value: Any) -> Any:
    if isinstance(value, str):
        return value if len(value) <= _STRING_CHARS else None
    return _least(value)
