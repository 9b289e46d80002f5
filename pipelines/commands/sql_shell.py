"""A shell of SQL queries on a terminal: a history, completion, and Ctrl-C for one query."""

import os
import readline
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cache
from pathlib import Path

from quotaflow.pipelines.config import Conf
from quotaflow.pipelines.config.runtime import home
from quotaflow.pipelines.errors import NeverMadeError, QuotaflowError
from quotaflow.pipelines.jobs import fillers
from quotaflow.pipelines.reference import catalogue
from quotaflow.pipelines.terminal import grid, output
from quotaflow.pipelines.terminal.layout import Layout
from quotaflow.pipelines.warehouse import browsing, views
from quotaflow.pipelines.warehouse.readers import open_reader
from quotaflow.schemas.table import Table
from quotaflow.schemas.tables.catalog import TABLES
from quotaflow.schemas.view import View

_PROMPT = "quotaflow> "
_MORE = "      ...> "
_MAX_HISTORY = 1_000
_HELP = (
    "A query ends with ; and may have several lines. Ctrl-C cancels it, Ctrl-D ends the shell.",
    r"\d         list tables and views    \d NAME  describe one",
    r"\s WORD    search tables, views and columns",
    r"\x         a block per row, or a table again",
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
    with _lines_of_before(home() / "sql_history"):
        while True:
            try:
                text = _next()
            except KeyboardInterrupt:
                output.note("")
                continue
            if text is None:
                return
            with _reported():
                layout = _done(settings, answer, text, layout)


def _next() -> str | None:
    """The next command or query; None at the end."""
    lines: list[str] = []
    while True:
        try:
            lines.append(input(_MORE if lines else _PROMPT))
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
            return replace(layout, is_vertical=not layout.is_vertical, is_wide=False)
        case r"\d", "":
            rows = catalogue.extents(open_reader(settings), every=True)
            output.lines(catalogue.by_area(rows, _width()))
        case r"\d", name:
            columns = catalogue.columns(open_reader(settings), browsing.checked_name(name))
            output.lines(catalogue.description(name, columns, _width()))
        case r"\s", words if words:
            output.lines(catalogue.hit_lines(catalogue.search([words]), _width()))
        case _ if command.startswith("\\"):
            output.note(rf"{command} is unknown: \? lists what there is")
        case _:
            answer(settings, text, layout)
    return layout


def _width() -> int:
    return grid.screen_width() or 100


@contextmanager
def _lines_of_before(file: Path) -> Iterator[None]:
    """The history of former shells, and names to complete. Only the user can read the file."""
    readline.set_history_length(_MAX_HISTORY)
    readline.set_completer(_completion)
    readline.set_completer_delims(" \t\n,()=<>;\\")
    readline.parse_and_bind("tab: complete")
    with suppress(OSError):
        readline.read_history_file(file)
    try:
        yield
    finally:
        with suppress(OSError):
            file.parent.mkdir(parents=True, exist_ok=True)
            os.close(os.open(file, os.O_CREAT | os.O_WRONLY, 0o600))
            readline.write_history_file(file)


def _completion(text: str, state: int) -> str | None:
    matches = [word for word in _words() if word.lower().startswith(text.lower())]
    return matches[state] if state < len(matches) else None


@cache
def _words() -> list[str]:
    described: list[Table | View] = [*TABLES.values(), *views.load().values()]
    names = {each.name for each in described} | {
        column.name for each in described for column in each.columns
    }
    return [*sorted(names), *_WORDS]
