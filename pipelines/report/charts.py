"""Charts as SVG: bars, lines, heat maps and timelines, which need no script.

Colours are for colour-blind readers; names of series are below the axes.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from quotaflow.pipelines.report import svg
from quotaflow.pipelines.terminal.texts import NOT_KNOWN, label, listed, number, size

MAX_SERIES = 6
"""A chart has at most this many lines, the largest; captions say so."""
MAX_BARS = 12
"""A chart has at most this many bars, the most important first."""
Point = tuple[int, float | None]
"""Start of a step in seconds since 1970, and its value."""

_BAR_PX, _LINES_PX, _CELL_PX, _LANE_PX = 16, 200, 40, 44
_BARS_WIDTH = 78
"""Per cent of the width that the longest bar takes; its value is to the right of it."""
_HEADS_WIDTH = 28
"""Per cent of the width that the names of a heat map's rows take."""
_MAX_MARKS = 40
_NO_POINTS = '<p class="quiet">No whole step of time is known yet.</p>'
_LEAST_TINT, _DARK_TINT = 0.12, 0.6


def bars(
    names: Sequence[object],
    series: Mapping[str, Sequence[float | None]],
    axis: str,
    show: Callable[[float | None], str] = number,
    limit: float | None = None,
) -> str:
    """A bar for each name, stacked from the parts in `series`, with its sum.

    `show` formats a value; a dotted line marks `limit`. There is no legend if the only part has the
    name of the axis.
    """
    rows = [[_finite(values[n]) for values in series.values()] for n in range(len(names))]
    most = max([*map(sum, rows), limit or 0]) or 1
    parts = []
    for n, (name, values) in enumerate(zip(names, rows, strict=True)):
        top = n * _LANE_PX
        parts.append(svg.text(0, top + 14, name, "name"))
        x = 0.0
        for place, (part, value) in enumerate(zip(series, values, strict=True)):
            width = value / most * _BARS_WIDTH
            hint = f"{listed(name)}: {listed(part)} {show(value)}"
            css = f"bar fill-{place % svg.NUM_COLOURS}"
            if value:
                parts.append(svg.rectangle((x, top + svg.LINE_PX, width), _BAR_PX, css, hint))
            x += width
        parts.append(svg.text(x + 1, top + svg.LINE_PX + 13, show(sum(values)), "value"))
    height = _LANE_PX * len(names)
    if limit is not None:
        at = limit / most * _BARS_WIDTH
        parts.append(svg.rule(at, 0, at, height, "limit"))
    below = [] if list(series) == [axis] else [svg.legend(list(series), "bar")]
    return "".join((svg.drawing(height, parts), f'<p class="axis">{label(axis, 60)}</p>', *below))


def _finite(value: float | None) -> float:
    return value if value is not None and math.isfinite(value) else 0.0


def lines(
    series: Mapping[str, Sequence[Point]],
    axis: str,
    step_s: int,
    limit: tuple[str, float] | None = None,
) -> str:
    """A line for each of the first MAX_SERIES series; a dotted one for a limit.

    A step without a row breaks the line. Lines also differ in their dashes, for print.
    """
    shown = dict(list(series.items())[:MAX_SERIES])
    points = [point for each in shown.values() for point in each]
    if not points:
        return _NO_POINTS
    first, last = min(second for second, _ in points), max(second for second, _ in points)
    top = _top([_finite(value) for _, value in points] + ([limit[1]] if limit else []))
    plot = _Plot(first, last, top)
    parts = [plot.rule(value) for value in _ticks(top)]
    for place, (name, each) in enumerate(shown.items()):
        parts += plot.line(name, _broken(each, step_s), place)
    # Words come last, so that no line hides them.
    if limit:
        y = plot.y(limit[1])
        words = f"{limit[0]}: {number(limit[1])}"
        parts += [svg.rule(0, y, 100, y, "limit"), svg.text(100, y - 4, words, "tick", "end")]
    parts += [plot.tick(value) for value in _ticks(top)]
    parts += svg.times(first, last, _LINES_PX + 40)
    unit = f'<p class="axis">{label(axis, 60)}, by time (UTC)</p>'
    return svg.drawing(_LINES_PX + 46, parts) + unit + svg.legend(list(shown), "line")


