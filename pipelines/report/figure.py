"""Plotly figures: colours for colour-blind readers, and room for names below the axes."""

from collections.abc import Mapping, Sequence
from typing import Any

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#999999")
"""Okabe and Ito's palette, without yellow and black, which vanish on white or black paper."""
SYMBOLS = ("circle", "diamond", "square", "triangle-up", "x", "cross", "star")
"""Marks that distinguish series without colours."""
MAX_SERIES = 6
"""A chart has at most this many lines, the largest; captions say so."""

_LEGEND_ROW_PX, _AXIS_PX, _MIN_PX = 22, 68, 64

# A finger that scrolls the page must not zoom a chart.
_FIXED: Mapping[str, Any] = {"automargin": True, "fixedrange": True, "zeroline": False}


def figure(
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


def lanes(labels: Sequence[str]) -> dict[str, Any]:
    """An axis with one lane per label from the top down; labels may be equal."""
    return {
        "tickmode": "array",
        "tickvals": list(range(len(labels))),
        "ticktext": list(labels),
        "range": [len(labels) - 0.5, -0.5],
        "showgrid": False,
    }
