"""A shell of SQL queries on a terminal: a history, colors, completion, Ctrl-C for one query."""

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.config.runtime import home
from quotaflow.pipelines.errors import NeverMadeError, QuotaflowError
from quotaflow.pipelines.jobs import fillers
from quotaflow.pipelines.reference import catalogue, search
from quotaflow.pipelines.terminal import grid, output
from quotaflow.pipelines.terminal.layout import Layout
from quotaflow.pipelines.warehouse import views
from quotaflow.pipelines.warehouse.readers import open_reader
from quotaflow.schemas.table import Table
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.schemas.view import View

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession

_PROMPT = "quotaflow> "
_MORE = "      ...> "
_PAGER_OPTIONS = "-SFRX"
"""Those of less: long lines are cut, arrows move, and what fits on the screen is only printed."""
_COMMANDS = (r"\?", r"\d", r"\s", r"\x", r"\p", r"\q")
_HELP = (
    "A query ends with ; and may have several lines. Ctrl-C cancels it, Ctrl-D ends the shell.",
    r"\d         list tables and views    \d NAME  describe one",
    r"\s WORD    search tables, views and columns",
    r"\x         a block per row, or a table again",
    r"\p         whole rows in a pager that moves to all sides (PAGER), or a table again",
    r"\q         end",
)
_WORDS = (
    *("SELECT", "FROM", "WHERE", "GROUP BY", "ORDER BY", "HAVING", "LIMIT", "JOIN", "USING"),
    *("count(*)", "DESCRIBE", "SUMMARIZE", "EXPLAIN", "SHOW TABLES"),
)

Answer = Callable[[Conf, str, Layout], None]
"""Prints the rows of one query."""


def run(settings: Conf, answer: Answer, layout: Layout) -> None:
    """Read queries until Ctrl-D, and answer each over the newest version of its tables."""
    output.note(f"tables of {settings.warehouse.location}; \\? shows what this shell can do")
    session = _session()
    while True:
        try:
            text = _next(session)
        except KeyboardInterrupt:
            output.note("")
            continue
        if text is None:
            return
        with _reported():
            layout = _done(settings, answer, text, layout)


def _next(session: "PromptSession[str]") -> str | None:
    """The next command or query; None at the end."""
    lines: list[str] = []
    while True:
        try:
            lines.append(session.prompt(_MORE if lines else _PROMPT))
        except EOFError:
            output.note("")
            return None
        text = "\n".join(lines).strip()
        if not text:
            lines = []
        elif text == r"\q":
            return None
        elif text.startswith("\\") or text.endswith(";"):
            return text


@contextmanager
def _reported() -> Iterator[None]:
    """Print an error, or that a query was cancelled, and go on."""
    try:
        yield
    except KeyboardInterrupt:
        output.note("cancelled")
    except NeverMadeError as error:
        output.error(f"{error}: {fillers.hint(error.table)}")
    except QuotaflowError as error:
        output.error(str(error))


def _done(settings: Conf, answer: Answer, text: str, layout: Layout) -> Layout:
    """Do what a line says; returns the layout of the next ones."""
    command, _, rest = text.partition(" ")
    match command, rest.strip().rstrip(";"):
        case r"\?", _:
            output.lines(_HELP)
        case r"\x", _:
            return replace(
                layout, is_vertical=not layout.is_vertical, is_wide=False, is_paged=False
            )
        case r"\p", _:
            is_paged = not layout.is_paged
            return replace(layout, is_paged=is_paged, is_wide=is_paged, is_vertical=False)
        case r"\d", "":
            rows = catalogue.extents(open_reader(settings), every=True)
            output.lines(catalogue.by_area(rows, _width()))
        case r"\d", name:
            columns = catalogue.columns(open_reader(settings), catalogue.checked_name(name))
            output.lines(catalogue.description(name, columns, _width()))
        case r"\s", words if words:
            output.lines(catalogue.hit_lines(search.search([words]), _width()))
        case _ if command.startswith("\\"):
            output.note(rf"{command} is unknown: \? lists what there is")
        case _:
            answer(settings, text, layout)
    return layout


def _width() -> int:
    return grid.screen_width() or 100


def _session() -> "PromptSession[str]":
    """What reads lines: with the history of former shells, which only the user can read."""
    from prompt_toolkit import PromptSession  # noqa: PLC0415  for this shell alone
    from prompt_toolkit.completion import WordCompleter  # noqa: PLC0415
    from prompt_toolkit.history import FileHistory, History, InMemoryHistory  # noqa: PLC0415
    from prompt_toolkit.lexers import PygmentsLexer  # noqa: PLC0415
    from prompt_toolkit.shortcuts import CompleteStyle  # noqa: PLC0415
    from pygments.lexers.sql import SqlLexer  # noqa: PLC0415

    os.environ.setdefault("LESS", _PAGER_OPTIONS)
    file = home() / "sql_history"
    history: History = InMemoryHistory()
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(file, os.O_CREAT | os.O_WRONLY, 0o600))
        history = FileHistory(file)
    return PromptSession(
        history=history,
        lexer=PygmentsLexer(SqlLexer),
        completer=WordCompleter(_words, ignore_case=True, pattern=re.compile(r"\\?\w*")),
        complete_while_typing=False,
        complete_style=CompleteStyle.READLINE_LIKE,
    )


@cache
def _words() -> list[str]:
    described: list[Table | View] = [*TABLES.values(), *views.load().values()]
    names = {each.name for each in described} | {
        column.name for each in described for column in each.columns
    }
    return [*sorted(names), *_WORDS, *_COMMANDS]
