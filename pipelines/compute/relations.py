"""The relations that tasks read: the files of tables in a folder or an object store."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from quotaflow.pipelines.compute import texts
from quotaflow.pipelines.compute.computation import CARRIED
from quotaflow.pipelines.compute.schedule import Part
from quotaflow.pipelines.warehouse import delta_files
from quotaflow.pipelines.warehouse.delta_files import DataFile
from quotaflow.pipelines.warehouse.place import Place
from quotaflow.pipelines.warehouse.time_ranges import TimeRange
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.udfs.engine.rule import Files


@dataclass(frozen=True, slots=True)
class FolderRelations:
    """Tables of a place, each in the version that it has when it is first read here."""

    place: Place
    _files: dict[str, list[DataFile]] = field(default_factory=dict)

    def files(self, name: str) -> list[DataFile]:
        """The files of a table; none if it does not exist. Raises ConfigError as `of_version`."""
        if name not in self._files:
            self._files[name] = self._listed(name)
        return self._files[name]

    def within(self, name: str, ranges: Iterable[TimeRange]) -> list[DataFile]:
        """The files of a table that may have rows of these ranges."""
        ranges = tuple(ranges)
        return [
            file
            for file in self.files(name)
            if any(file.may_have(each.start, each.end) for each in ranges)
        ]

    def for_parts(self, parts: Iterable[Part]) -> Mapping[str, Files]:
        """The relations that one task reads for these parts."""
        paths: dict[str, tuple[str, set[str]]] = {}
        for part in parts:
            for relation, table, start, end in reads(part):
                _, matching = paths.setdefault(relation, (table, set()))
                matching.update(
                    file.path for file in self.files(table) if file.may_have(start, end)
                )
        return {
            relation: self.place.files(TABLES[table], sorted(matching))
            for relation, (table, matching) in paths.items()
        }

    def relation(self, name: str) -> Files:
        """All files of a table."""
        return self.place.files(TABLES[name], (file.path for file in self.files(name)))

    def _listed(self, name: str) -> list[DataFile]:
        if not self.place.is_made(name):
            return []
        live = self.place.open(name)
        return delta_files.of_version(live, self.place.path(name), TABLES[name].time)


_Read = tuple[str, str, datetime | None, datetime | None]


def reads(part: Part) -> Iterable[_Read]:
    """Each relation of a part with its table, and the time of which rows are read."""
    computation = part.computation
    first, end = part.ranges[0].start, part.ranges[-1].end
    start = first - computation.lookback
    for name, is_within in computation.lookups.items():
        yield (name, name, start, end) if is_within else (name, name, None, None)
    if not computation.reads_all_facts:
        yield computation.facts, computation.facts, start, end
    if computation.carry is not None:
        before = computation.carry.before(first)
        yield CARRIED, computation.table, before.start, before.end


def named_in(parts: Iterable[Part]) -> set[str]:
    """All names in the texts and conditions of the parts, columns among them."""
    named = {"event_time", "record_time", "event_date"}
    for part in parts:
        named |= texts.words(part.computation.relevant)
        split = part.computation.split
        named |= set[str]().union(*map(texts.words, (*split.key, *split.or_by, split.shared)))
        for sql in texts.texts_of(part.computation.rule):
            named |= texts.words(sql)
    return named


def time_read(parts: Sequence[Part]) -> TimeRange:
    """The time of the facts that parts read."""
    starts = [part.ranges[0].start - part.computation.lookback for part in parts]
    ends = [part.ranges[-1].end for part in parts]
    is_open = any(end is None for end in ends)
    return TimeRange(min(starts), None if is_open else max(end for end in ends if end))
