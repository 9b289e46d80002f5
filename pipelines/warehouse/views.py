"""SQL views, one file each in schemas/views, in Spark's SQL. sql_dialects.py has it for DuckDB."""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from graphlib import TopologicalSorter
from importlib import resources
from importlib.resources.abc import Traversable
from itertools import chain

from quotaflow.schemas import head
from quotaflow.schemas.tables import catalog
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.schemas.view import View, ViewColumn, parse

# An expression that begins with its letters is found ten times as fast as one of two words.
_READ = re.compile(r"FROM(?<!\wFROM) (\w+)"), re.compile(r"JOIN(?<!\wJOIN) (\w+)")
_TEXT = re.compile(r"'(?:[^']|'')*'")


@cache
def load() -> Mapping[str, View]:
    """Every view by name, each after the views it reads. Raises HeadError."""
    root = resources.files("quotaflow.schemas.views")
    files = sorted(_files(root), key=lambda file: file.name)
    texts = {file.name.removesuffix(".sql"): file.read_text(encoding="utf-8") for file in files}
    queries = {name: head.without_comments(head.split(text)[1]) for name, text in texts.items()}
    reads = {name: queries.keys() & _read(sql) for name, sql in queries.items()}
    loaded: dict[str, View] = {}

    @cache
    def columns(source: str) -> Mapping[str, ViewColumn]:
        if source in loaded:
            return {column.name: column for column in loaded[source].columns}
        return {c.name: ViewColumn(c.name, c.comment) for c in TABLES[source].columns}

    for name in TopologicalSorter(reads).static_order():
        sources = _read(queries[name]) & (TABLES.keys() | loaded.keys())
        loaded[name] = parse(name, texts[name], {source: columns(source) for source in sources})
    return loaded


def _files(folder: Traversable) -> Iterator[Traversable]:
    """Each view's file."""
    for each in folder.iterdir():
        if each.is_dir():
            yield from _files(each)
        elif each.name.endswith(".sql"):
            yield each


@cache
def _read(sql: str) -> frozenset[str]:
    """The words after FROM and JOIN in the query of a view: tables, views and its WITH clauses."""
    return frozenset(chain(*(each.findall(sql) for each in _READ)))


def names_in(sql: str, names: Mapping[str, object]) -> list[str]:
    """The `names` that occur as words in a SQL text (outside of its strings), in their order."""
    words = _words(sql)
    return [name for name in names if name in words]


@cache
def _words(sql: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", _TEXT.sub("", sql).lower()))


def read_by(names: Iterable[str]) -> tuple[list[str], list[str]]:
    """The named tables and views, and those that these views read; views come after their sources.

    Tables first, then views.
    """
    all_views = load()
    needed = set(names)
    for name in reversed(list(all_views)):
        if name in needed:
            needed.update(sources(all_views[name]))
    return [name for name in TABLES if name in needed], [n for n in all_views if n in needed]


def required(names: Iterable[str]) -> list[str]:
    """The tables that must exist for a query of these tables and views.

    Others that it reads are of a higher level than its views: they are empty if they do not
    exist.
    """
    all_views = load()
    needed = set[str]()
    for name in names:
        if name in all_views:
            needed |= catalog.required(read_by([name])[0], all_views[name].level)
        else:
            needed.add(name)
    return [name for name in TABLES if name in needed]


def sources(view: View) -> list[str]:
    """The tables and views that a view reads."""
    read = _read(view.sql)
    return [name for name in {**TABLES, **load()} if name in read]


def events(view: View) -> frozenset[str]:
    """The facts and results of which a view needs only rows of the time that is asked about."""
    return frozenset(sources(view)) & catalog.EVENTS - view.history


def dependencies(sql: str) -> tuple[list[str], list[str]]:
    """Tables and views that a query in any dialect names as words, as `read_by`."""
    return read_by(named(sql))


def named(sql: str) -> list[str]:
    """The tables and views that a query in any dialect names as words."""
    return names_in(sql, {**TABLES, **load()})
