"""Data files of one version of a Delta table, from its log: for readers that are not Delta's."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa

from quotaflow.pipelines.errors import ConfigError
from quotaflow.pipelines.warehouse.python_times import microseconds, time_of

if TYPE_CHECKING:
    from deltalake import DeltaTable

# With these the files alone say which rows and which columns a table has. Of any other feature,
# also of one that does not exist yet, that is not known.
_IN_FILES = {"timestampNtz", "v2Checkpoint", "vacuumProtocolCheck"}
# Spark cuts the bounds of times to milliseconds.
_PRECISION = timedelta(milliseconds=1)
_SMALL_BYTES, _SMALL_VALUES = 256 * 1024, 250_000


@dataclass(frozen=True, slots=True)
class DataFile:
    """A Parquet file: its rows, and bounds of their times if the writer recorded them."""

    path: str
    rows: int | None
    first: datetime | None
    last: datetime | None
    size_bytes: int = 0

    def may_have(self, start: datetime | None, end: datetime | None) -> bool:
        """Whether the file may have rows from `start` up to, not including, `end`."""
        if self.first is None or self.last is None:
            return True
        return (end is None or self.first < end) and (start is None or self.last >= start)


def of_version(table: "DeltaTable", folder: Path | str, time: str) -> list[DataFile]:
    """The files of the version that `table` has loaded.

    Raises ConfigError for a table with deletion vectors or column mapping, whose files alone would
    be read wrong.
    """
    check_features(table, folder)
    # By its stream: pa.table would import pandas, which takes a third of a second.
    stream: Any = table.get_add_actions(flatten=True)
    actions: Any = pa.RecordBatchReader.from_stream(stream).read_all()
    names = set(actions.column_names)

    def column(name: str) -> list[Any]:
        if name not in names:
            return [None] * actions.num_rows
        values = actions[name]
        return microseconds(values) if pa.types.is_timestamp(values.type) else values.to_pylist()

    return [
        DataFile(_absolute(folder, path), rows, first, last and last + _PRECISION, size_bytes)
        for path, rows, first, last, size_bytes in zip(
            column("path"),
            column("num_records"),
            map(time_of, column(f"min.{time}")),
            map(time_of, column(f"max.{time}")),
            column("size_bytes"),
            strict=True,
        )
    ]


def are_small(files: Collection[DataFile], schema: pa.Schema) -> bool:
    """Whether files have so few bytes and values that their rows are read at once.

    Each query that names files takes milliseconds to bind them. Of larger ones, queries read few
    columns: with a bound of 1 MiB, answers over a month took a twentieth more CPU time.
    """
    is_small = sum(file.size_bytes for file in files) <= _SMALL_BYTES
    return is_small and sum(file.rows or 0 for file in files) * len(schema) <= _SMALL_VALUES


@dataclass(frozen=True, slots=True)
class RecordedExtent:
    """The rows of a version, the newest time in microseconds since 1970, and its bytes.

    Spark cuts times to milliseconds, so the newest may be later by less than one.
    """

    rows: int
    last_us: int | None
    size_bytes: int


def recorded_extent(table: "DeltaTable", folder: Path | str, time: str) -> RecordedExtent | None:
    """What the log says; None if a writer recorded no counts or times.

    Raises as `of_version`.
    """
    check_features(table, folder)
    stream: Any = table.get_add_actions(flatten=True)
    actions: Any = pa.RecordBatchReader.from_stream(stream).read_all()
    if not actions.num_rows:
        return RecordedExtent(0, None, 0)
    needed = ("num_records", f"max.{time}", f"null_count.{time}")
    if not set(needed) <= set(actions.column_names):
        return None
    rows, nulls = (actions[name].to_pylist() for name in (needed[0], needed[2]))
    times = microseconds(actions[needed[1]])
    for count, newest, without in zip(rows, times, nulls, strict=True):
        if count is None or (newest is None and without != count):
            return None
    newest_us = max((each for each in times if each is not None), default=None)
    return RecordedExtent(sum(rows), newest_us, sum(actions["size_bytes"].to_pylist()))


def _absolute(folder: Path | str, path: str) -> str:
    """The path of a file. The log has it URL-encoded, and absolute for a file of another table."""
    if urlsplit(path).scheme not in ("", "file"):
        raise ConfigError(f"{folder} has a file outside of it, which cannot be read: {path[:200]}")
    own = path_of(path)
    return own if own.startswith("/") else f"{folder}/{own}"


def path_of(uri: str) -> str:
    """The path of a file that a log, or Spark, names by its URI."""
    return unquote(urlsplit(uri).path)


def check_features(table: "DeltaTable", folder: Path | str) -> None:
    """Raise ConfigError for a table whose files alone would be read wrong."""
    protocol = table.protocol()
    used = set(protocol.reader_features or ()) - _IN_FILES
    mode = table.metadata().configuration.get("delta.columnMapping.mode", "none")
    if mode != "none":
        used.add("columnMapping")
    if used:
        raise ConfigError(
            f"{folder} has the Delta feature {min(used)}, which quotaflow cannot read without "
            "Spark: drop it with ALTER TABLE ... DROP FEATURE, or restore the table"
        )
