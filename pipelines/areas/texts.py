"""Values as text: cut, with units, and without characters that do not print."""

import html
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta

NAME_CHARS, SENTENCE_CHARS = 48, 400
NOT_KNOWN = "not known"
_MAX_NAMES = 5
_SMALL, _TINY, _LEAST = 10, 0.01, 1e-6
_LEAST_MONEY = 0.005


def listed(value: object, chars: int = NAME_CHARS) -> str:
    """A value as text: cut, and without characters that do not print.

    Backticks are replaced: they mark our commands, and no name may look like one.
    """
    if value is None:
        return NOT_KNOWN
    # A client may have sent megabytes.
    start = str(value)[: chars + 1]
    shown = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in start)
    shown = shown.replace("`", "'")
    return shown if len(shown) <= chars else shown[: chars - 1] + "…"


def label(name: object, chars: int = 24) -> str:
    """A name as it may be in markup."""
    return html.escape(listed(name, chars))


def names(items: Iterable[object]) -> str:
    """The first names as part of a sentence, each once."""
    every = list(dict.fromkeys(items))
    first = [listed(name) for name in every[:_MAX_NAMES]]
    if len(every) > len(first):
        return f"{', '.join(first)} and {len(every) - len(first)} more"
    return " and ".join(filter(None, [", ".join(first[:-1]), first[-1]])) if first else ""


def to_do(parts: Sequence[str]) -> str:
    """One sentence of what to do; each part has rows that call for it."""
    sentence = "; ".join(parts)
    return f"{sentence[0].upper()}{sentence[1:]}." if parts else "Nothing."


def step(text: str) -> str:
    """A step of an advice as a sentence of its own."""
    shown = listed(text, SENTENCE_CHARS)
    return f"{shown[:1].upper()}{shown[1:]}."


def number(value: float | None) -> str:
    """A number with few digits; empty if unknown."""
    if value is None:
        return ""
    if value != value or value in {float("inf"), float("-inf")}:  # noqa: PLR0124  NaN is unlike itself
        return NOT_KNOWN
    if _LEAST <= abs(value) < _TINY:
        return f"{float(f'{value:.2g}'):.7f}".rstrip("0")
    return f"{value:,.2f}".rstrip("0").rstrip(".") if abs(value) < _SMALL else f"{value:,.0f}"


def share(value: float | None) -> str:
    """A share as per cent."""
    return "" if value is None else f"{100 * value:,.0f} %"


def size(size_bytes: float | None) -> str:
    """Bytes in powers of ten: 1.2 MB."""
    from rich.filesize import decimal  # noqa: PLC0415  a bundle builds without packages

    return NOT_KNOWN if size_bytes is None else decimal(round(size_bytes))


def rate(bytes_per_s: float | None) -> str:
    """Bytes per second in powers of ten; empty if unknown."""
    return "" if bytes_per_s is None else f"{size(bytes_per_s)}/s"


def duration(ms: float | None) -> str:
    """A duration: 850 ms, 12 s, 3 min, 2 h; empty if unknown."""
    if ms is None:
        return ""
    for max_ms, unit_ms, unit in ((1e3, 1, "ms"), (12e4, 1e3, "s"), (72e5, 6e4, "min")):
        if abs(ms) < max_ms:
            return f"{number(round(ms / unit_ms, 1))} {unit}"
    return f"{ms / 36e5:,.0f} h" if abs(ms) < 48 * 36e5 else f"{ms / 864e5:,.0f} days"


def age(since: datetime, now: datetime) -> str:
    """How long ago; a time in the future counts as now."""
    return duration(max((now - since) / timedelta(milliseconds=1), 0))


def moment(time: datetime | None) -> str:
    """A time in UTC, to the second."""
    return NOT_KNOWN if time is None else f"{time.astimezone(UTC):%Y-%m-%d %H:%M:%S}"


def time_range(first: datetime | None, last: datetime | None) -> str:
    """A time range in UTC; empty if an end is unknown."""
    if first is None or last is None:
        return ""
    start, end = first.astimezone(UTC), last.astimezone(UTC)
    until = f"{end:%H:%M:%S}" if start.date() == end.date() else f"{end:%Y-%m-%d %H:%M:%S}"
    return f"{start:%Y-%m-%d %H:%M:%S} to {until} UTC"


def money(amount: float | None, currency: str | None) -> str:
    """An amount with its currency; empty if conf has no prices."""
    if amount is None:
        return ""
    shown = "less than 0.01" if 0 < amount < _LEAST_MONEY else f"{amount:,.2f}"
    return f"{shown} {listed(currency or '', 8)}".strip()
