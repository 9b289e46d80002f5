"""Prints the output of commands: rows to stdout in a layout; the rest to stderr."""

import csv
import io
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any

import typer

from quotaflow.pipelines.errors import OutputError
from quotaflow.pipelines.terminal import grid, logs, progress, values
from quotaflow.pipelines.terminal.layout import Layout
from quotaflow.udfs.counted import counted

MAX_ROWS_ON_TERMINAL = 1_000


def write(
    rows: Iterable[dict[str, Any]],
    names: Sequence[str],
    layout: Layout,
    *,
    by_importance: bool = True,
) -> None:
    """Print rows in a layout. Raises ConfigError for a column that they do not have."""
    chosen = layout.chosen(names)
    if layout.is_for_programs:
        lines(program_lines(rows, chosen, layout))
    else:
        _table(rows, chosen, layout, by_importance=by_importance and layout.columns is None)


def program_lines(
    rows: Iterable[dict[str, Any]], names: Sequence[str], layout: Layout, *, has_head: bool = True
) -> Iterator[str]:
    """Rows as lines of JSON or CSV. Rows that continue a CSV need no head."""
    if layout.as_json:
        yield from (values.json_line(layout.object(row)) for row in rows)
        return
    if has_head:
        yield _csv_line(names)
    for row in rows:
        yield _csv_line([values.csv_cell(row.get(name)) for name in names])


def lines(texts: Iterable[str]) -> None:
    """Print lines to stdout; stop silently once the reader closes the pipe (`| head`).

    The command goes on, and its exit code stays the same.
    """
    _printed(texts)


def lines_while_read(texts: Iterable[str]) -> None:
    """As `lines`, for a command without an end: it ends once the reader closes the pipe."""
    if not _printed(texts):
        raise typer.Exit(0)


def _printed(texts: Iterable[str]) -> bool:
    for text in texts:
        progress.clear()
        if not _is_taken(partial(sys.stdout.write, f"{text}\n")):
            return False
    return _is_taken(sys.stdout.flush)


def _is_taken(write: Callable[[], object]) -> bool:
    """Whether stdout takes what is written; not if its reader closed the pipe."""
    try:
        write()
    except OSError as error:
        # Python flushes again at exit, which needs an open file.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            return False
        raise OutputError(f"cannot write to the standard output: {error.strerror}") from None
    return True


def note(text: str) -> None:
    """Print a message to stderr, apart from what a program may read on stdout."""
    logs.note(text)


def error(text: str) -> None:
    """Print an error as one line to stderr."""
    logs.error(text)


def _csv_line(cells: Sequence[str]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(cells)
    return line.getvalue()


def _table(
    rows: Iterable[dict[str, Any]], names: Sequence[str], layout: Layout, *, by_importance: bool
) -> None:
    fetched = list(islice(rows, MAX_ROWS_ON_TERMINAL + 1))
    shown = fetched[:MAX_ROWS_ON_TERMINAL]
    drawing = grid.draw(shown, names, layout, by_importance=by_importance)
    if layout.is_paged:
        import pydoc  # noqa: PLC0415  few commands need it

        pydoc.pager("\n".join(drawing.lines))
    else:
        lines(drawing.lines)
    if drawing.left_out:
        left_out = ", ".join(drawing.left_out)
        note(f"no room for {left_out}: -x, --wide or --columns NAME,... shows them")
    if len(fetched) > len(shown):
        note(f"only {counted(len(shown), 'row is', 'rows are')} shown: --json and --csv have all")
    if not fetched:
        note("no rows")
