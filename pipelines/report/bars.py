"""Bars from left to right, one below the other, as a plotly figure."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from quotaflow.pipelines.report.figure import COLOURS, figure, lanes
from quotaflow.pipelines.report.texts import label, number

_BAR_PX = 30
MAX_BARS = 12
"""A chart has so many bars at most, the most important first."""


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
    return figure(traces, _BAR_PX * len(labels), across, lanes(labels))


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
