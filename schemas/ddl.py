"""Tables and views as CREATE text, and what a live table lacks."""

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import pyarrow as pa
from pyarrow.types import is_nested

from quotaflow.schemas.migrations import SCHEMA_VERSION, SCHEMA_VERSION_PROPERTY
from quotaflow.schemas.table import BINARY, BOOLEAN, Table, sql_type
from quotaflow.schemas.view import View

if TYPE_CHECKING:
    from deltalake import DeltaTable

# Only features that bind writers: any Delta client can read (Spark, delta-rs, DuckDB, Trino).
_PROPERTIES = {
    "delta.enableDeletionVectors": "false",
    "delta.checkpointPolicy": "classic",
    SCHEMA_VERSION_PROPERTY: str(SCHEMA_VERSION),
}

_UNORDERED = (BINARY, BOOLEAN)
_LIST_OF_STRUCTS = re.compile(r"array<struct<([^<>()]*)>>")

KEPT_SINCE = "quotaflow.kept_since"
"""Property of a table whose old rows were removed: from this time on all are there."""


class IncompatibleTableError(ValueError):
    """A live table has a column of another type than the one declared."""


def quoted(text: str) -> str:
    """A SQL string literal."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def create(table: Table, target: str) -> str:
    """CREATE TABLE IF NOT EXISTS for `target`, a table name or delta.`/path`."""
    columns = ",\n".join(
        f"  `{column.name}` {sql_type(column.type)} COMMENT {quoted(column.comment)}"
        for column in table.columns
    )
    stated = properties(table)
    listed = ", ".join(f"{quoted(key)} = {quoted(value)}" for key, value in stated.items())
    return (
        f"CREATE TABLE IF NOT EXISTS {target} (\n{columns}\n)\nUSING delta\n"
        f"COMMENT {quoted(table.comment)}\n{_layout(table)}TBLPROPERTIES ({listed})"
    )


def properties(table: Table) -> dict[str, str]:
    """The properties of a new table."""
    return _PROPERTIES | {"delta.dataSkippingStatsColumns": ",".join(lookup_key(table))}


def create_view(view: View) -> str:
    """CREATE OR REPLACE VIEW in Spark's SQL, for a schema that has the tables under their names."""
    columns = ",\n".join(
        f"  `{column.name}` COMMENT {quoted(column.comment)}" for column in view.columns
    )
    return (
        f"CREATE OR REPLACE VIEW {view.name} (\n{columns}\n)\n"
        f"COMMENT {quoted(view.comment)}\nAS\n{view.sql}"
    )


def live_types(live: "DeltaTable") -> dict[str, str]:
    """Each column of a table with its type as Spark names it.

    A column of another writer may have a type that no table of ours has: then as Arrow names it.
    """
    types: dict[str, str] = {}
    for column in pa.schema(live.schema()):
        try:
            types[column.name] = sql_type(column.type)
        except KeyError:
            types[column.name] = str(column.type)
    return types


def difference(table: Table, target: str, live: Mapping[str, str]) -> str | None:
    """ALTER TABLE that adds the columns `live` (name to Spark type text) lacks; None if none.

    Of a list of structs, it adds the fields that are missing. Raises IncompatibleTableError when a
    live column has another type.
    """
    missing = []
    for column in table.columns:
        seen, declared = live.get(column.name), sql_type(column.type)
        if seen is None:
            missing.append(f"`{column.name}` {declared} COMMENT {quoted(column.comment)}")
        elif _plain(seen) != _plain(declared):
            if (fields := _missing_fields(seen, declared)) is None:
                raise IncompatibleTableError(
                    f"{target}.{column.name} is {seen} and should be {declared}: "
                    "rebuild the table or use another warehouse"
                )
            missing += [f"`{column.name}`.element.`{name}` {kind}" for name, kind in fields]
    return f"ALTER TABLE {target} ADD COLUMNS ({', '.join(missing)})" if missing else None


def renamed(target: str, renames: Iterable[tuple[str, str]], live: Mapping[str, str]) -> list[str]:
    """UPDATEs that copy renamed columns and fields; none for old ones that the table lacks.

    `live` has the types of the table's columns by name. They change only rows in which a new column
    or field is null and the old one is not.
    """
    nested = [pair for pair in renames if "." in pair[0]]
    statements = [sql for old, new in nested if (sql := _renamed_field(target, old, new, live))]
    pairs = [(old, new) for old, new in renames if old in live]
    if not pairs:
        return statements
    values = ", ".join(f"`{new}` = coalesce(`{new}`, `{old}`)" for old, new in pairs)
    rows = " OR ".join(f"(`{new}` IS NULL AND `{old}` IS NOT NULL)" for old, new in pairs)
    return [f"UPDATE {target} SET {values} WHERE {rows}", *statements]


def _renamed_field(target: str, old: str, new: str, live: Mapping[str, str]) -> str | None:
    """UPDATE that copies a field of a list of structs."""
    (column, old_field), (_, new_field) = old.split("."), new.split(".")
    fields = _fields(live.get(column, "")) or {}
    if old_field not in fields:
        return None
    copied = f"coalesce(p.`{new_field}`, p.`{old_field}`)"
    values = {name: f"p.`{name}`" for name in fields} | {new_field: copied}
    element = ", ".join(f"{quoted(name)}, {value}" for name, value in values.items())
    return (
        f"UPDATE {target} SET `{column}` = transform(`{column}`, p -> named_struct({element})) "
        f"WHERE exists(`{column}`, p -> p.`{new_field}` IS NULL AND p.`{old_field}` IS NOT NULL)"
    )


def _layout(table: Table) -> str:
    if table.partitioning:
        return f"PARTITIONED BY ({', '.join(table.partitioning)})\n"
    return f"CLUSTER BY ({', '.join(table.clustering)})\n" if table.clustering else ""


def lookup_key(table: Table) -> list[str]:
    """Columns whose bounds are kept of each file: of all, they take a tenth of what ingest does.

    Delta takes none of a type without an order, and of a partition it has the value.
    """
    ordered = {c.name for c in table.columns if c.type not in _UNORDERED and not is_nested(c.type)}
    names = dict.fromkeys((*table.key, table.time, *table.clustering))
    return [name for name in names if name in ordered and name not in table.partitioning]


def _fields(type_text: str) -> dict[str, str] | None:
    """The fields of a list of structs, name to type; None for another type."""
    listed = _LIST_OF_STRUCTS.fullmatch(_plain(type_text))
    return dict(each.split(":") for each in listed[1].split(",")) if listed else None


def _missing_fields(seen: str, declared: str) -> list[tuple[str, str]] | None:
    """The declared fields that a live list of structs lacks; None where the types differ more."""
    live, fields = _fields(seen), _fields(declared)
    if live is None or fields is None:
        return None
    if any(live.get(name, kind) != kind for name, kind in fields.items()):
        return None
    return [(name, kind.upper()) for name, kind in fields.items() if name not in live]


def _plain(type_text: str) -> str:
    return type_text.lower().replace(" ", "").replace("`", "")
