"""Charts as JSON of plotly figures: bars, lines, heat maps and timelines.

Colours are for colour-blind readers; names of series are below the axes.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from quotaflow.pipelines.report.texts import NOT_KNOWN, label, number, size

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#999999")
"""Okabe and Ito's palette, without yellow and black, which vanish on white or black paper."""
SYMBOLS = ("circle", "diamond", "square", "triangle-up", "x", "cross", "star")
"""Marks that distinguish series without colours."""
MAX_SERIES = 6
"""A chart has at most this many lines, the largest; captions say so."""
MAX_BARS = 12
"""A chart has at most this many bars, the most important first."""
Point = tuple[int, float | None]
"""Start of a step in seconds since 1970, and its value."""

_LEGEND_ROW_PX, _AXIS_PX, _MIN_PX = 22, 68, 64
_BAR_PX, _LINES_PX, _CELL_PX, _LANE_PX = 30, 220, 44, 34
_MAX_LARGE_MARKS = 40
_DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
_HEAT_COLOURS = "Cividis"

# A finger that scrolls the page must not zoom a chart.
_FIXED: Mapping[str, Any] = {"automargin": True, "fixedrange": True, "zeroline": False}


def _figure(
    traces: Sequence[Any], plot_px: int, xaxis: dict[str, Any], yaxis: dict[str, Any]
) -> str:
    """JSON of a figure whose plot is plot_px high; names of series are below it, one per line."""
    from plotly import graph_objects as go  # noqa: PLC0415  an extra of its own

    legend_rows = len({trace.name for trace in traces if trace.showlegend})
    legend = {"orientation": "v", "x": 0, "xanchor": "left", "y": 0, "yanchor": "bottom"}
    layout = go.Layout(
        template="none",
        height=max(plot_px, _MIN_PX) + _AXIS_PX + _LEGEND_ROW_PX * legend_rows,
        margin={"l": 8, "r": 12, "t": 8, "b": 8},
        font={"size": 13, "family": "system-ui, sans-serif"},
        xaxis=_axis(xaxis),
        yaxis=_axis(yaxis),
        showlegend=legend_rows > 0,
        legend=legend | {"yref": "container", "traceorder": "normal"},
        hoverlabel={"namelength": -1},
        barmode="stack",
    )
    return str(go.Figure(list(traces), layout).to_json())


def _axis(own: dict[str, Any]) -> dict[str, Any]:
    title = {"text": own.pop("title", ""), "standoff": 10, "font": {"size": 13}}
    return dict(_FIXED) | own | {"title": title}


def _lanes(labels: Sequence[str]) -> dict[str, Any]:
    """An axis with one lane per label from the top down; labels may be equal."""
    return {
        "tickmode": "array",
        "tickvals": list(range(len(labels))),
        "ticktext": list(labels),
        "range": [len(labels) - 0.5, -0.5],
        "showgrid": False,
    }


def bars(
    names: Sequence[object],
    series: Mapping[str, Sequence[float | None]],
    axis: str,
    show: Callable[[float | None], str] = number,
    limit: float | None = None,
) -> str:
    """JSON of the figure: a bar for each name, stacked from the parts in `series`.

    `show` formats a value; a dotted line marks `limit`. There is no legend if the only part has the
    name of the axis.
    """
    from plotly import graph_objects as go  # noqa: PLC0415  an extra of its own

    labels = [label(name) for name in names]
    traces = [
        go.Bar(
            orientation="h",
            name=label(part),
            showlegend=list(series) != [axis],
            x=[value or 0 for value in values],
            y=list(range(len(labels))),
            marker={"color": COLOURS[place % len(COLOURS)]},
            text=[show(value) if value else "" for value in values],
            width=0.7,
            textposition="auto" if len(series) == 1 else "none",
            insidetextanchor="start",
            customdata=labels,
            hovertemplate=f"%{{customdata}}: {label(part)} %{{text}}<extra></extra>",
        )
        for place, (part, values) in enumerate(series.items())
    ]
    across: dict[str, Any] = {"title": axis, "rangemode": "tozero", "nticks": 4, "tickangle": 0}
    if limit is not None:
        across |= {"showgrid": False}
        traces.append(_line(limit, len(labels)))
    return _figure(traces, _BAR_PX * len(labels), across, _lanes(labels))


