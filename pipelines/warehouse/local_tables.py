"""Where a local database has the rows of tables: in files of a folder or an object store."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from quotaflow.pipelines.errors import ConfigError, DamagedError, NeverMadeError
from quotaflow.pipelines.warehouse import delta_files
from quotaflow.pipelines.warehouse.delta_files import DataFile
from quotaflow.pipelines.warehouse.once import Once
from quotaflow.pipelines.warehouse.place import Place
from quotaflow.pipelines.warehouse.query_times import Bounds
from quotaflow.schemas.migrations import SchemaVersionError, check_readable
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.udfs.engine.database import dataset, files_sql, quoted_name
from quotaflow.udfs.engine.rule import Files

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from pyarrow.dataset import Dataset


@dataclass(frozen=True, slots=True)
class Part:
    """Rows of a table: SQL for them, by the name of `rows` if Arrow has them.

    `is_small`: they are read at once.
    """

    sql: Callable[[str], str]
    rows: "Dataset | pa.Table | None" = None
    is_small: bool = False


class LocalTables(Protocol):
    """The tables of a local database."""

    @property
    def root(self) -> str:
        """Their place, as errors name it."""
        ...

    @property
    def folders(self) -> tuple[str, ...]:
        """The folders that the database may read."""
        ...

    def is_made(self, table: str) -> bool:
        """Whether a table exists."""
        ...

    def damaged(self) -> DamagedError | None:
        """What is wrong with a file of a table; None: nothing."""
        ...

    def leaves_out(self, name: str, bounds: Bounds, /) -> bool:
        """Whether files of a table that exists stay closed for rows of these times."""
        ...

    def part(self, name: str, bounds: Bounds, /) -> Part:
        """At least the rows of a table within these times; none if it does not exist."""
        ...


@dataclass(frozen=True)
class FolderTables:
    """The tables of a place, each in the version that it has when it is first named here."""

    place: Place
    left_out: frozenset[str] = frozenset()
    _opened: "Once[str, DeltaTable]" = field(default_factory=Once)
    _listed: Once[str, list[DataFile]] = field(default_factory=Once)

    @property
    def root(self) -> str:
        """Their place."""
        return self.place.root

    @property
    def folders(self) -> tuple[str, ...]:
        """The place."""
        return (self.place.root,)

    def is_made(self, table: str) -> bool:
        """Whether a table exists."""
        is_there = table in self._opened.made or self.place.is_made(table)
        return is_there and table not in self.left_out

    def damaged(self) -> DamagedError | None:
        """What is wrong with a file of an opened table on disk; None: nothing."""
        if self.place.store is not None:
            return None
        from quotaflow.pipelines.warehouse import damage  # noqa: PLC0415  only after an error

        problems = (
            damage.of_files(self.place.root, name, table)
            for name, table in list(self._opened.made.items())
        )
        return next(filter(None, problems), None)

    def look_up(self, name: str) -> None:
        """Find the files of a table, if it exists, for who asks for them later."""
        if self.is_made(name):
            self._files(name)

    def table(self, name: str) -> "DeltaTable":
        """A table as delta-rs opens it. Raises NeverMadeError, or an error of Delta."""
        if not self.is_made(name):
            raise NeverMadeError(name, self.place.root)
        return self._opened.get(name, partial(self.place.open, name))

    def leaves_out(self, name: str, bounds: Bounds) -> bool:
        """Whether files of a table that exists stay closed for rows of these times."""
        return self.is_made(name) and len(self._chosen(name, bounds)) < len(self._files(name))

    def part(self, name: str, bounds: Bounds) -> Part:
        """The rows of the files of a table that may have rows of these times.

        The live columns, and declared ones that they lack, as null. Raises ConfigError for a table
        of another schema version or that DuckDB cannot read.
        """
        if not self.is_made(name):
            empty = files_sql(Files((), TABLES[name].arrow))
            return Part(lambda _: f"SELECT * FROM {empty}", is_small=self.place.store is None)
        files = self._chosen(name, bounds)
        paths = tuple(file.path for file in files)
        schema = _with_declared(pa.schema(self.table(name).schema()), TABLES[name].arrow)
        chosen = Files(paths, schema, bool(TABLES[name].partitioning), self.place.store)
        columns = ", ".join(quoted_name(column.name) for column in schema)
        if chosen.store and paths:
            objects = dataset(chosen)
            return Part(lambda named: f"SELECT {columns} FROM {quoted_name(named)}", objects)
        text = f"SELECT {columns} FROM {files_sql(chosen)}"
        is_small = delta_files.are_small(files, schema) and self.place.store is None
        return Part(lambda _: text, is_small=is_small)

    def _chosen(self, name: str, bounds: Bounds) -> list[DataFile]:
        """The files of a table that may have rows of these times."""
        return [each for each in self._files(name) if each.may_have(bounds.start, bounds.end)]

    def _files(self, name: str) -> list[DataFile]:
        """All files of a table, looked up once."""
        return self._listed.get(name, partial(self._listed_now, name))

    def _listed_now(self, name: str) -> list[DataFile]:
        table, uri, root = self.table(name), self.place.path(name), self.place.root
        try:
            check_readable(name, table.metadata().configuration)
        except SchemaVersionError as error:
            raise ConfigError(str(error)) from None
        files = delta_files.of_version(table, uri, TABLES[name].time)
        if outside := [file.path for file in files if not _is_below(file.path, root)]:
            raise ConfigError(
                f"{uri} has a file outside of {root}, which is not read: {outside[0]}"
            )
        return files


def _is_below(path: str, root: str) -> bool:
    return path.startswith(f"{root}/") and ".." not in path.split("/")


def _with_declared(live: pa.Schema, declared: pa.Schema) -> pa.Schema:
    """The live columns, and those that the next writer adds to a table of an older release."""
    missing = [field for field in declared if field.name not in live.names]
    return pa.schema([*live, *missing])
