"""Values as text: cut, with units, and without characters that do not print."""

import html
import math
import re
import shlex
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta

from quotaflow.udfs.counted import noun

NAME_CHARS, SENTENCE_CHARS = 48, 400
_COMMAND_CHARS = 300
NOT_KNOWN = "not known"
NO_STEP = "No step is needed."
_MAX_NAMES = 5
_SMALL, _GROUPED, _MAX_ERROR = 10, 1_000, 0.05
_LEAST, _NO_DECIMALS = 1e-9, 99.95
_UNITS_OF_TIME = (
    (1e3, 1e0, "ms"),
    (12e4, 1e3, "s"),
    (72e5, 6e4, "min"),
    (48 * 36e5, 36e5, "h"),
    (math.inf, 864e5, "days"),
)
_LEAST_MONEY = 0.005
_IS_NAME = re.compile(r"[a-z]+[._]\w")
_MANY = re.compile(r"(?<=[a-z]{2}[a-rt-z])s/")


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
    return f"{capitalized(sentence)}." if parts else NO_STEP


def why(name: object, options: str = "") -> str:
    """The command that says what is wrong with a name; empty for what names nothing in a shell.

    So what has characters that do not print, or more than a sentence shows.
    """
    text = "" if name is None else str(name)
    quoted = shlex.quote(text)
    if not text or not text.isprintable() or "`" in text or len(quoted) > _COMMAND_CHARS:
        return ""
    words = (options, "--", quoted) if text.startswith("-") else (quoted, options)
    return " ".join(filter(None, ("quotaflow why", *words)))


def run_why(items: Iterable[object], says: str, view: str) -> str:
    """A part of what to do: ask about the first of these names that can be, else see their view."""
    command = next(filter(None, map(why, items)), "")
    return f"run `{command}`: it says {says}" if command else f"see `quotaflow show {view}`"


def step(text: str) -> str:
    """A step of an advice as a sentence of its own."""
    shown = listed(text, SENTENCE_CHARS)
    return f"{capitalized(shown)}."


def capitalized(text: str) -> str:
    """A text with a capital first; a name of Kafka is unchanged: producer_byte_rate."""
    is_name = _IS_NAME.match(text) is not None
    return text if is_name else f"{text[:1].upper()}{text[1:]}"


def number(value: float | None) -> str:
    """A number with few digits, as all that follow within 5 % and never 0; empty if unknown."""
    if value is None:
        return ""
    if not math.isfinite(value):
        return NOT_KNOWN
    if 1 <= abs(value) < _SMALL:
        return _trimmed(f"{value:.2f}")
    return f"{value:,.0f}" if abs(value) >= _SMALL or not value else precise(value, 2)


def precise(value: float, digits: int = 6) -> str:
    """A number with so many digits: whole from a thousand on, without an exponent from 1e-9 on."""
    if abs(value) >= _GROUPED:
        return f"{value:,.0f}"
    text = f"{value:.{digits}g}"
    is_long = "e" in text and abs(value) >= _LEAST
    return _trimmed(f"{float(text):.{digits + 9}f}") if is_long else text


def fixed(value: float, decimals: int = 0, *, group: str = "") -> str:
    """A number with so many decimals, or with two digits where these would be off by over 5 %.

    So 0.004 is not 0. `group` separates thousands: none in an id or a value of a config.
    """
    text = f"{value:{group}.{decimals}f}"
    off = abs(float(text.replace(",", "")) - float(value))
    return text if off <= _MAX_ERROR * abs(value) else precise(value, 2)


def share(value: float | None) -> str:
    """A share as per cent."""
    return "" if value is None else f"{fixed(100 * value, group=',')} %"


def size(size_bytes: float | None) -> str:
    """Bytes in powers of ten: 1.2 MB."""
    if size_bytes is None or not math.isfinite(size_bytes):
        return NOT_KNOWN
    if round(abs(size_bytes)) < _GROUPED:
        return f"{number(size_bytes)} {noun(size_bytes, 'byte')}"
    value, units = size_bytes, iter(("kB", "MB", "GB", "TB", "PB", "EB"))
    unit = "bytes"
    while round(abs(value)) >= _GROUPED and (larger := next(units, None)):
        value, unit = value / _GROUPED, larger
    return f"{value:,.{0 if abs(value) >= _NO_DECIMALS else 1}f} {unit}"


def rate(bytes_per_s: float | None) -> str:
    """Bytes per second in powers of ten; empty if unknown."""
    return "" if bytes_per_s is None else f"{size(bytes_per_s)}/s"


def with_unit(value: float, unit: str | None) -> str:
    """A number as people read it in this unit of a metric: 20.1 kB/s, 3.9 s."""
    if unit in {"bytes/s", "ms"}:
        return rate(value) if unit == "bytes/s" else duration(value)
    if not unit or unit == "1":
        return number(value)
    shown = number(value)
    # 1 partition/s
    return f"{shown} {_MANY.sub('/', listed(unit), 1) if shown == '1' else listed(unit)}"


def duration(ms: float | None) -> str:
    """A duration: 850 ms, 12 s, 3 min, 2 h, 3 days; empty if unknown."""
    if ms is None:
        return ""
    if not math.isfinite(ms):
        return NOT_KNOWN
    unit_ms, unit = next(each[1:] for each in _UNITS_OF_TIME if abs(ms) < each[0])
    value = ms / unit_ms
    shown = _trimmed(fixed(value, 1)) if abs(value) < _SMALL else fixed(value, group=",")
    return f"{shown} {unit}"


def _trimmed(decimals: str) -> str:
    has_more = "." in decimals and "e" not in decimals
    return decimals.rstrip("0").rstrip(".") if has_more else decimals


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
