"""What a report is made of: sentences, charts and grids, and text made safe for them."""

import html
from dataclasses import dataclass
from typing import Any

from rich.filesize import decimal

_NAME_CHARS = 48
NOT_KNOWN = "not known"

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Chart:
    """A plotly figure as JSON, and in words what it shows."""

    figure: str
    caption: str


@dataclass(frozen=True, slots=True)
class Grid:
    """Rows of text under their heads; `empty` is said where there are none."""

    caption: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    empty: str


@dataclass(frozen=True, slots=True)
class Section:
    """One question and what the tables answer."""

    title: str
    sentences: tuple[str, ...]
    charts: tuple[Chart, ...] = ()
    grids: tuple[Grid, ...] = ()


def listed(value: object) -> str:
    """A value as text to read: bounded, and without what does not print."""
    if value is None:
        return NOT_KNOWN
    shown = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in str(value))
    return shown if len(shown) <= _NAME_CHARS else shown[: _NAME_CHARS - 1] + "…"


def label(name: str | None) -> str:
    """A name as plotly may show it, which takes some tags and entities for markup."""
    return html.escape(listed(name))


def size(count: float | None) -> str:
    """Bytes as people read them, in powers of ten: 1.2 MB."""
    return NOT_KNOWN if count is None else decimal(round(count))


def money(amount: float | None, currency: str | None) -> str:
    """An amount with its currency; nothing where conf has no prices."""
    return "" if amount is None else f"{amount:,.2f} {currency or ''}".strip()
