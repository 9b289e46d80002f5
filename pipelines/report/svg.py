"""Parts of charts as SVG and HTML: escaped, in per cent of the width, and without scripts.

A browser shows `<title>` of a mark where the pointer is. Colours are classes of page.css, so charts
follow a dark page and print.
"""

from collections.abc import Sequence
from datetime import UTC, datetime

from quotaflow.pipelines.terminal.texts import label

NUM_COLOURS = 7
SHAPES = (
    "M-5,0a5,5 0 1,0 10,0a5,5 0 1,0 -10,0",
    "M0,-6L6,0L0,6L-6,0Z",
    "M-5,-5H5V5H-5Z",
    "M0,-6L6,5H-6Z",
    "M-5,-5L5,5M-5,5L5,-5",
    "M-6,0H6M0,-6V6",
    "M0,6L6,-5H-6Z",
)
"""Marks that distinguish kinds without colours."""
DASHES = ("", "8 4", "2 3", "8 3 2 3", "14 4", "14 4 2 4")
"""Lines that differ in print too."""
_SHORT_S = 600
_HINT_CHARS = 400
LINE_PX = 20
"""Height of a line of text."""


def drawing(height_px: float, parts: Sequence[str]) -> str:
    """A drawing as wide as its place."""
    return f'<svg width="100%" height="{height_px:g}">{"".join(parts)}</svg>'


def text(x: float, y_px: float, words: object, css: str = "", anchor: str = "start") -> str:
    """Words at x per cent; `y_px` is their base line."""
    return (
        f'<text x="{x:.2f}%" y="{y_px:g}" class="{css}" text-anchor="{anchor}">'
        f"{label(words, 60)}</text>"
    )


def rectangle(place: tuple[float, float, float], height_px: float, css: str, hint: str) -> str:
    """A rectangle at (x, y, width): x and width in per cent; `hint` is shown at the pointer."""
    x, y_px, width = place
    return (
        f'<rect x="{x:.2f}%" y="{y_px:g}" width="{max(width, 0):.2f}%" height="{height_px:g}" '
        f'class="{css}">{title(hint)}</rect>'
    )


def rule(x1: float, y1_px: float, x2: float, y2_px: float, css: str = "grid") -> str:
    """A straight line between places in per cent of the width and px from the top."""
    return f'<line x1="{x1:.2f}%" y1="{y1_px:g}" x2="{x2:.2f}%" y2="{y2_px:g}" class="{css}"/>'


def mark(x: float, y_px: float, place: int, hint: str) -> str:
    """The mark of a kind at x per cent."""
    return f'<svg x="{x:.2f}%" y="{y_px:g}" overflow="visible">{_shape(place)}{title(hint)}</svg>'


def _shape(place: int) -> str:
    return f'<path d="{SHAPES[place % len(SHAPES)]}" class="mark-{place % NUM_COLOURS}"/>'


def stretched(height_px: float, shapes: Sequence[str]) -> str:
    """Shapes whose x goes from 0 to 1000 over the width of the drawing."""
    return (
        f'<svg width="100%" height="{height_px:g}" viewBox="0 0 1000 {height_px:g}" '
        f'preserveAspectRatio="none">{"".join(shapes)}</svg>'
    )


def shape(kind: str, points: str, css: str, more: str = "") -> str:
    """A `polyline` or `polygon`."""
    places = f'points="{points}"'
    return f'<{kind} {places} class="{css}" {more}/>'


def dot(x: float, y_px: float, place: int) -> str:
    """The mark of a point of a line."""
    return f'<circle cx="{x:.2f}%" cy="{y_px:.1f}" r="3" class="fill-{place % NUM_COLOURS}"/>'


def title(words: str) -> str:
    """What is shown at the pointer."""
    return f"<title>{label(words, _HINT_CHARS)}</title>"


def dash(place: int) -> str:
    """The attribute of a line's dashes."""
    return f'stroke-dasharray="{DASHES[place % len(DASHES)]}"'


def legend(names: Sequence[str], kind: str) -> str:
    """Names of series below a drawing, each with its sample: `bar`, `line` or `mark`.

    A series without a name is left out, and keeps its colour.
    """
    entries = "".join(_entry(name, n, kind) for n, name in enumerate(names) if name)
    return f'<p class="legend">{entries}</p>' if entries else ""


def _entry(name: str, place: int, kind: str) -> str:
    colour = place % NUM_COLOURS
    sample = {
        "bar": f'<rect width="26" height="12" class="fill-{colour}"/>',
        "line": f'<path d="M0,6H26" class="line-{colour}" {dash(place)}/>',
        "mark": f'<g transform="translate(13,6)">{_shape(place)}</g>',
    }[kind]
    return f'<span><svg width="26" height="12">{sample}</svg> {label(name, 60)}</span>'


def times(first: float, last: float, y_px: float) -> list[str]:
    """The first, middle and last time of an axis, in UTC, each once."""
    is_day = _utc(first).date() == _utc(last).date()
    form = "%H:%M:%S" if last - first < _SHORT_S else "%H:%M" if is_day else "%m-%d %H:%M"
    start, middle, end = (f"{_utc(at):{form}}" for at in (first, (first + last) / 2, last))
    shown = [text(0, y_px, start, "tick")]
    if middle not in {start, end}:
        shown.append(text(50, y_px, middle, "tick", "middle"))
    if end != start:
        shown.append(text(100, y_px, end, "tick", "end"))
    return shown


def _utc(second: float) -> datetime:
    return datetime.fromtimestamp(second, UTC)
