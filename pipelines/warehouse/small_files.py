"""Joins small files of a table to larger ones beside its writers, in order of time.

delta-rs' own compaction puts files together by their size. Rows of many times would then be in one
file, and readers could skip few files by time.

A commit of a join changes no rows. Appends do not conflict with it. A writer that replaces rows may
have taken a file away meanwhile: then the join is given up. Files that are joined stay on disk for
readers of older versions, until upkeep deletes them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from threading import Event
from typing import Any
from urllib.parse import quote

import pyarrow as pa

from quotaflow.pipelines.warehouse import delta_files, row_writer
from quotaflow.pipelines.warehouse.delta_files import DataFile
from quotaflow.pipelines.warehouse.engine_errors import engine_errors
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.ddl import lookup_key
from quotaflow.schemas.table import Table
from quotaflow.udfs import table_files
from quotaflow.udfs.engine.database import opened, quoted_name
from quotaflow.udfs.engine.rule import Files

TARGET_BYTES = 2 << 30
"""No file is joined to a larger one. Of 10,000 lines/s, 50 GB a day, that is 25 files a day."""
MANY_FILES = 32
"""So many files are joined of any size; with a batch each minute that is twice an hour."""
_ROWS_AT_ONCE = table_files.ROWS_PER_GROUP // 4
GROWTH = 2
"""A file is joined to newer ones that have at least 1/GROWTH of its bytes together. So a byte is
written again only when its file grows by half, and few files of different sizes are left."""
_EARLIEST = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class SmallFiles:
    """Joins files of one table, within so much memory. Raises JobError and QueryError."""

    warehouse: Warehouse
    table: Table
    memory_mb: int
    bytes_per_file: int = 0

    def join(self, stopped: Event, before: date | None = None) -> int:
        """Join what is due, of a partitioned table only days before one. Returns joined files."""
        place, name = self.warehouse.place, self.table.name
        with engine_errors(name):
            files = delta_files.of_version(place.open(name), place.path(name), self.table.time)
        joined = 0
        for folder, group in self._due(files, before):
            if not stopped.is_set() and self._join(folder, group, stopped):
                joined += len(group)
        return joined

    def _due(
        self, files: Sequence[DataFile], before: date | None
    ) -> Iterator[tuple[str, list[DataFile]]]:
        """The folders of partitions, "" without, each with files to join."""
        by_folder = dict[str, list[DataFile]]()
        for file in files:
            path = self._in_table(file)
            folder, _, _ = path.rpartition("/")
            # The log may have another form of such a path.
            if quote(path, safe="/=") == path:
                by_folder.setdefault(folder, []).append(file)
        for folder, each in by_folder.items():
            day = _columns(folder).get("event_date", "")
            if before is None or day < str(before):
                yield from ((folder, group) for group in groups(each, self.bytes_per_file))

    def _in_table(self, file: DataFile) -> str:
        return file.path.removeprefix(f"{self.warehouse.place.path(self.table.name)}/")

    def _join(self, folder: str, group: Sequence[DataFile], stopped: Event) -> bool:
        """Whether the files were joined, and none was taken away meanwhile."""
        with engine_errors(self.table.name):
            made = self._written(folder, group, stopped)
        if made is None:
            return False
        removed = {self._in_table(file): file.size_bytes for file in group}
        return row_writer.rewrite(self.warehouse, self.table, made, removed, _columns(folder))

    def _written(
        self, folder: str, group: Sequence[DataFile], stopped: Event
    ) -> dict[str, Any] | None:
        """The file with all rows, as `table_files.FILE`; None if it was not finished."""
        place = self.warehouse.place
        stored = pa.schema(place.open(self.table.name).schema())
        schema = pa.schema([field for field in stored if field.name not in _columns(folder)])
        indexed = [name for name in lookup_key(self.table) if name in schema.names]
        target = place.target(self.table, indexed)
        target = replace(target, folder=f"{target.folder}/{folder}".rstrip("/"), schema=schema)
        relation = Files(tuple(file.path for file in group), stored, bool(folder), place.store)
        sql = f"SELECT {', '.join(map(quoted_name, schema.names))} FROM stored"
        with (
            opened({"stored": relation}, self.memory_mb) as database,
            table_files.TableFile(target) as made,
        ):
            batches = database.query(sql, schema)
            for rows in table_files.joined(batches, _ROWS_AT_ONCE):
                if stopped.is_set():
                    return None
                made.write(pa.Table.from_batches([rows]))
        described = made.described()
        return described and described | {"path": f"{folder}/{described['path']}".lstrip("/")}


def _columns(folder: str) -> dict[str, str]:
    """The columns of partitions that are in the path of a folder, and their values."""
    return dict(part.split("=", 1) for part in folder.split("/") if part)


def groups(files: Sequence[DataFile], bytes_per_file: int = 0) -> list[list[DataFile]]:
    """Files to join: next to each other in time, each group the oldest first.

    Those that make a file of the target's size are due. Of the newest, which more files will
    follow, a group is due if it has many files, or if each file that it saves costs at most so many
    bytes.
    """
    bins, total = [list[DataFile]()], 0
    for file in sorted(files, key=lambda each: each.first or _EARLIEST):
        if total + file.size_bytes > TARGET_BYTES:
            bins.append([])
            total = 0
        bins[-1].append(file)
        total += file.size_bytes
    *full, newest = bins
    due = [group for group in _grown(newest) if _is_worth_it(group, bytes_per_file)]
    return [group for group in full + due if len(group) > 1]


def _grown(files: Sequence[DataFile]) -> list[list[DataFile]]:
    """Groups from the newest on, each as far as its files are small beside all newer ones of it."""
    apart, total = list[list[DataFile]](), 0
    for file in reversed(files):
        if apart and file.size_bytes <= GROWTH * total:
            apart[-1].insert(0, file)
            total += file.size_bytes
        else:
            apart.append([file])
            total = file.size_bytes
    return apart


def _is_worth_it(group: Sequence[DataFile], bytes_per_file: int) -> bool:
    number, total = len(group), sum(file.size_bytes for file in group)
    return number >= MANY_FILES or total <= bytes_per_file * (number - 1)
