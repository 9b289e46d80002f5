"""Answers over tables of a folder or an object store, without a JVM."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pyarrow as pa

from quotaflow.pipelines.errors import ConfigError
from quotaflow.pipelines.results.answers.answer import Answer
from quotaflow.pipelines.results.answers.source import Source
from quotaflow.pipelines.warehouse import delta_files
from quotaflow.pipelines.warehouse.delta_files import DataFile
from quotaflow.schemas.migrations import SchemaVersionError, check_readable
from quotaflow.schemas.table import Table
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.udfs.engine.rule import Relation

if TYPE_CHECKING:
    from deltalake import DeltaTable


@dataclass
class FolderSource(Source):
    """The tables of a place, each in the version that it has when it is first named here."""

    _opened: "dict[str, DeltaTable]" = field(default_factory=dict, init=False)
    _files: dict[str, list[DataFile]] = field(default_factory=dict, init=False)

    @property
    def failures(self) -> tuple[type[Exception], ...]:
        """What `compute` raises if an answer cannot be computed."""
        from deltalake.exceptions import DeltaError  # noqa: PLC0415  --help need not wait for it

        return (*super().failures, DeltaError)

    def stamp(self, table: str) -> str | None:
        """Id and version of a table; None if it does not exist."""
        if not self.warehouse.place.is_made(table):
            return None
        live = self._live(table)
        return f"{live.metadata().id} {live.version()}"

    def prepare(self, _answers: Collection[Answer]) -> None:
        """Nothing: files are read while an answer is computed."""

    def changed(self, table: Table, _rows: pa.Table) -> None:
        """Open a table again when it is next named."""
        self._opened.pop(table.name, None)
        self._files.pop(table.name, None)

    def relation(self, name: str, start: datetime | None = None) -> Relation:
        """What a rule reads of a table: at least its rows from `start` on."""
        table = TABLES[name]
        if not self.warehouse.place.is_made(name):
            return table.arrow.empty_table()
        files = self._listed(name)
        # Not by `start`, so that all answers read the same rows in memory.
        in_memory = delta_files.are_small(files, table.arrow)
        paths = sorted(f.path for f in files if in_memory or f.may_have(start, None))
        return self.warehouse.place.files(table, paths, in_memory=in_memory)

    def newest(self, name: str) -> datetime | None:
        """The newest time of a table; None if it has no rows, or its files do not say it."""
        return _newest(self._listed(name)) if self.warehouse.place.is_made(name) else None

    def _listed(self, name: str) -> list[DataFile]:
        # To read the bounds of a month of files takes longer than most answers over them.
        if name not in self._files:
            self._files[name] = self._read_list(name)
        return self._files[name]

    def _read_list(self, name: str) -> list[DataFile]:
        live = self._live(name)
        try:
            check_readable(name, live.metadata().configuration)
        except SchemaVersionError as error:
            raise ConfigError(str(error)) from None
        return delta_files.of_version(live, self.warehouse.place.path(name), TABLES[name].time)

    def _live(self, name: str) -> "DeltaTable":
        # The first thread decides which version all of them read.
        return self._opened.get(name) or self._opened.setdefault(
            name, self.warehouse.place.open(name)
        )


def _newest(files: Sequence[DataFile]) -> datetime | None:
    """The newest time of files; None if they do not say it."""
    times = [file.last for file in files]
    stated = [time.astimezone(UTC) for time in times if time is not None]
    return max(stated) if stated and len(stated) == len(times) else None
