"""Charts as SVG, which need no script: bars, gauges, heat maps, timelines.

Colours are for colour-blind readers; names of series are below the axes.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from quotaflow.pipelines.report import svg
from quotaflow.pipelines.terminal.texts import label, listed, number, size

MAX_BARS = 12
"""A chart has at most this many bars, the most important first."""

_BAR_PX, _CELL_PX, _LANE_PX, _GAUGE_PX = 16, 40, 44, 66
_NEAR = 0.8
"""From this part of its limit on a gauge is nearly full."""
_LEAST_PERIOD = 1.5
_BARS_WIDTH = 78
"""Per cent of the width that the longest bar takes; its value is to the right of it."""
_HEADS_WIDTH = 28
"""Per cent of the width that the names of a heat map's rows take."""
_LEAST_TINT, _DARK_TINT = 0.12, 0.6


def bars(
    names: Sequence[object],
    series: Mapping[str, Sequence[float | None]],
    axis: str,
    show: Callable[[float | None], str] = number,
    limit: float | None = None,
) -> str:
    """A bar for each name, stacked from the parts in `series`, with its sum.

    `show` formats a value; a dotted line marks `limit`. The legend leaves out parts without a
    value; there is none if the only part has the name of the axis.
    """
    rows = [[finite(values[n]) for values in series.values()] for n in range(len(names))]
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
    drawn = [name if any(map(finite, values)) else "" for name, values in series.items()]
    below = [] if list(series) == [axis] else [svg.legend(drawn, "bar")]
    return "".join((svg.drawing(height, parts), f'<p class="axis">{label(axis, 60)}</p>', *below))


def gauges(quantities: Sequence[tuple[object, float, str]]) -> str:
    """A gauge for each name: which part of its limit is used, and that in words."""
    parts = []
    for n, (name, share, words) in enumerate(quantities):
        top = n * _GAUGE_PX
        css = "now" if share >= 1 else "soon" if share >= _NEAR else "well"
        used = 100 * min(max(finite(share), 0), 1)
        parts += [
            svg.text(0, top + 14, name, "name"),
            svg.rectangle((0, top + svg.LINE_PX, 100), _BAR_PX, "track", words),
            svg.rectangle((0, top + svg.LINE_PX, used), _BAR_PX, f"bar {css}", words),
            svg.text(0, top + 54, words, "value"),
        ]
    return svg.drawing(_GAUGE_PX * len(quantities), parts)


def period_line(times: tuple[float, float], part: tuple[float, float], css: str, words: str) -> str:
    """A small time line from the first of `times` to the last, with the `part` of something."""
    first, every = times[0], (times[1] - times[0]) or 1
    left, right = (100 * min(max((at - first) / every, 0), 1) for at in part)
    width = max(right - left, _LEAST_PERIOD)
    place = (min(left, 100 - width), 1, width)
    drawn = (svg.rule(0, 6, 100, 6), svg.rectangle(place, 10, f"period {css}", words))
    return svg.drawing(12, drawn)


def finite(value: float | None) -> float:
    """The value; 0 if it is none, or no number."""
    return value if value is not None and math.isfinite(value) else 0.0


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
