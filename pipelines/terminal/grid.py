"""Draws rows on a terminal: the most important columns that fit, long cells cut, text escaped."""

import shutil
from collections.abc import Iterator, Sequence
from typing import Any

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.table import Table
from rich.text import Text

from quotaflow.pipelines.terminal import values

MAX_CELL_CHARS = 48
_CHARS_READ = 400
_GAP = 2
_FALLBACK_SIZE = (120, 24)

# These columns come first if not all fit; the rest follow in the table's own order.
_IMPORTANT = (
    "name",
    "event_time",
    "principal",
    "api",
    "metric",
    "value",
    "reason",
    "client_id",
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
    "client_instance_id",
    "topic",
    "partition",
)


def draw(
    rows: Sequence[dict[str, Any]], names: Sequence[str], *, by_importance: bool = True
) -> tuple[list[str], list[str]]:
    """The lines of a table as wide as the terminal, and the filled columns that did not fit.

    Columns that are empty in every row are dropped first, then the least important; without
    `by_importance`, the last ones.
    """
    width = shutil.get_terminal_size(_FALLBACK_SIZE).columns
    cells = {name: [_cell(row.get(name)) for row in rows] for name in names}
    shown = _fitting(cells, width, by_importance=by_importance)
    table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="bold")
    for name in shown:
        is_number = all(_is_number(row.get(name)) for row in rows)
        table.add_column(
            Text(values.visible(name)), no_wrap=True, justify="right" if is_number else "left"
        )
    for index in range(len(rows)):
        table.add_row(*(Text(cells[name][index]) for name in shown))
    console = Console(width=width, highlight=False, markup=False, emoji=False)
    with console.capture() as drawn:
        console.print(table)
    lines = [line.rstrip() for line in drawn.get().splitlines()]
    return lines, [name for name in names if name not in shown and any(cells[name])]


def lines(rows: Sequence[dict[str, Any]], names: Sequence[str]) -> Iterator[str]:
    """The lines of a table, the first columns that fit, and a line that names the others."""
    drawn, left_out = draw(rows, names, by_importance=False)
    yield from drawn
    if left_out:
        yield f"no room for {', '.join(left_out)}: --json has all"


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def _fitting(cells: dict[str, list[str]], width: int, *, by_importance: bool) -> list[str]:
    full = [name for name, column in cells.items() if any(column)] or list(cells)
    order = sorted(full, key=_importance) if by_importance else full
    chosen, left = set[str](), width + _GAP
    for name in order:
        needed = max([cell_len(name), *map(cell_len, cells[name])]) + _GAP
        if needed <= left or not chosen:
            chosen.add(name)
            left -= needed
    return [name for name in cells if name in chosen]


def _importance(name: str) -> int:
    return _IMPORTANT.index(name) if name in _IMPORTANT else len(_IMPORTANT)


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    shown = values.text(value[:_CHARS_READ] if isinstance(value, str) else value)
    if cell_len(shown) <= MAX_CELL_CHARS:
        return shown
    return set_cell_size(shown[:_CHARS_READ], MAX_CELL_CHARS - 1).rstrip() + "…"
