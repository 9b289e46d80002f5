"""DuckDB as rules see it: relations by name, times as TIMESTAMP in UTC, bounded memory."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import takewhile
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa

from quotaflow.udfs.engine.instances import Instance, borrowed
from quotaflow.udfs.engine.rule import Files, Relation, Rule, Walk
from quotaflow.udfs.stores import key_of

if TYPE_CHECKING:
    from pyarrow.dataset import Dataset

DEFAULT_MEMORY_MB = 512
_BATCH_ROWS = 65_536
_TYPES = {
    **{"string": "VARCHAR", "large_string": "VARCHAR", "string_view": "VARCHAR"},
    **{"binary": "BLOB", "large_binary": "BLOB", "binary_view": "BLOB", "bool": "BOOLEAN"},
    **{"int8": "TINYINT", "int16": "SMALLINT", "int32": "INTEGER", "int64": "BIGINT"},
    **{"float": "FLOAT", "double": "DOUBLE", "date32[day]": "DATE"},
}
_SCHEMA = "MAP(VARCHAR, STRUCT(name VARCHAR, type VARCHAR, default_value VARCHAR))"


@dataclass(frozen=True, slots=True)
class Selection:
    """What a rule reads of a relation: SQL for its rows, and the relation made of these.

    `last_of`: only the last row of each of these columns' values, by event_time. `files` are those
    of the relation that may have such rows; None: all that the database has. `in_files` is true for
    all these rows, over times as files have them: by a condition on a time that it computes first,
    DuckDB opens each row group as soon as another condition has an OR or an IN.
    """

    where: str = "true"
    last_of: tuple[str, ...] = ()
    files: Files | None = None
    in_files: str = "true"


@dataclass(slots=True)
class Database:
    """A DuckDB database of one task. Rules run in it one after the other.

    All but macros is of the connection alone: a later task sees nothing of it.
    """

    instance: Instance
    connection: duckdb.DuckDBPyConnection
    relations: Mapping[str, Relation]
    _kept: set[str] = field(default_factory=set)
    _shared: dict[str, str] = field(default_factory=dict)
    _registered: int = 0
    _views: dict[str, str] = field(default_factory=dict)
    _copied: dict[str, str] = field(default_factory=dict)

    def over(self, relations: Mapping[str, Relation]) -> "Database":
        """The same connection, for rules over other relations from now on."""
        return Database(self.instance, self.connection, relations)

    def compute(
        self, rule: Rule, selections: Mapping[str, Selection], where: str = "true"
    ) -> Iterator[pa.RecordBatch]:
        """The rows of a rule for which `where` is true, in batches of the rule's schema.

        The rule sees the relations named in `selections`. Raises duckdb.Error, and pa.ArrowInvalid
        for a value that the declared type cannot have.
        """
        self.instance.add_macros(rule.macros)
        for name, selection in selections.items():
            self._add_view(name, self._selected(name, selection))
        for name, rows in rule.rows.items():
            self._register(name, rows)
        for name, sql in rule.views.items():
            self._add_shared(name, sql)
        for walk in rule.walks:
            self._run(walk, rule.parameters)
        columns = ", ".join(f'"{name}"' for name in rule.schema.names)
        sql = f"SELECT {columns} FROM (\n{rule.sql}\n) WHERE {where}"
        yield from _cast(self._read(sql, rule.parameters), rule.schema)

    def keep(self, name: str, columns: Sequence[str], selection: Selection) -> None:
        """Read these rows and columns of a relation once; the relation has no others from then on.

        Rows that exceed the memory go to the temporary folder.
        """
        listed = ", ".join(f'"{column}"' for column in columns)
        sql = f"SELECT {listed} FROM ({self._selected(name, selection)})"
        self.connection.execute(f'CREATE TEMP TABLE "kept {name}" AS {sql}')
        self._kept.add(name)

    def query(self, sql: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """The rows of one query over all relations, in batches of these types."""
        for name in self.relations:
            self._add_view(name, self._source(name))
        yield from _cast(self._read(sql, {}), schema)

    def _run(self, walk: Walk, parameters: Mapping[str, object]) -> None:
        rows = walk.function(iter(self._read(walk.sql, parameters)))
        self._register(walk.name, pa.Table.from_batches(rows, walk.schema))

    def _read(self, sql: str, parameters: Mapping[str, object]) -> pa.RecordBatchReader:
        used = {name: value for name, value in parameters.items() if _names(sql, name)}
        # Without values DuckDB need not look for places of them in the text.
        return self.connection.sql(sql, params=used or None).to_arrow_reader(_BATCH_ROWS)

    def _add_view(self, name: str, sql: str) -> None:
        if self._views.get(name) != sql:
            self.connection.execute(f'CREATE OR REPLACE TEMP VIEW "{name}" AS {sql}')
            self._views[name] = sql

    def _add_shared(self, name: str, sql: str) -> None:
        """The rows of a shared view, computed once for all rules that read the same of its inputs.

        To plan a text takes longer than to compute few rows, and several texts read most views.
        """
        inputs = [self._views[word] for word in re.findall(r"\w+", sql) if word in self._views]
        state = "\n".join([sql, *inputs])
        if self._shared.get(name) != state:
            self.connection.execute(f'CREATE OR REPLACE TEMP TABLE "shared {name}" AS {sql}')
            self._shared[name] = state
            self._views.pop(name, None)
        # With its state in a comment, so that views that read this one see a change.
        self._add_view(name, f'SELECT * FROM "shared {name}" -- {hash(state)}')

    def _register(self, name: str, rows: pa.Table) -> None:
        """A table in memory as a relation."""
        self._registered += 1
        relation = f"rows {self._registered} of {name}"
        self.connection.register(relation, rows)
        self._add_view(name, _plain_times(f'"{relation}"', rows.schema))

    def _selected(self, name: str, selection: Selection) -> str:
        source = self._source(name, selection.files, selection.in_files)
        sql = f"{source} WHERE {selection.where}"
        if not selection.last_of:
            return sql
        key = ", ".join(f'"{column}"' for column in selection.last_of)
        return f"{sql} QUALIFY row_number() OVER (PARTITION BY {key} ORDER BY event_time DESC) = 1"

    def _source(self, name: str, files: Files | None = None, in_files: str = "true") -> str:
        if name in self._kept:
            return f'SELECT * FROM "kept {name}"'
        relation = files or self.relations[name]
        if isinstance(relation, pa.Table):
            self.connection.register(f"rows of {name}", relation)
            return _plain_times(f'"rows of {name}"', relation.schema)
        if relation.in_memory:
            return self._in_memory(name, relation)
        return self._from_files(name, relation, in_files)

    def _from_files(self, name: str, files: Files, in_files: str) -> str:
        if files.store is not None and files.paths:
            self.connection.register(f"objects of {name}", dataset(files))
            return _plain_times(f'"objects of {name}"', files.schema, in_files)
        return _plain_times(files_sql(files), files.schema, in_files)

    def _in_memory(self, name: str, files: Files) -> str:
        """The rows of files in a table: to bind files takes longer than to read few rows."""
        state = repr(files.paths)
        if self._copied.get(name) != state:
            sql = self._from_files(name, files, "true")
            self.connection.execute(f'CREATE OR REPLACE TEMP TABLE "copy of {name}" AS {sql}')
            self._copied[name] = state
        # With its state in a comment, so that views that read this one see a change.
        return f'SELECT * FROM "copy of {name}" /* {hash(state)} */'


def files_sql(files: Files) -> str:
    """The rows of files as a FROM clause, in the columns of their schema.

    The columns are given, so to bind the clause opens no file. To run it opens those files that
    may have rows by conditions on columns in their paths.
    """
    types = {field.name: sql_type(field.type) for field in files.schema}
    if not files.paths:
        columns = ", ".join(
            f"CAST(NULL AS {kind}) AS {quoted_name(name)}" for name, kind in types.items()
        )
        return f"(SELECT {columns} WHERE false)"
    in_paths = {name: types.pop(name) for name in _columns_in(files) if name in types}
    columns = ", ".join(
        f"{_item(name)}={{name: {_item(name)}, type: {_item(kind)}, default_value: NULL}}"
        for name, kind in types.items()
    )
    dates = ", ".join(f"{_text(name)}: {kind}" for name, kind in in_paths.items())
    hive = f"true, hive_types = {{{dates}}}" if in_paths else "false"
    paths = ", ".join(map(_text, files.paths))
    # As text: to bind an expression for each column takes longer than to read few rows.
    schema = f"CAST({_text(f'{{{columns}}}')} AS {_SCHEMA})"
    return f"read_parquet([{paths}], schema = {schema}, hive_partitioning = {hive})"


def _columns_in(files: Files) -> list[str]:
    """The columns that are in the folders of files: the day, and in some tables others."""
    folders = reversed(files.paths[0].split("/")[:-1]) if files.is_dated else ()
    return [folder.partition("=")[0] for folder in takewhile(lambda each: "=" in each, folders)]


def sql_type(kind: pa.DataType) -> str:
    """A type of a Delta table as DuckDB names it."""
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return f"{sql_type(kind.value_type)}[]"
    if pa.types.is_map(kind):
        return f"MAP({sql_type(kind.key_type)}, {sql_type(kind.item_type)})"
    if pa.types.is_struct(kind):
        fields = (f"{quoted_name(each.name)} {sql_type(each.type)}" for each in kind)
        return f"STRUCT({', '.join(fields)})"
    if pa.types.is_timestamp(kind):
        return "TIMESTAMP" if kind.tz is None else "TIMESTAMPTZ"
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision}, {kind.scale})"
    return _TYPES[str(kind)]


def quoted_name(name: str) -> str:
    """A name of a column or relation in SQL."""
    return '"' + name.replace('"', '""') + '"'


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _item(value: str) -> str:
    """A text within that of a map or struct."""
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def dataset(files: Files) -> "Dataset":
    """Files of an object store, which DuckDB reads through Arrow: its wheel has no client of one.

    Conditions and columns of a query reach Arrow, which reads only row groups and columns needed.
    """
    from pyarrow import dataset as ds  # noqa: PLC0415  only object stores need it

    if files.store is None:
        raise AssertionError("files on disk are read by DuckDB itself")
    in_paths = pa.schema([field for field in files.schema if field.name in _columns_in(files)])
    return ds.dataset(
        [key_of(path) for path in files.paths],
        schema=files.schema,
        format="parquet",
        filesystem=files.store.filesystem(),
        partitioning=ds.partitioning(in_paths, flavor="hive") if files.is_dated else None,
        partition_base_dir=key_of(files.store.uri),
    )


def _plain_times(source: str, schema: pa.Schema, where: str = "true") -> str:
    """SELECT of the schema's columns, with times as TIMESTAMP.

    Files of Spark and of delta-rs have two types of times. A CAST would go by the session's zone,
    and takes six times as long.
    """
    columns = ", ".join(
        f'make_timestamp(epoch_us("{field.name}")) AS "{field.name}"'
        if pa.types.is_timestamp(field.type)
        else f'"{field.name}"'
        for field in schema
    )
    # Nested, so that conditions on times see TIMESTAMP and not what the files have.
    return f"SELECT * FROM (SELECT {columns} FROM {source} WHERE {where})"


def _names(sql: str, parameter: str) -> bool:
    return re.search(rf"\${parameter}\b", sql) is not None


def _cast(batches: pa.RecordBatchReader, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Batches in declared types. A sum is a HUGEINT: one that is too large fails here."""
    for batch in batches:
        rows = pa.Table.from_batches([batch]).cast(schema)
        yield from rows.combine_chunks().to_batches()


@contextmanager
def opened(
    relations: Mapping[str, Relation], memory_mb: int = DEFAULT_MEMORY_MB, threads: int = 1
) -> Iterator[Database]:
    """A database over these relations. What exceeds its memory goes to a temporary folder."""
    with borrowed(memory_mb, threads) as instance, instance.connected() as connection:
        yield Database(instance, connection, relations)
