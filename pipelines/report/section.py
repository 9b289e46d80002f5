"""The parts of a report: sections of sentences, numbers, charts and grids, and alarms."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any

from quotaflow.pipelines import reasons
from quotaflow.pipelines.areas.finding import Finding, RowProblem, in_cluster
from quotaflow.pipelines.areas.names import BROKER, CLIENT, GROUP, PRINCIPAL, TOPIC
from quotaflow.pipelines.areas.question import OF_ALL, Row
from quotaflow.pipelines.areas.scope import MAX_ROWS, Scope
from quotaflow.pipelines.jobs.fillers import filler
from quotaflow.pipelines.terminal import texts
from quotaflow.schemas.levels import ADMIN_API, IN_WORDS
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.udfs.counted import counted

NUMBER, TIME = "number", "time"
"""Kinds of columns beside words: aligned right; without line breaks."""

_PAGE_KINDS = {
    "principal": PRINCIPAL,
    "client_id": CLIENT,
    "group_id": GROUP,
    "topic": TOPIC,
    "broker_id": BROKER,
    "requested_by": PRINCIPAL,
    "set_by": PRINCIPAL,
    "user": PRINCIPAL,
}


@dataclass(frozen=True, slots=True)
class Figure:
    """A chart as SVG and HTML, escaped by its maker, with its caption."""

    figure: str
    caption: str


@dataclass(frozen=True, slots=True)
class GridColumn:
    """A column of a grid: its head, its text for a row, and its kind.

    `page_kind` is the kind of page that `quotaflow serve` has for each of its cells, if any.
    """

    head: str
    show: Callable[[Row], str]
    kind: str = "words"
    page_kind: str = ""


@dataclass(frozen=True, slots=True)
class Grid:
    """Rows of text by column; `empty` is shown if there are none."""

    caption: str
    columns: tuple[GridColumn, ...]
    rows: tuple[tuple[str, ...], ...]
    empty: str


@dataclass(frozen=True, slots=True)
class ReportSection:
    """One question and its answer from the tables.

    `time_range` is the time of the answer, `advice` is what to do, in one line, and `left_out` is
    what is not shown or not known. Without rows, the sentences say why, and which command adds
    some.
    """

    title: str = ""
    time_range: str = ""
    sentences: tuple[str, ...] = ()
    advice: str = ""
    numbers: tuple[tuple[str, str], ...] = ()
    charts: tuple[Figure, ...] = ()
    grids: tuple[Grid, ...] = ()
    left_out: tuple[str, ...] = ()
    alarms: tuple[Finding, ...] = ()

    @property
    def anchor(self) -> str:
        """The target of links to this section."""
        return "-".join(re.findall(r"[a-z]+", self.title.lower()))

    @property
    def content(self) -> str:
        """How many charts and lists it has, in words; empty without any."""
        lists = sum(bool(each.rows) for each in self.grids)
        counts = ((len(self.charts), "chart"), (lists, "list"))
        return ", ".join(counted(n, noun) for n, noun in counts if n)


def nothing(scope: Scope, table: str) -> str:
    """Why a table has no rows in this report, and the command that would add some."""
    declared = TABLES[table]
    if scope.reader.is_made(table):
        last = scope.last(table)
        if last is not None:
            return (
                f"`{table}` has no rows since {texts.moment(scope.since)} UTC, where this report "
                f"begins; its newest is of {texts.moment(last)}: name it with --since."
            )
    needs = "" if declared.level == ADMIN_API else f" from {IN_WORDS[declared.level]}"
    return f"`{table}` has no rows of this cluster: `quotaflow {filler(table)}` fills it{needs}."


Fill = Callable[[Scope], ReportSection]
"""Makes a section, or what it has beside its title and the problems of its areas."""


def section_of(
    title: str, problems: Iterable[RowProblem] = (), table: str = ""
) -> Callable[[Fill], Fill]:
    """Completes a section: its title, and an alarm for each of these problems that has rows.

    Where `table` has no rows in the time of a report, the section says so instead.
    """

    def completed(fill: Fill) -> Fill:
        @wraps(fill)
        def section(scope: Scope) -> ReportSection:
            alarms = tuple(in_cluster(scope, problems))
            if table and scope.extent(table)[1] is None:
                return ReportSection(title, sentences=(nothing(scope, table),), alarms=alarms)
            made = fill(scope)
            return replace(made, title=title, alarms=(*alarms, *made.alarms))

        return section

    return completed


def text(head: str, name: str, chars: int = texts.NAME_CHARS) -> GridColumn:
    """A column of names or words, cut; blank if there is none."""
    return GridColumn(
        head,
        lambda row: "" if row[name] is None else texts.listed(row[name], chars),
        page_kind=_PAGE_KINDS.get(name, ""),
    )


def code(head: str, view: str, name: str) -> GridColumn:
    """A column of what the codes of a view mean; a code of a newer version is shown as it is."""
    return GridColumn(head, lambda row: reasons.text_of_code((view, name), row[name]))


def number(head: str, name: str, show: Callable[[Any], str] = texts.number) -> GridColumn:
    """A column of numbers."""
    return GridColumn(head, lambda row: show(row[name]), NUMBER)


def seconds(head: str, name: str) -> GridColumn:
    """A column of durations, from seconds."""
    return number(head, name, lambda s: texts.duration(s and s * 1e3))


def moment(head: str, name: str) -> GridColumn:
    """A column of times in UTC."""
    return GridColumn(head, lambda row: texts.moment(row[name]), TIME)


def grid(caption: str, rows: Sequence[Row], columns: tuple[GridColumn, ...], empty: str) -> Grid:
    """A grid of the first rows; the caption has the number of all rows."""
    shown = rows[:MAX_ROWS]
    every = max([len(rows), *(row.get(OF_ALL, 0) for row in rows[:1])])
    more = f" (the first {len(shown)} of {every:,})" if every > len(shown) else ""
    cells = tuple(tuple(column.show(row) for column in columns) for row in shown)
    return Grid(caption + more, columns, cells, empty)
