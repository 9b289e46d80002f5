"""All Delta tables by name: those that the files beside this one declare, results and answers."""

import re
from collections.abc import Callable, Iterable, Mapping
from importlib.resources import files
from itertools import chain
from typing import Protocol, TypeVar

from quotaflow.schemas import answer_head, result_head
from quotaflow.schemas.derived import Described
from quotaflow.schemas.levels import LEVELS
from quotaflow.schemas.table import Column, Table
from quotaflow.schemas.tables import declared

# An expression that begins with its letters is found ten times as fast as one with an anchor.
_SOURCE = re.compile(r"\n--   from (\w+):")
# What only the head of a result names, because its text reads a shared view of it.
_NAMED = re.compile(r"\n-- facts: (\w+)"), re.compile(r"\n--   (\w+): (?:from|changes) ")


class _Head(Protocol):
    """The head of a file that fills a table."""

    @property
    def table(self) -> Table | None:
        """The table; None if the head of another file declares it."""
        ...


_AnyHead = TypeVar("_AnyHead", bound=_Head)


def _read(
    folder: str, parse: Callable[[str, str, Described], _AnyHead], tables: Mapping[str, Table]
) -> dict[str, _AnyHead]:
    """The heads of a folder's files, by name. A head may have columns of another one."""
    texts = {
        file.name.removesuffix(".sql"): file.read_text(encoding="utf-8")
        for file in files(f"quotaflow.schemas.{folder}").iterdir()
        if file.name.endswith(".sql")
    }
    heads: dict[str, _AnyHead] = {}

    def columns(name: str) -> Mapping[str, Column]:
        table = tables[name] if name in tables else head(name).table
        return {column.name: column for column in table.columns} if table else {}

    def head(name: str) -> _AnyHead:
        if name not in heads:
            text = texts[name]
            top, _, query = text.partition("\n\n")
            read = {*chain(*(each.findall(top) for each in _NAMED))}
            sources = {each for each in _SOURCE.findall(top) if each in read or each in query}
            sources &= {*tables, *texts}
            heads[name] = parse(name, text, {each: columns(each) for each in sources})
        return heads[name]

    return {name: head(name) for name in sorted(texts)}


RESULTS = _read("results", result_head.parse, declared.TABLES)
"""What the head of each result says, by the name of its file."""

_FILLED = {name: head.table for name, head in RESULTS.items() if head.table is not None}

ANSWERS = _read("answers", answer_head.parse, {**declared.TABLES, **_FILLED})
"""What the head of each answer says, by its name."""

# In the order that lists of tables show.
TABLES: dict[str, Table] = {
    **{name: declared.TABLES[name] for name in declared.FACTS},
    **_FILLED,
    **{name: head.table for name, head in ANSWERS.items()},
    **declared.TABLES,
}
"""Facts, results, answers, snapshots and control tables."""

FACTS = frozenset({*declared.FACTS, declared.QUARANTINE.name})
EVENTS = FACTS | _FILLED.keys()
"""Facts and results: what a table of these says of a time, its rows of that time say."""


def required(tables: Iterable[str], level: str) -> set[str]:
    """Those of the tables that a view or answer of this level cannot do without.

    Those of a higher level may not exist: then they have no rows.
    """
    return {name for name in tables if LEVELS.index(TABLES[name].level) <= LEVELS.index(level)}
