"""Values over time as SVG, which need no script: lines, stacked areas, sparklines.

Each step of time shows its values at the pointer. Lines differ in their dashes, for print.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from quotaflow.pipelines.report import svg
from quotaflow.pipelines.report.charts import finite
from quotaflow.pipelines.terminal.texts import NOT_KNOWN, label, listed, number

MAX_SERIES = 6
"""A chart has at most this many lines, the largest; captions say so."""
Point = tuple[int, float | None]
"""Start of a step in seconds since 1970, and its value."""

_NO_POINTS = '<p class="quiet">No whole step of time is known yet.</p>'
_MAX_MARKS = 40
_PLOT_PX, _ABOVE_PX, _TIMES_PX = 200, 20, 26
_SPARK_PX = 40
_NEAR = 1.5
"""Events that are nearer than this per cent of the width share a mark."""
_MINUTE_S = 60
_ALTERED = ("a config changed",)
_Values = Mapping[int, Mapping[str, float]]
"""By the start of a step, values by the name of their series."""


def lines(
    series: Mapping[str, Sequence[Point]],
    axis: str,
    step_s: int,
    limit: tuple[str, float] | None = None,
) -> str:
    """A line for each of the first MAX_SERIES series; a dotted one for a limit.

    A step without a row breaks the line.
    """
    shown = dict(list(series.items())[:MAX_SERIES])
    points = [point for each in shown.values() for point in each]
    if not points:
        return _NO_POINTS
    top = _top([finite(value) for _, value in points] + ([limit[1]] if limit else []))
    seconds = [second for second, _ in points]
    plot = _Plot(min(seconds), max(seconds), top)
    parts = [plot.rule(value) for value in _ticks(top)]
    for place, each in enumerate(shown.values()):
        parts += plot.line(_broken(each, step_s), place)
    # Words come after lines, so that no line hides them.
    if limit:
        y = plot.y(limit[1])
        words = f"{limit[0]}: {number(limit[1])}"
        parts += [svg.rule(0, y, 100, y, "limit"), svg.text(100, y - 4, words, "tick", "end")]
    parts += [plot.tick(value, number(value) or "0") for value in _ticks(top)]
    parts += plot.hints(_values(shown), step_s, number, -0.5)
    unit = f'<p class="axis">{label(axis, 60)}, by time (UTC)</p>'
    return plot.drawn(parts) + unit + svg.legend(list(shown), "line")


def areas(
    series: Mapping[str, Sequence[Point]],
    step_s: int,
    show: Callable[[float | None], str],
    events: Sequence[tuple[float, str]] = (),
) -> str:
    """Areas over time, stacked from the parts in `series`; events have marks.

    `show` formats a value; events are seconds and words, in order of time. A step without a row
    is a gap.
    """
    values = _values(series)
    if not values:
        return _NO_POINTS
    plot = _Plot(min(values), max(values) + step_s, _top_of_sums(values))
    parts = [plot.rule(value) for value in _ticks(plot.top)]
    parts.append(plot.stack(values, list(series), step_s))
    parts += [plot.tick(value, show(value)) for value in _ticks(plot.top)]
    # A part that is nothing says nothing.
    some = {at: {n: v for n, v in each.items() if v} or each for at, each in values.items()}
    parts += plot.hints(some, step_s, show)
    marks = list(_marks(plot, events))
    drawn = {name for each in values.values() for name, value in each.items() if value}
    legend = svg.legend([name if name in drawn else "" for name in series], "bar")
    return plot.drawn([*parts, *marks]) + legend + svg.legend(_ALTERED if marks else (), "mark")


def sparkline(
    points: Sequence[Point],
    step_s: int,
    show: Callable[[float | None], str],
    times: tuple[float, float],
) -> str:
    """How one number went, without axes, over the `times` from a first second to a last one."""
    values = _values({"": points})
    if not any(values.values()):
        return ""
    plot = _Plot(*times, _top_of_sums(values), _SPARK_PX, 0)
    parts = (plot.rule(0), plot.stack(values, [""], step_s), *plot.hints(values, step_s, show))
    return svg.drawing(_SPARK_PX, parts)


def by_name(rows: Sequence[Mapping[str, Any]], name: str, value: str) -> dict[str, list[Point]]:
    """Points of rows by the column with the name of their series; times are in `second`."""
    series: dict[str, list[Point]] = {}
    for row in rows:
        series.setdefault(str(NOT_KNOWN if row[name] is None else row[name]), []).append(
            (row["second"], row[value])
        )
    return series


def _values(series: Mapping[str, Sequence[Point]]) -> dict[int, dict[str, float]]:
    values: dict[int, dict[str, float]] = {}
    for name, points in series.items():
        for second, value in points:
            values.setdefault(second, {})
            if value is not None and math.isfinite(value):
                values[second][name] = value
    return values


def _marks(plot: "_Plot", events: Sequence[tuple[float, str]]) -> Iterator[str]:
    """A mark for the events of the plot's time that are near each other."""
    places: list[tuple[float, list[str]]] = []
    for second, words in events:
        x = plot.x(second)
        if places and x - places[-1][0] < _NEAR:
            places[-1][1].append(words)
        elif plot.first <= second <= plot.last:
            places.append((x, [words]))
    for x, every in places:
        yield svg.rule(x, _ABOVE_PX, x, _ABOVE_PX + _PLOT_PX, "event")
        yield svg.mark(1 + 0.98 * x, _ABOVE_PX / 2, 0, "; ".join(every))


