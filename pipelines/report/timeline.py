"""Events in lanes over time, as a plotly figure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from quotaflow.pipelines.report.figure import COLOURS, SYMBOLS, figure, lanes
from quotaflow.pipelines.report.texts import label

_LANE_PX = 34


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
    down = lanes([label(name) for name in lane_names]) | {"showgrid": True}
    return figure(traces, _LANE_PX * len(lane_names) + 10, across, down)
