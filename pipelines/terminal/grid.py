"""Draws rows as a table, or as one block a row. On a terminal the most important columns that fit.

Where stdout is no terminal every column is drawn, with whole cells and exact numbers.
"""

import shutil
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.cells import cell_len

from quotaflow.pipelines.terminal import readable, values
from quotaflow.pipelines.terminal.layout import Layout

_MOST_CHARACTERS = 1_000
_GAP = 2
_FALLBACK_SIZE = (120, 24)
_WIDE_TEXT = 20

# These columns come first if not all fit; the rest follow in the table's own order.
_IMPORTANT = (
    "name",
    "time",
    "minute",
    "event_time",
    "changed_at",
    "altered_at",
    "started_at",
    "rule",
    "is_open",
    "group_id",
    "cause",
    "verdict",
    "advice",
    "state",
    "entity_name",
    "config_key",
    "value_before",
    "value_after",
    "config_value",
    "trigger",
    "trigger_principal",
    "trigger_client_id",
    "principal",
    "api",
    "metric",
    "value",
    "reason",
    "client_id",
    "quota_type",
    "setting",
    "current_value",
    "recommended_value",
    "cross_rack_bytes",
    "read_rack",
    "stored_bytes",
    "storage_cost",
    "cost",
    "latency_max_ms",
    "broker_total_max_ms",
    "slowest_outside_ms",
    "outside_unknown",
    "client_software_name",
    "client_software_version",
    "newer_version",
    "principals",
    "last_seen",
    "rate_per_s",
    "quota_per_s",
    "is_violating",
    "throttle_time_ms",
    "broker_id",
    "job",
    "target",
    "outcome",
    "row_count",
    "rows",
    "error_code",
    "accepted",
    "total_time_ms",
    "topic",
    "partition",
)
# These come last: another column says the same, or they mean nothing to a reader.
_UNIMPORTANT = (
    "cluster_id",
    "event_date",
    "client_instance_id",
    "topic_id",
    "series_id",
    "alert_id",
)

Cell = Callable[[str, Any], str]


@dataclass(frozen=True, slots=True)
class Drawing:
    """Lines, and the filled columns that had no room."""

    lines: list[str]
    left_out: list[str]


def draw(
    rows: Sequence[dict[str, Any]],
    names: Sequence[str],
    layout: Layout,
    *,
    by_importance: bool = True,
) -> Drawing:
    """Draw rows.

    On a terminal a column with one value in every row becomes a part of a line above the table,
    always with `by_importance`, else where the table is too wide. Then the least important columns
    are left out; without `by_importance`, the last ones. One row that is too wide is a block.
    """
    width = screen_width()
    if layout.is_vertical:
        return Drawing([*_blocks(rows, names, _exact if width is None else _bounded)], [])
    if width is None or layout.is_wide:
        cells = _cells(rows, names, _exact if width is None else readable.whole)
        return Drawing(_table(cells, rows, names), [])
    cells = _cells(rows, names, readable.cell)
    full = [name for name in names if any(cells[name])] or list(names)
    is_fit = _width_of(full, cells) <= width
    if not is_fit and len(rows) == 1:
        return Drawing([*_blocks(rows, full, _bounded)], [])
    constant = _constant(full, cells) if by_importance or not is_fit else []
    varying = [name for name in full if name not in constant]
    shown = _fitting(varying, cells, rows, width if by_importance else -width)
    drawn = [*_line_above(constant, cells, width), *_table(cells, rows, shown)]
    return Drawing(drawn, [name for name in varying if name not in shown])


def lines(rows: Sequence[dict[str, Any]], names: Sequence[str]) -> Iterator[str]:
    """The lines of a table, the first columns that fit, and a line that names the others.

    Cells are as people read them on what is no terminal too: programs have --json.
    """
    if screen_width() is None:
        yield from _table(_cells(rows, names, readable.whole), rows, names)
        return
    drawing = draw(rows, names, Layout(), by_importance=False)
    yield from drawing.lines
    if drawing.left_out:
        yield f"no room for {', '.join(drawing.left_out)}: --json has all"


def screen_width() -> int | None:
    """Columns of the terminal; None where stdout is not one."""
    return shutil.get_terminal_size(_FALLBACK_SIZE).columns if sys.stdout.isatty() else None


def bold(text: str) -> str:
    """The text in bold, where stdout is a terminal."""
    return f"\x1b[1m{text}\x1b[0m" if sys.stdout.isatty() else text


