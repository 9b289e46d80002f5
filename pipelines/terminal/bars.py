"""Rows as bars on a terminal: each as long as the value of one column."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.cells import cell_len, set_cell_size

from quotaflow.pipelines.errors import ConfigError, nearest
from quotaflow.pipelines.terminal import readable

_LABELS, _MAX_LABEL = 2, 40
_LEAST_WIDTH = 10
_EIGHTHS = " ▏▎▍▌▋▊▉█"

Row = Mapping[str, Any]


def lines(rows: Sequence[Row], names: Sequence[str], column: str, width: int) -> Iterator[str]:
    """A line per row: what it is about, the value, and the bar.

    Raises ConfigError for a column that is not there, or has no numbers.
    """
    if column not in names:
        raise ConfigError(f"--chart: no column {column}{nearest(column, names)}")
    values = [row[column] for row in rows]
    if not all(each is None or _is_number(each) for each in values):
        numbers = [name for name in names if any(_is_number(row[name]) for row in rows)]
        raise ConfigError(f"--chart: {column} has no numbers (these have: {', '.join(numbers)})")
    about = _about(rows, names)
    labels = ["  ".join(readable.cell(name, row[name]) for name in about) for row in rows]
    shown = [readable.cell(column, each) for each in values]
    label_width = min(max(map(cell_len, labels), default=0), _MAX_LABEL)
    value_width = max(map(cell_len, shown), default=0)
    room = max(width - label_width - value_width - 4, _LEAST_WIDTH)
    most = max((each for each in values if each is not None and each > 0), default=1)
    for label, text, value in zip(labels, shown, values, strict=True):
        left = set_cell_size(label, label_width)
        yield f"{left}  {text:>{value_width}}  {_bar((value or 0) / most, room)}".rstrip()


def _about(rows: Sequence[Row], names: Sequence[str]) -> list[str]:
    """The first columns of names and times by which rows differ."""
    texts = (name for name in names if any(isinstance(row[name], str) for row in rows))
    differ = [name for name in texts if len({str(row[name]) for row in rows}) > 1]
    return differ[:_LABELS] or list(names[:1])


def _bar(share: float, room: int) -> str:
    whole, part = divmod(round(max(share, 0) * room * 8), 8)
    return "█" * whole + _EIGHTHS[part].strip()


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
