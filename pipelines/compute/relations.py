"""The relations that tasks read: the files of tables in a folder or an object store."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from quotaflow.pipelines.compute import texts
from quotaflow.pipelines.compute.computation import Computation
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

    def for_parts(self, parts: Iterable[Computation]) -> Mapping[str, Files]:
        """The relations that one task reads for these parts."""
        paths: dict[str, tuple[str, set[str]]] = {}
        for part in parts:
            for relation, table, time in part.reads():
                _, matching = paths.setdefault(relation, (table, set()))
                read = self.files(table) if time is None else self.within(table, [time])
                matching.update(file.path for file in read)
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


def named_in(parts: Iterable[Computation]) -> set[str]:
    """All names in the texts and conditions of the parts, columns among them."""
    named = {"event_time", "record_time", "event_date"}
    for part in parts:
        named |= texts.words(part.result.relevant)
        split = part.result.split
        named |= set[str]().union(*map(texts.words, (*split.key, *split.or_by, split.shared)))
        for sql in texts.texts_of(part.result.rule):
            named |= texts.words(sql)
    return named


def time_read(parts: Iterable[Computation]) -> TimeRange:
    """The time of the facts that parts read."""
    read = [part.facts_read() for part in parts]
    ends = [each.end for each in read if each.end]
    return TimeRange(
        min(each.start for each in read), max(ends) if len(ends) == len(read) else None
    )