def _exact(_name: str, value: Any) -> str:
    return values.text(value)


def _bounded(name: str, value: Any) -> str:
    """A cell as people read it. One of thousands of characters would hide the other columns."""
    text = readable.whole(name, value)
    rest = len(text) - _MOST_CHARACTERS
    return text if rest <= 0 else f"{text[:_MOST_CHARACTERS]} … and {rest:,} more: --json has all"


def _cells(
    rows: Sequence[dict[str, Any]], names: Sequence[str], cell: Cell
) -> Mapping[str, list[str]]:
    def text(name: str, value: Any) -> str:
        return "" if value is None else cell(name, value)

    return {name: [text(name, row.get(name)) for row in rows] for name in names}


def _blocks(rows: Sequence[dict[str, Any]], names: Sequence[str], cell: Cell) -> Iterator[str]:
    """One line per column of each row, and a blank line between rows."""
    shown = [values.visible(name) for name in names]
    wide = max(map(cell_len, shown), default=0)
    for index, row in enumerate(rows):
        if index:
            yield ""
        for name, label in zip(names, shown, strict=True):
            text = "" if row.get(name) is None else cell(name, row[name])
            yield f"{_padded(label, wide + _GAP)}{text}".rstrip()


def _table(
    cells: Mapping[str, list[str]],
    rows: Sequence[dict[str, Any]],
    names: Sequence[str],
) -> list[str]:
    gap = " " * _GAP
    columns = [_column(name, cells[name], rows) for name in names]
    head, *body = [gap.join(parts).rstrip() for parts in zip(*columns, strict=True)] or [""]
    return [bold(head), *body]


def _column(name: str, cells: list[str], rows: Sequence[dict[str, Any]]) -> list[str]:
    """The padded header and cells of a column; numbers stand at its right."""
    texts = [values.visible(name), *cells]
    wide = max(map(cell_len, texts))
    is_right = _is_of_numbers(name, rows)
    return [_padded(text, wide, is_right=is_right) for text in texts]


def _padded(text: str, wide: int, *, is_right: bool = False) -> str:
    space = " " * (wide - cell_len(text))
    return space + text if is_right else text + space


def _is_of_numbers(name: str, rows: Sequence[dict[str, Any]]) -> bool:
    cells = [row.get(name) for row in rows]
    return any(cell is not None for cell in cells) and all(map(_is_number, cells))


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def _constant(names: Sequence[str], cells: Mapping[str, list[str]]) -> list[str]:
    """Columns with one value in all of several rows; never all columns."""
    constant = [name for name in names if len(cells[name]) > 1 and len(set(cells[name])) == 1]
    return constant if len(constant) < len(names) else []


def _line_above(names: Sequence[str], cells: Mapping[str, list[str]], width: int) -> Iterator[str]:
    if not names:
        return
    facts = ", ".join(f"{values.visible(name)} {cells[name][0]}" for name in names)
    yield from textwrap.wrap(
        f"In every row: {facts}", width, subsequent_indent="  ", break_on_hyphens=False
    )


def _width_of(names: Sequence[str], cells: Mapping[str, list[str]]) -> int:
    return sum(_needed(name, cells[name]) for name in names) - _GAP


def _needed(name: str, cells: list[str]) -> int:
    return max(map(cell_len, [name, *cells])) + _GAP


def _fitting(
    names: Sequence[str],
    cells: Mapping[str, list[str]],
    rows: Sequence[dict[str, Any]],
    width: int,
) -> list[str]:
    """The columns that fit, in their own order; at least one.

    A negative width is one where the first columns are chosen, not the most important ones.
    """
    order = list(names) if width < 0 else sorted(names, key=lambda name: _rank(name, cells, rows))
    chosen, left = set[str](), abs(width) + _GAP
    for name in order:
        needed = _needed(name, cells[name])
        if needed <= left or not chosen:
            chosen.add(name)
            left -= needed
    return [name for name in names if name in chosen]


def _rank(name: str, cells: Mapping[str, list[str]], rows: Sequence[dict[str, Any]]) -> int:
    """What a reader needs first, then measures and short text, then long text, then the rest."""
    if name in _IMPORTANT:
        return _IMPORTANT.index(name)
    if name in _UNIMPORTANT:
        return len(_IMPORTANT) + 2
    is_long = not _is_of_numbers(name, rows) and _needed(name, cells[name]) > _WIDE_TEXT
    return len(_IMPORTANT) + is_long
