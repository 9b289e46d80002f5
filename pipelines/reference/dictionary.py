"""The data dictionary: every table and view by area, with what a row is and each column.

Types of views are those that DuckDB gives over empty tables, in Spark's names.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa

from quotaflow.pipelines.config import WarehouseSection
from quotaflow.pipelines.jobs.fillers import filler
from quotaflow.pipelines.warehouse import views
from quotaflow.pipelines.warehouse.folder_reader import FolderReader
from quotaflow.pipelines.warehouse.warehouse import Warehouse
from quotaflow.schemas.areas import AREAS
from quotaflow.schemas.table import TIMESTAMP, Table, sql_type
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.schemas.view import View

_HEAD = """\
# Data dictionary: every table and view

For people who write queries. Search this page for a name or a word. `quotaflow tables` says which
of these have rows now, and `quotaflow ddl NAME` prints one with the same meanings.

Times are UTC. Bytes are bytes, not kB. A column without a unit is a name or a number of things, or
says its unit in its meaning. A level says from where on there are rows: [levels](../levels.md).
"""
_MART = "mart"
_UNITS = (
    *(("_bytes_per_s", "bytes/s"), ("_rows_per_s", "rows/s"), ("_per_s", "1/s")),
    *(("_bytes_per_hour", "bytes/h"), ("_per_hour", "1/h")),
    *(("_ms", "ms"), ("_s", "s"), ("_bytes", "bytes"), ("_kb", "kB"), ("_mb", "MB")),
    *(("_percent", "%"), ("_percentage", "%"), ("_share", "0 to 1"), ("_ratio", "0 to 1")),
)


def text() -> str:
    """The page, in Markdown."""
    all_views = views.load()
    marts_first = sorted(all_views, key=lambda name: (all_views[name].kind != _MART, name))
    areas = {name: table.area for name, table in TABLES.items()}
    areas |= {name: all_views[name].area for name in marts_first}
    schemas = _schemas_of_views(all_views)
    parts = [_HEAD, *_contents(areas)]
    for area in AREAS:
        names = [name for name, own in areas.items() if own == area.name]
        parts += (
            [f"\n## {area.title}\n\n{_sentence(area.meaning[0].upper() + area.meaning[1:])}"]
            if names
            else []
        )
        for name in names:
            table = TABLES.get(name)
            parts.append(_table(table) if table else _view(all_views[name], schemas[name]))
    return "\n".join(parts)


def _schemas_of_views(all_views: Mapping[str, View]) -> dict[str, pa.Schema]:
    with TemporaryDirectory() as empty:
        warehouse = Warehouse(WarehouseSection(path=str(Path(empty) / "tables")))
        reader = FolderReader(warehouse).with_empty(frozenset(TABLES))
        return {name: reader.query(f"SELECT * FROM {name}").schema for name in all_views}


def _contents(areas: Mapping[str, str]) -> Iterator[str]:
    yield "| area | tables and views |\n| --- | --- |"
    for area in AREAS:
        links = ", ".join(f"[{name}](#{name})" for name, own in areas.items() if own == area.name)
        if links:
            yield f"| {area.title} | {links} |"


def _table(table: Table) -> str:
    facts = [
        f"Table, filled by `quotaflow {filler(table.name)}`",
        f"Level `{table.level}`",
        f"Key {_listed(table.key)}",
        f"Newest by `{table.time}`",
    ]
    rows = [(column.name, column.type, column.comment) for column in table.columns]
    return _described(table.name, table.comment, facts, table.empty, rows)


def _view(view: View, schema: pa.Schema) -> str:
    facts = [f"View ({view.kind}), {view.grain}", f"Level `{view.level}`"]
    sources = sorted(views.sources(view))
    facts += [f"Reads {_listed(sources)}"] if sources else []
    rows = [(c.name, schema.field(c.name).type, c.comment) for c in view.columns]
    return _described(view.name, view.description, facts, view.empty, rows)


def _described(
    name: str, meaning: str, facts: list[str], empty: str, rows: list[tuple[str, pa.DataType, str]]
) -> str:
    lines = [f"\n### {name}\n", _sentence(meaning), f"\n{_sentence('. '.join(facts))}"]
    lines += [f"\nWithout rows {_sentence(empty)}"] if empty else []
    lines += ["\n| column | type | unit | meaning |", "| --- | --- | --- | --- |"]
    lines += [
        f"| `{column}` | `{sql_type(_in_utc(kind))}` |{_unit(column, kind)} | {_cell(words)} |"
        for column, kind, words in rows
    ]
    return "\n".join(lines)


def _unit(column: str, kind: pa.DataType) -> str:
    """A unit with a space before it, or nothing."""
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        return ""
    unit = next((unit for end, unit in _UNITS if f"_{column}".endswith(end)), "")
    return f" {unit}" if unit else ""


def _in_utc(kind: pa.DataType) -> pa.DataType:
    """The type with the time zone of our declarations, also within lists and structs."""
    if pa.types.is_timestamp(kind):
        return TIMESTAMP
    if pa.types.is_list(kind):
        return pa.list_(_in_utc(kind.value_type))
    if pa.types.is_map(kind):
        return pa.map_(_in_utc(kind.key_type), _in_utc(kind.item_type))
    if pa.types.is_struct(kind):
        return pa.struct([each.with_type(_in_utc(each.type)) for each in kind])
    return kind


def _listed(names: list[str] | tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _sentence(words: str) -> str:
    return f"{words}." if not words.endswith(".") else words


def _cell(words: str) -> str:
    return words.replace("|", "\\|").replace("<", "&lt;")
