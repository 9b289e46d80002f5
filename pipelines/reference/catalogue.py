"""What the commands tables and describe say about tables and views."""

import re
import textwrap
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from typing import Any

from quotaflow.pipelines.errors import ConfigError, NeverMadeError
from quotaflow.pipelines.jobs import fillers
from quotaflow.pipelines.reference.search import (
    MOST_NAMES,
    Hit,
    NoRelationError,
    area_of,
    described,
    first_sentence,
    search,
)
from quotaflow.pipelines.terminal import grid, readable, values
from quotaflow.pipelines.warehouse import browsing, row_times, views
from quotaflow.pipelines.warehouse.reader import Reader
from quotaflow.schemas import levels
from quotaflow.schemas.areas import AREAS
from quotaflow.schemas.table import Table, sql_type
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.schemas.view import View
from quotaflow.udfs.counted import counted

COLUMNS = ["column", "type", "meaning"]
_VIEW = "view"
_MIN_MEANING = 30
_TYPO = 0.8
"""From so alike on a name is a slip."""
_MOST_NEAR = 5
_GAP = "  "
_MOST_COLUMNS, _MOST_LINES = 4, 3
"""Of a search on a terminal, columns of each table, and lines of each column."""


def checked_name(name: str) -> str:
    """The name, if a table or view has it. Raises ConfigError with what a search for it finds."""
    try:
        return browsing.checked_name(name)
    except ConfigError as error:
        if re.fullmatch(r"\w+", name) is None or get_close_matches(name, described(), 1, _TYPO):
            raise
        try:
            about = dict.fromkeys(hit.name for hit in search([name]) if hit.column is None)
        except NoRelationError:
            raise error from None
        if not about:
            raise
        listed = ", ".join([*about][:_MOST_NEAR])
        hint = f"about {name}: {listed}; `quotaflow tables {name}` says what each answers"
        raise ConfigError(f"no table {name} ({hint})") from None


def by_area(rows: Sequence[dict[str, Any]], width: int) -> Iterator[str]:
    """Rows of `extents` as a section per area: name, rows, newest event, and the question that the
    rows answer, or else what a row is.
    """
    wide = max(len(row["name"]) for row in rows)
    for area in AREAS:
        own = [row for row in rows if row["area"] == area.title]
        if own:
            yield from _wrapped(f"{area.title}: {area.meaning}", width, "", is_bold=True)
            for row in own:
                yield from _extent_lines(row, wide, width)
            yield ""


def _extent_lines(row: dict[str, Any], wide: int, width: int) -> Iterator[str]:
    rows = _VIEW if row["kind"] == _VIEW else _count(row["rows"])
    newest = readable.whole("time", row["last_event_time"] or "")[:16]
    head = f"  {row['name']:<{wide}}{_GAP}{rows:>11}{_GAP}{newest:<16}{_GAP}"
    meaning = row["question"] or first_sentence(row["meaning"]).removeprefix("One row per ")
    if width - len(head) < _MIN_MEANING:
        yield head.rstrip()
        yield from _wrapped(meaning, width, " " * 6)
        return
    first, *rest = _lines(meaning, width - len(head), max_lines=2, placeholder=" …") or [""]
    yield f"{head}{first}".rstrip()
    yield from (f"{' ' * len(head)}{line}" for line in rest)


def _count(rows: int | None) -> str:
    return "not made" if rows is None else f"{rows:,}"


def _wrapped(text: str, width: int, indent: str, *, is_bold: bool = False) -> Iterator[str]:
    lines = _lines(text, width, initial_indent=indent, subsequent_indent=indent)
    return (grid.bold(line) if is_bold else line for line in lines)


def _lines(text: str, width: int, **how: Any) -> list[str]:
    """Lines of a text in which no name with a hyphen is cut."""
    return textwrap.wrap(text, width, break_on_hyphens=False, **how)