def _line(at: float, lanes_count: int) -> Any:
    from plotly import graph_objects as go  # noqa: PLC0415

    return go.Scatter(
        x=[at, at],
        y=[-0.5, lanes_count - 0.5],
        mode="lines",
        line={"color": COLOURS[5], "dash": "dot", "width": 2},
        showlegend=False,
        hoverinfo="skip",
    )


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
    return _figure(
        traces, _LINES_PX, {"type": "date", "title": "UTC", "nticks": 4, "tickangle": 0}, down
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
        marker={
            "size": 6 if len(points) <= _MAX_LARGE_MARKS else 3,
            "symbol": SYMBOLS[place % len(SYMBOLS)],
        },
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


def heat_map(
    cells: Mapping[tuple[str | None, str | None], float], row_head: str, column_head: str
) -> str:
    """JSON of the figure: bytes by (row, column); missing pairs stay blank."""
    from plotly import graph_objects as go  # noqa: PLC0415  an extra of its own

    rows, columns = (_names({names[side] for names in cells}) for side in (0, 1))
    values = [[cells.get((row, column)) for column in columns] for row in rows]
    labels = [[label(name) for name in names] for names in (rows, columns)]
    heat = go.Heatmap(
        x=list(range(len(columns))),
        y=list(range(len(rows))),
        z=values,
        text=_texts(values),
        customdata=[
            [f"{row_head} {row}, {column_head} {column}" for column in labels[1]]
            for row in labels[0]
        ],
        texttemplate="%{text}",
        hovertemplate="%{customdata}: %{text}<extra></extra>",
        colorscale=_HEAT_COLOURS,
        # Plotly ignores zmin without zmax; without zmin the smallest value would look like zero.
        zmin=0,
        zmax=max(cells.values()) or 1,
        showscale=False,
        showlegend=False,
        xgap=2,
        ygap=2,
    )
    across = _lanes(labels[1]) | {"range": [-0.5, len(columns) - 0.5], "title": column_head}
    return _figure([heat], _CELL_PX * len(rows), across, _lanes(labels[0]))


def _names(names: set[str | None]) -> list[str | None]:
    """Names in order, None last."""
    return sorted(names, key=lambda name: (name is None, name or ""))


def _texts(values: Sequence[Sequence[float | None]]) -> list[list[str]]:
    return [["" if value is None else size(value) for value in row] for row in values]


@dataclass(frozen=True, slots=True)
class TimelineEvent:
    """One event: its time, lane, kind, and the text shown on hover."""

    time: datetime
    lane: str
    kind: str
    words: str


def timeline(events: Sequence[TimelineEvent]) -> str:
    """JSON of the figure: lanes from the top down in order of their first event."""
    from plotly import graph_objects as go  # noqa: PLC0415  an extra of its own

    lane_names = list(dict.fromkeys(event.lane for event in events))
    traces = []
    for place, kind in enumerate(dict.fromkeys(event.kind for event in events)):
        shown = [event for event in events if event.kind == kind]
        traces.append(
            go.Scatter(
                name=label(kind),
                showlegend=True,
                mode="markers",
                x=[f"{event.time.astimezone(UTC):%Y-%m-%d %H:%M:%S.%f}" for event in shown],
                y=[lane_names.index(event.lane) for event in shown],
                text=[label(event.words, 80) for event in shown],
                hovertemplate="%{x}: %{text}<extra></extra>",
                marker={
                    "size": 12,
                    "color": COLOURS[place % len(COLOURS)],
                    "symbol": SYMBOLS[place % len(SYMBOLS)],
                },
            )
        )
    across = {"type": "date", "title": "UTC", "nticks": 4, "tickangle": 0}
    down = _lanes([label(name) for name in lane_names]) | {"showgrid": True}
    return _figure(traces, _LANE_PX * len(lane_names) + 10, across, down)