def columns(
    series: Mapping[str, Sequence[Point]],
    step_s: int,
    show: Callable[[float | None], str],
    events: Sequence[tuple[float, str]] = (),
) -> str:
    """A column for each step of time, stacked from the parts in `series`; events have marks.

    `show` formats a value; events are seconds and words.
    """
    parts_at: dict[int, dict[str, float]] = {}
    for name, points in series.items():
        for second, value in points:
            parts_at.setdefault(second, {})[name] = _finite(value)
    if not parts_at:
        return _NO_POINTS
    first, last = min(parts_at), max(parts_at) + step_s
    plot = _Plot(first, last, _top([sum(each.values()) for each in parts_at.values()]))
    width, colours = plot.x(first + step_s) * 0.9, {name: n for n, name in enumerate(series)}
    drawn = [plot.rule(value) for value in _ticks(plot.top)]
    for second, values in sorted(parts_at.items()):
        below = 0.0
        for name, value in values.items():
            top, bottom = plot.y(below + value), plot.y(below)
            hint = f"{listed(name)}: {show(value)} at {datetime.fromtimestamp(second, UTC):%H:%M}"
            css = f"fill-{colours[name] % svg.NUM_COLOURS}"
            drawn.append(svg.rectangle((plot.x(second), top, width), bottom - top, css, hint))
            below += value
    shown = [(at, words) for at, words in events if first <= at <= last]
    drawn += [svg.text(0, plot.y(each) - 4, show(each), "tick") for each in _ticks(plot.top)]
    drawn += [svg.mark(1 + 0.98 * plot.x(int(at)), 10, 0, words) for at, words in shown]
    drawn += svg.times(first, last, _LINES_PX + 40)
    marks = svg.legend(["a config changed"], "mark") if shown else ""
    return svg.drawing(_LINES_PX + 46, drawn) + svg.legend(list(series), "bar") + marks


def _top(values: Sequence[float]) -> float:
    """The least of 1, 2 and 5 times a power of ten that is not less than any value."""
    most = max(values)
    if most <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(most))
    return next((n * power for n in (1, 2, 5) if n * power >= most), 10 * power)


def _ticks(top: float) -> tuple[float, ...]:
    return (0.0, top / 2, top)


@dataclass(frozen=True, slots=True)
class _Plot:
    """The area of lines: x in per cent of the width, y in px from the top."""

    first: int
    last: int
    top: float

    def x(self, second: float) -> float:
        return 100 * (second - self.first) / ((self.last - self.first) or 1)

    def y(self, value: float) -> float:
        return 20 + _LINES_PX * (1 - value / self.top)

    def rule(self, value: float) -> str:
        return svg.rule(0, self.y(value), 100, self.y(value))

    def tick(self, value: float) -> str:
        return svg.text(0, self.y(value) - 4, number(value) or "0", "tick")

    def line(self, name: str, points: Sequence[Point], place: int) -> list[str]:
        """The pieces of a line, and a mark for each point if they are few or stand alone."""
        pieces: list[list[tuple[int, float]]] = [[]]
        for second, value in points:
            if value is None or not math.isfinite(value):
                pieces.append([])
            else:
                pieces[-1].append((second, value))
        is_few = len(points) <= _MAX_MARKS
        parts = [self._piece(piece, place) for piece in pieces if len(piece) > 1]
        for piece in pieces:
            if is_few or len(piece) == 1:
                parts += [self._dot(name, second, value, place) for second, value in piece]
        return parts

    def _piece(self, piece: Sequence[tuple[int, float]], place: int) -> str:
        path = " ".join(f"{self.x(second) * 10:.1f},{self.y(value):.1f}" for second, value in piece)
        height = _LINES_PX + 46
        return (
            f'<svg width="100%" height="{height}" viewBox="0 0 1000 {height}" '
            f'preserveAspectRatio="none"><polyline points="{path}" '
            f'class="line-{place % svg.NUM_COLOURS}" {svg.dash(place)}/></svg>'
        )

    def _dot(self, name: str, second: int, value: float, place: int) -> str:
        hint = f"{listed(name)}: {number(value)} at {datetime.fromtimestamp(second, UTC):%H:%M:%S}"
        return (
            f'<circle cx="{self.x(second):.2f}%" cy="{self.y(value):.1f}" r="3" '
            f'class="fill-{place % svg.NUM_COLOURS}">{svg.title(hint)}</circle>'
        )


def _broken(points: Sequence[Point], step_s: int) -> list[Point]:
    """The points, with one without a value at each missing step, so that no line crosses it."""
    ordered = sorted(points, key=lambda point: point[0])
    drawn: list[Point] = []
    for point in ordered:
        if drawn and point[0] - drawn[-1][0] > step_s:
            drawn.append((drawn[-1][0] + step_s, None))
        drawn.append(point)
    return drawn


def by_name(rows: Sequence[Mapping[str, Any]], name: str, value: str) -> dict[str, list[Point]]:
    """Points of rows by the column with the name of their series; times are in `second`."""
    series: dict[str, list[Point]] = {}
    for row in rows:
        series.setdefault(str(NOT_KNOWN if row[name] is None else row[name]), []).append(
            (row["second"], row[value])
        )
    return series


Cells = Mapping[tuple[str | None, str | None], float]
"""Bytes by the rack of the client and that of the broker."""


