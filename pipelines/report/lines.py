"""Values over time as a plotly figure."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from quotaflow.pipelines.report.figure import COLOURS, MAX_SERIES, SYMBOLS, figure
from quotaflow.pipelines.report.texts import NOT_KNOWN, label

_PLOT_PX = 220
_FEW = 40
_DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
Point = tuple[int, float | None]
"""Start of a step in seconds since 1970, and its value."""


def lines(
    series: Mapping[str, Sequence[Point]],
    axis: str,
    step_s: int,
    limit: tuple[str, float] | None = None,
) -> str:
    """JSON of the figure: a line for each of the first MAX_SERIES series; a dotted one for a limit.

    A step without a row breaks the line. Lines also differ in their dashes, for print.
    """
    traces = [
        _trace(name, _broken(points, step_s), place)
        for place, (name, points) in enumerate(list(series.items())[:MAX_SERIES])
    ]
    if limit:
        seconds = [second for points in series.values() for second, _ in points]
        ends = [(min(seconds), limit[1]), (max(seconds), limit[1])]
        traces.append(_trace(limit[0], ends, len(COLOURS) - 1, is_limit=True))
    down = {"title": axis, "rangemode": "tozero", "nticks": 6, "exponentformat": "none"}
    return figure(
        traces, _PLOT_PX, {"type": "date", "title": "UTC", "nticks": 4, "tickangle": 0}, down
    )


def _trace(name: str, points: Sequence[Point], place: int, *, is_limit: bool = False) -> Any:
    from plotly import graph_objects as go  # noqa: PLC0415  an extra of its own

    dash = "dot" if is_limit else _DASHES[place % len(_DASHES)]
    return go.Scatter(
        name=label(name, 40),
        showlegend=True,
        x=[_utc(second) for second, _ in points],
        y=[value for _, value in points],
        mode="lines" if is_limit else "lines+markers",
        line={"color": COLOURS[place % len(COLOURS)], "dash": dash, "width": 2},
        marker={"size": 6 if len(points) <= _FEW else 3, "symbol": SYMBOLS[place % len(SYMBOLS)]},
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


def _utc(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%d %H:%M:%S")


def by_name(rows: Sequence[Mapping[str, Any]], name: str, value: str) -> dict[str, list[Point]]:
    """Points of rows by the column with the name of their series; times are in `second`."""
    series: dict[str, list[Point]] = {}
    for row in rows:
        series.setdefault(str(NOT_KNOWN if row[name] is None else row[name]), []).append(
            (row["second"], row[value])
        )
    return series
