"""A heat map as a plotly figure, in colours for colour-blind readers."""

from collections.abc import Mapping, Sequence

from quotaflow.pipelines.report.figure import figure, lanes
from quotaflow.pipelines.report.texts import label, size

_CELL_PX = 44
_SCALE = "Cividis"


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
        colorscale=_SCALE,
        # Plotly ignores zmin without zmax; without zmin the smallest value would look like zero.
        zmin=0,
        zmax=max(cells.values()) or 1,
        showscale=False,
        showlegend=False,
        xgap=2,
        ygap=2,
    )
    across = lanes(labels[1]) | {"range": [-0.5, len(columns) - 0.5], "title": column_head}
    return figure([heat], _CELL_PX * len(rows), across, lanes(labels[0]))


def _names(names: set[str | None]) -> list[str | None]:
    """Names in order, None last."""
    return sorted(names, key=lambda name: (name is None, name or ""))


def _texts(values: Sequence[Sequence[float | None]]) -> list[list[str]]:
    return [["" if value is None else size(value) for value in row] for row in values]
