"""Cells as people read them: digits in groups, no more decimals than help, short times."""

import re
from typing import Any

from rich.cells import cell_len, set_cell_size

from quotaflow.pipelines.terminal import values

MAX_CELL_CHARS = 48
_CHARS_READ = 400
_GROUPED_FROM = 1_000
_TENTHS_FROM = 100
_DIGITS = 4
# Numbers that name something: people copy them, and nobody adds them up.
_NAMING = re.compile(
    r"(^|_)(id|code|port|version|epoch|partition|offset|index|line|batch|pid|year|broker|leader)$"
)
_TIME = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(\.\d{3})(\d{3})Z")


def cell(name: str, value: Any) -> str:
    """A value of the column `name`, at most MAX_CELL_CHARS wide."""
    shown = whole(name, value)
    if cell_len(shown) <= MAX_CELL_CHARS:
        return shown
    return set_cell_size(shown[:_CHARS_READ], MAX_CELL_CHARS - 1).rstrip() + "…"


def whole(name: str, value: Any) -> str:
    """The same, as wide as it is."""
    if isinstance(value, bool):
        return values.text(value)
    if isinstance(value, int):
        return f"{value:,}" if abs(value) >= _GROUPED_FROM and not _names(name) else str(value)
    if isinstance(value, float):
        return _decimal(value)
    return _short_time(value) if isinstance(value, str) else values.text(value)


def _names(name: str) -> bool:
    return _NAMING.search(name.lower()) is not None


def _decimal(value: float) -> str:
    size = abs(value)
    if size >= _GROUPED_FROM:
        return f"{value:,.0f}"
    return f"{value:.1f}".removesuffix(".0") if size >= _TENTHS_FROM else f"{value:.{_DIGITS}g}"


def _short_time(text: str) -> str:
    """A time of `values.iso` to s, ms or us, as SQL also reads it; other text as it is."""
    match = _TIME.fullmatch(text)
    if match is None:
        return values.visible(text)
    date, time, ms, us = match.groups()
    exact = f"{ms}{us}".removesuffix("000").removesuffix(".000")
    return f"{date} {time}{exact}Z"
