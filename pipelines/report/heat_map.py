"""A heat map as a plotly figure: where much is, in colours that colour-blind eyes tell apart."""

from collections.abc import Mapping, Sequence
from typing import Any

from quotaflow.pipelines.report.section import label, size

_CELL_PX, _FRAME_PX = 44, 130
_SCALE = "Cividis"


def heat_map(
    cells: Mapping[tuple[str | None, str | None], float], row_head: str, column_head: str
) -> str:
    """JSON of the figure: bytes by (row, column); a pair that is not there stays blank."""
    from plotly import graph_objects as go  # noqa: PLC0415  an extra of its own

    rows, columns = (_names({names[side] for names in cells}) for side in (0, 1))
    values = [[cells.get((row, column)) for column in columns] for row in rows]
    heat = go.Heatmap(
        x=[label(name) for name in columns],
        y=[label(name) for name in rows],
        z=values,
        text=_texts(values),
        texttemplate="%{text}",
        hovertemplate=f"{row_head} %{{y}}, {column_head} %{{x}}: %{{text}}<extra></extra>",
        colorscale=_SCALE,
        zmin=0,
        showscale=False,
        xgap=2,
        ygap=2,
    )
    axes: dict[str, Any] = {"type": "category", "automargin": True, "fixedrange": True}
    layout = go.Layout(
        height=_FRAME_PX + _CELL_PX * len(rows),
        margin={"l": 8, "r": 8, "t": 8, "b": 8},
        xaxis={**axes, "title": column_head},
        yaxis={**axes, "title": row_head, "autorange": "reversed"},
    )
    return str(go.Figure([heat], layout).to_json())


def _names(names: set[str | None]) -> list[str | None]:
    """In order, those not known last."""
    return sorted(names, key=lambda name: (name is None, name or ""))


def _texts(values: Sequence[Sequence[float | None]]) -> list[list[str]]:
    return [["" if value is None else size(value) for value in row] for row in values]