def hit_lines(hits: Sequence[Hit], width: int) -> Iterator[str]:
    """Hits as text: each table once, with its question, and below it the columns that match."""
    names = list(dict.fromkeys(hit.name for hit in hits))
    printed: set[tuple[str, str]] = set()
    for name in names[:MOST_NAMES]:
        each = described()[name]
        meaning = each.question or first_sentence(each.comment)
        yield from _entry(name, meaning, width, "", is_bold=True)
        own = [(hit.column, hit.meaning) for hit in hits if hit.name == name and hit.column]
        columns = [column for column in own if column not in printed]
        for column, text in columns[:_MOST_COLUMNS]:
            yield from _entry(column, text, width, "    ", max_lines=_MOST_LINES, placeholder=" …")
        if repeated := ", ".join(column for column, text in own if (column, text) in printed):
            yield from _entry(repeated, "as above", width, "    ")
        printed.update(columns[:_MOST_COLUMNS])
        if more := columns[_MOST_COLUMNS:]:
            yield f"    and {counted(len(more), 'column')} more"
    if more_names := names[MOST_NAMES:]:
        yield f"and {counted(len(more_names), 'table')} more: --json has all"


def _entry(
    name: str, meaning: str, width: int, indent: str, *, is_bold: bool = False, **how: Any
) -> Iterator[str]:
    indents = {"initial_indent": indent, "subsequent_indent": f"{indent}    "}
    first, *rest = _lines(f"{name}  {meaning}", width, **indents, **how)
    head = f"{indent}{name}"
    yield (grid.bold(head) if is_bold else head) + first[len(head) :]
    yield from rest


def columns(reader: Reader, name: str) -> list[dict[str, Any]]:
    """A row of COLUMNS for each column; the types of a view are null while it has no tables."""
    table = TABLES.get(name)
    if table is not None:
        types = {column.name: sql_type(column.type) for column in table.columns}
    else:
        types = _view_types(reader, name)
    described: dict[str, Table | View] = {**TABLES, **views.load()}
    return [
        {"column": each.name, "type": types.get(each.name), "meaning": each.comment}
        for each in described[name].columns
    ]


def _view_types(reader: Reader, name: str) -> dict[str, str]:
    try:
        schema = reader.query(f"SELECT * FROM {name} LIMIT 0").schema
    except NeverMadeError:
        return {}
    types = {}
    for field in schema:
        try:
            types[field.name] = sql_type(field.type)
        except KeyError:  # a type that no table has
            types[field.name] = str(field.type).upper()
    return types


def description(name: str, rows: Sequence[dict[str, Any]], width: int) -> Iterator[str]:
    """A table or view as text: what it is, how it is filled, and its columns."""
    table, view = TABLES.get(name), views.load().get(name)
    comment = table.comment if table else view.comment if view else ""
    yield from _entry(name, comment, width, "", is_bold=True)
    yield ""
    facts = {
        "area": area_of(name).title,
        **(_of_table(table) if table else _of_view(view)),
        "--since": row_times.period(name, [row["column"] for row in rows]).meaning,
    }
    for label, fact in facts.items():
        if fact:
            yield from _lines(f"{label:<12}{fact}", width, subsequent_indent=" " * 12)
    yield ""
    wide = max(len(row["column"]) for row in rows)
    for row in rows:
        shown = " ".join(filter(None, [_short(row["type"]), "-", row["meaning"]]))
        line = f"{row['column']:<{wide}}  {values.visible(shown)}"
        yield from _lines(line, width, subsequent_indent=" " * (wide + 2))


def _short(type_name: str | None) -> str | None:
    """A type without the fields of structs, which JSON and CSV have."""
    if type_name is None or "STRUCT<" not in type_name:
        return type_name
    return "ARRAY<STRUCT>" if type_name.startswith("ARRAY<") else "STRUCT"


def _of_table(table: Table) -> dict[str, str]:
    return {
        "answers": table.question,
        "key": ", ".join(table.key),
        "time": table.time,
        "filled by": f"quotaflow {fillers.filler(table.name)}",
        "needs": levels.IN_WORDS[table.level],
        "empty": table.empty,
        "read by": ", ".join(_readers(table.name)),
    }


def _of_view(view: View | None) -> dict[str, str]:
    assert view is not None
    return {
        "answers": view.question,
        "reads": ", ".join(views.sources(view)),
        "read by": ", ".join(_readers(view.name)),
    }


def _readers(name: str) -> list[str]:
    """The views that read a table or view."""
    return [each.name for each in views.load().values() if name in views.sources(each)]


def extents(reader: Reader, *, every: bool) -> list[dict[str, Any]]:
    """`browsing.extents`, each with its area."""
    rows = browsing.extents(reader, every=every)
    return [row | {"area": area_of(row["name"]).title} for row in rows]
