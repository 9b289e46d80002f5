"""What a report is made of: sections of sentences, numbers, charts and grids, and alarms."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from quotaflow.pipelines.report import texts

MAX_ROWS = 20
"""A grid shows so many rows, the most important first; of the others it says how many there are."""
OF_ALL = "of_all"
"""The column in which a query tells how many rows there are beside those it was cut to."""

NUMBER, TIME = "number", "time"
"""Kinds of columns beside words: set to the right; not broken."""

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Chart:
    """A plotly figure as JSON, and in words what it shows."""

    figure: str
    caption: str


@dataclass(frozen=True, slots=True)
class GridColumn:
    """A column of a grid: its head, how a row is shown in it, and how it is set."""

    head: str
    show: Callable[[Row], str]
    kind: str = "words"


@dataclass(frozen=True, slots=True)
class Grid:
    """Rows of text under their columns; `empty` is said where there are none."""

    caption: str
    columns: tuple[GridColumn, ...]
    rows: tuple[tuple[str, ...], ...]
    empty: str


@dataclass(frozen=True, slots=True)
class Alarm:
    """What needs a person, in words; a lower rank is more urgent (see NOW, SOON, SOMETIME)."""

    rank: int
    text: str


NOW, SOON, SOMETIME = 1, 2, 3
"""Clients or data suffer; a limit is near or a state is wrong; something could be better."""


@dataclass(frozen=True, slots=True)
class ReportSection:
    """One question and what the tables answer.

    `span` is the time the answer is of, `advice` what to do, in one line, and `left_out` what is
    not shown or not known. Without rows, the sentences say why and which command brings them.
    """

    title: str
    time_range: str = ""
    sentences: tuple[str, ...] = ()
    advice: str = ""
    numbers: tuple[tuple[str, str], ...] = ()
    charts: tuple[Chart, ...] = ()
    grids: tuple[Grid, ...] = ()
    left_out: tuple[str, ...] = ()
    alarms: tuple[Alarm, ...] = ()

    @property
    def anchor(self) -> str:
        """Where links to it lead."""
        return "-".join(re.findall(r"[a-z]+", self.title.lower()))


def text(head: str, name: str, chars: int = texts.NAME_CHARS) -> GridColumn:
    """A column of names or words, bounded; blank where there is none."""
    return GridColumn(head, lambda row: "" if row[name] is None else texts.listed(row[name], chars))


def number(head: str, name: str, show: Callable[[Any], str] = texts.number) -> GridColumn:
    """A column of numbers."""
    return GridColumn(head, lambda row: show(row[name]), NUMBER)


def moment(head: str, name: str) -> GridColumn:
    """A column of times in UTC."""
    return GridColumn(head, lambda row: texts.moment(row[name]), TIME)


def grid(caption: str, rows: Sequence[Row], columns: tuple[GridColumn, ...], empty: str) -> Grid:
    """The first rows of an answer; the caption says how many more there are."""
    shown = rows[:MAX_ROWS]
    every = max([len(rows), *(row.get(OF_ALL, 0) for row in rows[:1])])
    more = f" (the first {len(shown)} of {every:,})" if every > len(shown) else ""
    cells = tuple(tuple(column.show(row) for column in columns) for row in shown)
    return Grid(caption + more, columns, cells, empty)
