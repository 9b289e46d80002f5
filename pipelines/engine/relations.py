"""The relations that computations read, from the tables of a folder."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from quotaflow.pipelines.engine.computation import CARRIED, Computation
from quotaflow.pipelines.warehouse import delta_files
from quotaflow.pipelines.warehouse.delta_files import DataFile
from quotaflow.pipelines.warehouse.time_ranges import TimeRange
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.udfs.engine.rule import Files, Relation


@dataclass(frozen=True)
class FolderRelations:
    """Tables of a folder, each in the version it has when a computation first names it."""

    folder: Path
    _files: dict[str, list[DataFile]] = field(default_factory=dict)

    def files(self, name: str) -> list[DataFile]:
        """The files of a table; none if it does not exist."""
        if name not in self._files:
            self._files[name] = self._listed(name)
        return self._files[name]

    def of(self, computation: Computation, ranges: Iterable[TimeRange]) -> Mapping[str, Relation]:
        """The relations that a computation reads for these ranges."""
        ranges = tuple(ranges)
        start = ranges[0].start - computation.lookback
        relations = {
            name: self._relation(name, start if is_within else None, ranges[-1].end)
            for name, is_within in computation.lookups.items()
        }
        if not computation.reads_all_facts:
            relations[computation.facts] = self._relation(computation.facts, start, ranges[-1].end)
        if computation.carry is not None:
            since = start - computation.carry.reach
            relations[CARRIED] = self._relation(computation.table, since, ranges[0].start)
        return relations

    def _relation(self, name: str, start: datetime | None, end: datetime | None) -> Files:
        table = TABLES[name]
        # Without a start the whole table is looked up: rows of later times may matter too.
        paths = [
            file.path for file in self.files(name) if start is None or file.may_have(start, end)
        ]
        return Files(tuple(sorted(paths)), table.arrow, is_dated=bool(table.partitioning))

    def _listed(self, name: str) -> list[DataFile]:
        from deltalake import DeltaTable  # noqa: PLC0415  --help need not wait for it

        folder = self.folder / name
        if not (folder / "_delta_log").is_dir():
            return []
        return delta_files.of_version(DeltaTable(folder), folder, TABLES[name].time)