def _top(values: Sequence[float]) -> float:
    """The least of 1, 2 and 5 times a power of ten that is not less than any value."""
    most = max(values)
    if most <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(most))
    return next((n * power for n in (1, 2, 5) if n * power >= most), 10 * power)


def _top_of_sums(values: _Values) -> float:
    return _top([sum(each.values()) for each in values.values()])


def _ticks(top: float) -> tuple[float, ...]:
    return (0.0, top / 2, top)


@dataclass(frozen=True, slots=True)
class _Plot:
    """The area of values over time: x in per cent of the width, y in px from the top."""

    first: float
    last: float
    top: float
    height_px: int = _PLOT_PX
    above_px: int = _ABOVE_PX

    def x(self, second: float) -> float:
        return 100 * (second - self.first) / ((self.last - self.first) or 1)

    def y(self, value: float) -> float:
        return self.above_px + self.height_px * (1 - value / self.top)

    def rule(self, value: float) -> str:
        return svg.rule(0, self.y(value), 100, self.y(value))

    def tick(self, value: float, words: str) -> str:
        return svg.text(0, self.y(value) - 4, words, "tick")

    def drawn(self, parts: Sequence[str]) -> str:
        bottom = self.above_px + self.height_px
        times = svg.times(self.first, self.last, bottom + _ABOVE_PX)
        return svg.drawing(bottom + _TIMES_PX, [*parts, *times])

    def hints(
        self,
        values: _Values,
        step_s: int,
        show: Callable[[float | None], str],
        shift: float = 0,
    ) -> Iterator[str]:
        """The values of each step, at the pointer; a step is shifted by a part of its width."""
        form = "%m-%d %H:%M" if step_s >= _MINUTE_S else "%m-%d %H:%M:%S"
        for second, each in sorted(values.items()):
            ends = (self.x(second + (shift + n) * step_s) for n in (0, 1))
            left, right = (min(max(end, 0), 100) for end in ends)
            time = f"{datetime.fromtimestamp(second, UTC):{form}}"
            shown = (f"{listed(name)} {show(value)}".strip() for name, value in each.items())
            place = (left, self.above_px, right - left)
            hint = f"{time}: {', '.join(shown) or NOT_KNOWN}"
            yield svg.rectangle(place, self.height_px, "step", hint)

    def line(self, points: Sequence[Point], place: int) -> list[str]:
        """The pieces of a line, and a mark for each point if they are few or stand alone."""
        pieces: list[list[tuple[int, float]]] = [[]]
        for second, value in points:
            if value is None or not math.isfinite(value):
                pieces.append([])
            else:
                pieces[-1].append((second, value))
        is_few = len(points) <= _MAX_MARKS
        css = f"line-{place % svg.NUM_COLOURS}"
        drawn = [
            svg.shape("polyline", self._path(piece), css, svg.dash(place))
            for piece in pieces
            if len(piece) > 1
        ]
        dots = [
            svg.dot(self.x(second), self.y(value), place)
            for piece in pieces
            if is_few or len(piece) == 1
            for second, value in piece
        ]
        return [svg.stretched(self.above_px + self.height_px, drawn), *dots]

    def stack(self, values: _Values, names: Sequence[str], step_s: int) -> str:
        """The parts of each step one above the other."""
        shapes = []
        for run in _runs(sorted(values), step_s):
            below = dict.fromkeys(run, 0.0)
            for place, name in enumerate(names):
                above = {at: below[at] + max(values[at].get(name, 0.0), 0.0) for at in run}
                if above != below:
                    edge = [*self._edge(above, step_s), *reversed(self._edge(below, step_s))]
                    css = f"area fill-{place % svg.NUM_COLOURS}"
                    shapes.append(svg.shape("polygon", self._path(edge), css))
                below = above
        return svg.stretched(self.above_px + self.height_px, shapes)

    def _edge(self, heights: Mapping[int, float], step_s: int) -> list[tuple[int, float]]:
        return [(at + n * step_s, value) for at, value in heights.items() for n in (0, 1)]

    def _path(self, points: Sequence[tuple[int, float]]) -> str:
        return " ".join(
            f"{self.x(second) * 10:.1f},{self.y(value):.1f}" for second, value in points
        )


def _runs(seconds: Sequence[int], step_s: int) -> list[list[int]]:
    """Steps that follow each other without a gap."""
    runs: list[list[int]] = []
    for second in seconds:
        if runs and second - runs[-1][-1] <= step_s:
            runs[-1].append(second)
        else:
            runs.append([second])
    return runs


def _broken(points: Sequence[Point], step_s: int) -> list[Point]:
    """The points, with one without a value at each missing step, so that no line crosses it."""
    drawn: list[Point] = []
    for point in sorted(points, key=lambda point: point[0]):
        if drawn and point[0] - drawn[-1][0] > step_s:
            drawn.append((drawn[-1][0] + step_s, None))
        drawn.append(point)
    return drawn