def heat_map(cells: Cells, row_head: str, column_head: str, most: float | None = None) -> str:
    """Bytes by (row, column); missing pairs stay blank.

    Bytes between two names are the bad end: the more there are, the brighter is their cell. `most`
    is where the scale ends, so that maps side by side have one. Bytes within one name have no
    colour, and those of an unknown name neither.
    """
    rows, columns = (_names({names[side] for names in cells}) for side in (0, 1))
    end = most or worst(cells) or 1
    width = (100 - _HEADS_WIDTH) / len(columns)
    parts = [
        svg.text(_HEADS_WIDTH + (n + 0.5) * width, 14, listed(name, 12), "name", "middle")
        for n, name in enumerate(columns)
    ]
    for down, row in enumerate(rows):
        top = svg.LINE_PX + down * _CELL_PX
        parts.append(svg.text(0, top + 25, listed(row, 14), "name"))
        for n, column in enumerate(columns):
            value = cells.get((row, column))
            if value is not None:
                hint = f"{row_head} {listed(row)}, {column_head} {listed(column)}: {size(value)}"
                x = _HEADS_WIDTH + n * width
                tint = _tint(row, column, value, end)
                parts.append(_cell((x, top, width), tint, hint, size(value)))
    heads = f"down: {row_head}; across: {column_head}"
    height = svg.LINE_PX + _CELL_PX * len(rows)
    return svg.drawing(height, parts) + f'<p class="axis">{label(heads, 80)}</p>' + _scale(end)


def worst(cells: Cells) -> float:
    """The most bytes between two different names that are known."""
    return max((value for pair, value in cells.items() if _crosses(*pair)), default=0.0)


def _crosses(row: str | None, column: str | None) -> bool:
    return None not in {row, column} and row != column


def _tint(row: str | None, column: str | None, value: float, end: float) -> float | None:
    """How much of the colour of the bad end a cell gets, 0 to 1; None: no colour applies."""
    if not _crosses(row, column):
        return None
    return 0.0 if value <= 0 else min(_LEAST_TINT + (1 - _LEAST_TINT) * value / end, 1.0)


def _cell(place: tuple[float, float, float], tint: float | None, hint: str, words: str) -> str:
    x, top, width = place
    box = (
        f'<rect x="{x:.2f}%" y="{top}" width="{width - 0.4:.2f}%" height="{_CELL_PX - 3}" '
        f'class="{"plain" if tint is None else "bad"}" '
        f'fill-opacity="{0 if tint is None else tint:.2f}">{svg.title(hint)}</rect>'
    )
    css = "value on-bad" if (tint or 0) > _DARK_TINT else "value"
    return box + svg.text(x + width / 2, top + 24, words, css, "middle")


def _scale(end: float) -> str:
    """The legend of a heat map: what is bad, from nothing to the end of the scale."""
    steps = "".join(
        f'<rect x="{n * 16}" width="16" height="12" class="bad" '
        f'fill-opacity="{_LEAST_TINT + (1 - _LEAST_TINT) * n / 7:.2f}"/>'
        for n in range(8)
    )
    return (
        f'<p class="legend"><span>crossed racks: 0 <svg width="128" height="12">{steps}</svg> '
        f'{size(end)}</span><span><svg width="26" height="12"><rect width="26" height="12" '
        'class="plain" fill-opacity="0"/></svg> within a rack, or a rack is not known</span></p>'
    )


def _names(names: set[str | None]) -> list[str | None]:
    """Names in order, None last."""
    return sorted(names, key=lambda name: (name is None, name or ""))


@dataclass(frozen=True, slots=True)
class TimelineEvent:
    """One event: its time, lane, kind, and the text shown at the pointer."""

    time: datetime
    lane: str
    kind: str
    words: str


def timeline(events: Sequence[TimelineEvent]) -> str:
    """Lanes from the top down in order of their first event, with a mark for each event."""
    lanes = list(dict.fromkeys(event.lane for event in events))
    kinds = list(dict.fromkeys(event.kind for event in events))
    seconds = [event.time.timestamp() for event in events]
    first, last = min(seconds), max(seconds)
    parts = []
    for n, lane in enumerate(lanes):
        base = n * _LANE_PX + 30
        parts += [svg.text(0, base - 14, lane, "name"), svg.rule(0, base, 100, base)]
    for event, second in zip(events, seconds, strict=True):
        # Half a mark is outside of the axis at its ends.
        x = 1 + 98 * (second - first) / ((last - first) or 1)
        y = lanes.index(event.lane) * _LANE_PX + 30
        at = f"{event.time.astimezone(UTC):%Y-%m-%d %H:%M:%S}"
        parts.append(svg.mark(x, y, kinds.index(event.kind), f"{at}: {listed(event.words, 80)}"))
    height = _LANE_PX * len(lanes) + 22
    parts += svg.times(first, last, height - 4)
    return svg.drawing(height, parts) + svg.legend(kinds, "mark")
