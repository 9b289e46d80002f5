"""Rows of a Delta table in an object store as a source of Spark, batch or streaming.

Python reads the files by Arrow, and the log by delta-rs: Spark needs no jars of clouds, and gets no
credentials. Offsets have the form of Delta's own source, so checkpoints are read alike. As there, a
new query starts with the table's version of that time, then reads what commits append; commits that
also remove rows are rewrites, and are skipped.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from quotaflow.schemas.table import STRING, sql_columns
from quotaflow.udfs.engine.database import dataset
from quotaflow.udfs.engine.rule import Files
from quotaflow.udfs.stores import Store, key_of

FILE = "file"
"""A column that every table has here: the file of a row."""
_BATCH_ROWS = 10_000
Offset = dict[str, Any]


@dataclass(frozen=True, slots=True)
class File:
    """A data file: its URI and its bytes."""

    uri: str
    size: int


@dataclass(frozen=True, slots=True)
class StoredTable:
    """A table to read: where it is, which columns, and how much at once.

    `options` are those of delta-rs: like those of the store, they may be secrets.
    """

    uri: str
    schema: pa.Schema
    is_dated: bool
    store: Store
    options: Mapping[str, str]
    columns: tuple[str, ...]
    max_bytes: int
    version: int | None = None

    @property
    def fields(self) -> pa.Schema:
        """The columns of its rows here."""
        every = {field.name: field for field in self.schema}
        every[FILE] = pa.field(FILE, STRING)
        return pa.schema([every[name] for name in self.columns])

    def open(self, version: int | None = None) -> Any:
        """The table as delta-rs opens it."""
        from deltalake import DeltaTable  # noqa: PLC0415  workers that only read files need it not

        return DeltaTable(self.uri, version=version, storage_options=dict(self.options))

    def snapshot(self, version: int | None) -> list[File]:
        """The files of a version, in a fixed order."""
        actions = self.open(version).get_add_actions(flatten=True)
        names = ("path", "size_bytes")
        rows = zip(*(actions[name].to_pylist() for name in names), strict=True)
        return sorted((self._file(*row) for row in rows), key=lambda file: file.uri)

    def appended(self, version: int) -> list[File]:
        """The files that a commit appended; none if it also removed rows."""
        log = key_of(f"{self.uri}/_delta_log/{version:020d}.json")
        with self.store.filesystem().open_input_stream(log) as stream:
            actions = [json.loads(line) for line in bytes(stream.read()).splitlines()]
        if any(a["remove"]["dataChange"] for a in actions if "remove" in a):
            return []
        adds = [a["add"] for a in actions if "add" in a and a["add"]["dataChange"]]
        return [self._file(a["path"], a["size"]) for a in adds]

    def read(self, files: Sequence[File]) -> Iterator[pa.RecordBatch]:
        """The rows of files, in the columns of `fields`."""
        stored = [name for name in self.columns if name != FILE]
        for file in files:
            source = Files((file.uri,), self.schema, self.is_dated, self.store)
            for batch in dataset(source).to_batches(columns=stored, batch_size=_BATCH_ROWS):
                if batch.num_rows:
                    yield self._complete(batch, file)

    def _complete(self, batch: pa.RecordBatch, file: File) -> pa.RecordBatch:
        arrays = [
            pa.repeat(file.uri, batch.num_rows)
            if f.name == FILE
            else batch.column(f.name).cast(f.type)
            for f in self.fields
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self.fields)

    def _file(self, path: str, size: int) -> File:
        return File(f"{self.uri}/{unquote(path)}", size)


class _Part(InputPartition):
    """Files that one task reads."""

    def __init__(self, files: Sequence[File]) -> None:
        super().__init__(None)
        self.files = files


def source_of(name: str, table: StoredTable) -> type[DataSource]:
    """A data source of this table alone, to be registered: its options never reach Spark's."""

    class TableSource(DataSource):
        """The table."""

        @classmethod
        def name(cls) -> str:
            """Under which Spark finds it."""
            return name

        def schema(self) -> str:
            """Columns in Spark's SQL."""
            return sql_columns(table.fields)

        def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002  Spark's
            """Reads one version."""
            return _Reader(table)

        def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: ARG002, N802
            """Reads versions as they come."""
            return _StreamReader(table)

    return TableSource


class _Reader(DataSourceReader):
    def __init__(self, table: StoredTable) -> None:
        self.table = table

    def partitions(self) -> Sequence[InputPartition]:
        """One task for each file. Without any Spark makes a task of its own, that has no files."""
        files = self.table.snapshot(self.table.version)
        return [_Part([file]) for file in files] or [_Part([])]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a task."""
        yield from self.table.read(_files_of(partition))


class _StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Offsets: {"reservoirId", "reservoirVersion", "index", "isStartingVersion"}.

    The next file to read is that with the index, of the version: of all its files if it is the
    starting one, else of those that it appends.
    """

    def __init__(self, table: StoredTable) -> None:
        self.table = table
        self.last: int | None = None

    def initialOffset(self) -> Offset:  # noqa: N802  Spark's name
        """The table as it is when its query starts first."""
        live = self.table.open()
        return _offset(str(live.metadata().id), live.version(), 0, is_starting=True)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802  as above
        """Read up to the version that the table has now."""
        self.last = self.table.open().version()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802  as above
        """Bytes of a micro-batch."""
        return ReadMaxBytes(self.table.max_bytes)

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802  as above
        """Where the next micro-batch ends: at least one file later, if there is one."""
        last = self.table.open().version() if self.last is None else self.last
        left = None if isinstance(limit, ReadAllAvailable) else self.table.max_bytes
        version, index, is_starting = _place(start)
        is_new = False
        while is_starting or version <= last:
            files = self._files(version, is_starting=is_starting)
            for file in files[index:]:
                if left is not None and left < file.size and left < self.table.max_bytes:
                    return _offset(start["reservoirId"], version, index, is_starting=is_starting)
                left = None if left is None else left - file.size
                index, is_new = index + 1, True
            version, index, is_starting = version + 1, 0, False
        if not is_new:
            return start
        return _offset(start["reservoirId"], version, index, is_starting=is_starting)

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """One task for each file between two offsets."""
        return [_Part([file]) for file in self._between(start, end)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a task."""
        yield from self.table.read(_files_of(partition))

    def _between(self, start: Offset, end: Offset) -> Iterator[File]:
        version, index, is_starting = _place(start)
        last, last_index, last_is_starting = _place(end)
        while version < last or (version == last and is_starting == last_is_starting):
            stop = last_index if (version, is_starting) == (last, last_is_starting) else None
            if stop != 0:
                files = self._files(version, is_starting=is_starting)
                yield from islice(files, index, stop)
            version, index, is_starting = version + 1, 0, False

    def _files(self, version: int, *, is_starting: bool) -> list[File]:
        return self.table.snapshot(version) if is_starting else self.table.appended(version)


def _files_of(partition: InputPartition) -> Sequence[File]:
    if not isinstance(partition, _Part):
        raise TypeError(f"{partition} is not of this source")
    return partition.files


def _offset(table_id: str, version: int, index: int, *, is_starting: bool) -> Offset:
    return {
        "reservoirId": table_id,
        "reservoirVersion": version,
        "index": index,
        "isStartingVersion": is_starting,
    }


def _place(offset: Offset) -> tuple[int, int, bool]:
    return offset["reservoirVersion"], offset["index"], offset["isStartingVersion"]
